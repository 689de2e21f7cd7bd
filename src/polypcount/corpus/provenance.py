"""What made a corpus, when, from what."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from polypcount.errors import DataError
from polypcount.version import __version__

_MOST_GENERATIONS = 8


@dataclass(frozen=True)
class Provenance:
    """How a corpus came to be.

    made_by: the verb or function, such as "simulate".
    created: when, in UTC, as ISO 8601 to the second.
    package_version: of polypcount.
    sources: the files and folders that were read.
    parameters: settings, as far as they decide the content; JSON values.
    parents: provenance of the corpora it was selected or put together from, up to eight generations back.
    """

    made_by: str
    created: str
    package_version: str
    sources: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    parents: tuple["Provenance", ...] = ()

    def __post_init__(self) -> None:
        try:
            plain = json.loads(json.dumps(dict(self.parameters), allow_nan=False))
        except (TypeError, ValueError) as problem:
            raise DataError(f"provenance: parameters must be JSON values: {problem}") from None
        object.__setattr__(self, "parameters", plain)
        object.__setattr__(self, "sources", tuple(self.sources))
        object.__setattr__(self, "parents", tuple(_cut(parent, _MOST_GENERATIONS) for parent in self.parents))

    @classmethod
    def now(
        cls,
        made_by: str,
        sources: tuple[str, ...] = (),
        parameters: Mapping[str, Any] | None = None,
        parents: tuple["Provenance", ...] = (),
    ) -> "Provenance":
        """Provenance of something that this version makes at this moment."""
        created = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(made_by, created, __version__, sources, dict(parameters or {}), parents)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "sources": list(self.sources), "parents": [p.to_dict() for p in self.parents]}

    @classmethod
    def from_dict(cls, values: Any) -> "Provenance":
        """The inverse of `to_dict`; anything else is a `DataError`."""
        try:
            made_by, created, package_version = values["made_by"], values["created"], values["package_version"]
            sources, parameters, parents = values["sources"], values["parameters"], values["parents"]
            well_formed = (
                all(isinstance(text, str) for text in (made_by, created, package_version, *sources))
                and isinstance(parameters, dict)
                and isinstance(sources, list)
                and isinstance(parents, list)
            )
        except (KeyError, TypeError) as problem:
            raise DataError(f"the provenance lacks a part: {problem}") from None
        if not well_formed:
            raise DataError("the provenance has a value of the wrong type")
        return cls(
            made_by, created, package_version, tuple(sources), parameters, tuple(cls.from_dict(p) for p in parents)
        )


def _cut(provenance: Provenance, generations: int) -> Provenance:
    """The same with no more ancestors than this, or a corpus selected a thousand times would carry a thousand."""
    if generations == 0:
        return dataclasses.replace(provenance, parents=()) if provenance.parents else provenance
    kept = tuple(_cut(parent, generations - 1) for parent in provenance.parents)
    return provenance if kept == provenance.parents else dataclasses.replace(provenance, parents=kept)
