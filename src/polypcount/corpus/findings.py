"""The findings of `check`: counted, as JSON, and as an error."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from polypcount.errors import CheckFailed

Severity = Literal["error", "warning", "note"]
_ORDER: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, doubtful or worth knowing, in one video.

    Attributes:
        severity: With errors, work must not go on.
        kind: Short name such as "duplicate boxes".
        video: Id; None if it concerns no video in particular.
        frame: The first frame concerned; None if it concerns no frame in particular.
        count: How many boxes, frames, files or videos are concerned.
        message: A sentence.
        corpus: Name of the corpus, if several were checked.
    """

    severity: Severity
    kind: str
    video: str | None
    frame: int | None
    count: int
    message: str
    corpus: str | None = None


@dataclass(frozen=True)
class Findings:
    """All findings on one corpus or several, most severe first."""

    items: tuple[Finding, ...]

    def __post_init__(self) -> None:
        ordered = sorted(self.items, key=lambda f: (_ORDER.index(f.severity), f.kind, f.video or "", f.frame or 0))
        object.__setattr__(self, "items", tuple(ordered))

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.items)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings with which work must not go on."""
        return tuple(finding for finding in self.items if finding.severity == "error")

    def counts(self) -> dict[Severity, int]:
        """How many findings there are of each severity."""
        counts = Counter(finding.severity for finding in self.items)
        return {severity: counts[severity] for severity in _ORDER}

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {"counts": self.counts(), "findings": [asdict(finding) for finding in self.items]}

    def raise_if_bad(self) -> None:
        """Raise `CheckFailed` if there are errors."""
        if self.errors:
            first, more = self.errors[0], len(self.errors) - 1
            where = f"video {first.video}: " if first.video else ""
            raise CheckFailed(f"{where}{first.message}" + (f" (and {more} more errors)" if more else ""))
