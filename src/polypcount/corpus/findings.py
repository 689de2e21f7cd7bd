"""What `check` has found: findings, counted, as JSON, and as an error where there must be none."""

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

    kind: short name such as "duplicate boxes".
    video: id; None where it concerns none in particular.
    frame: the first frame concerned; None where it concerns none in particular.
    count: how many boxes, frames, files or videos are concerned.
    message: a sentence.
    corpus: name of the corpus, where several were checked.
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
    """All findings on one corpus, or on several, gravest first."""

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
        seen = Counter(finding.severity for finding in self.items)
        return {severity: seen[severity] for severity in _ORDER}

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {"counts": self.counts(), "findings": [asdict(finding) for finding in self.items]}

    def raise_if_bad(self) -> None:
        """Raise `CheckFailed` where there are errors."""
        if self.errors:
            first, more = self.errors[0], len(self.errors) - 1
            where = f"video {first.video}: " if first.video else ""
            raise CheckFailed(f"{where}{first.message}" + (f" (and {more} more errors)" if more else ""))
