"""How a corpus was made: by which function, when, and from which sources."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from polypcount.errors import DataError
from polypcount.version import __version__

_MOST_GENERATIONS = 8


@dataclass(frozen=True)
class Provenance:
    """How a corpus was made.

    Attributes:
        made_by: The verb or function, such as "simulate".
        created: When, in UTC, as ISO 8601 to the second.
        package_version: Version of polypcount.
        sources: The files and folders that were read.
        parameters: Settings that decide the content; JSON values.
        parents: Provenance of the corpora that it was made from, for up to eight generations.
    """

    made_by: str
    created: str
    package_version: str
    sources: tuple[str, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)
    parents: tuple["Provenance", ...] = ()

    @classmethod
    def now(
        cls,
        made_by: str,
        sources: Sequence[str] = (),
        parameters: Mapping[str, Any] | None = None,
        parents: Sequence["Provenance"] = (),
    ) -> "Provenance":
        """Provenance of something that this version makes at this moment."""
        try:
            text = json.dumps([list(sources), dict(parameters or {})], allow_nan=False, ensure_ascii=False)
        except (TypeError, ValueError) as problem:
            raise DataError(f"provenance: parameters must be JSON values: {problem}") from None
        # File names that are not valid text have half characters, which cannot be saved.
        plain_sources, plain_parameters = json.loads(text.encode("utf-8", "replace"))
        created = datetime.now(UTC).isoformat(timespec="seconds")
        ancestors = tuple(_cut(parent, _MOST_GENERATIONS) for parent in parents)
        return cls(made_by, created, __version__, tuple(plain_sources), plain_parameters, ancestors)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "sources": list(self.sources), "parents": [p.to_dict() for p in self.parents]}


def _cut(provenance: Provenance, generations: int) -> Provenance:
    """The same with fewer ancestors. Otherwise a corpus selected a thousand times would have a thousand."""
    parents = provenance.parents if generations else ()
    return dataclasses.replace(provenance, parents=tuple(_cut(parent, generations - 1) for parent in parents))
