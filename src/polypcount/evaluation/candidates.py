"""Ways of grouping among which a nested study chooses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polypcount.clustering import (
    Grid,
    Method,
    Preset,
    ProbabilityLinkage,
    TemporalAffinityPropagation,
    TemporalAgglomerative,
)
from polypcount.clustering.base import completed
from polypcount.clustering.grid import ALPHAS, GAMMAS
from polypcount.errors import DataError

# As many as `coarse` has, and all where absolute similarities and means of them lie.
_ABSOLUTE_PREFERENCES = (-1.0, -0.5, -0.2, 0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A way of grouping that may be chosen.

    name: what results call it, once among the candidates.
    method: None is `ProbabilityLinkage`, whose coefficients are fitted in each fold.
    grid: the points to search, a preset of the method or a grid of one's own.
    cannot_link: whether tracklets with boxes in one frame are kept apart.
    """

    name: str
    method: Method | None
    grid: Preset | Grid
    cannot_link: bool


def default_candidates() -> tuple[Candidate, ...]:
    """The paper's method, the same on absolute similarity, linkage, and linkage on probabilities.

    Each comes with cannot-links, then without: where they make no difference, what is known to be true is kept to.
    """
    absolute = Grid({"gamma": GAMMAS["coarse"], "alpha": ALPHAS["coarse"], "preference": _ABSOLUTE_PREFERENCES})
    kinds: list[tuple[str, Method | None, Preset | Grid]] = [
        ("temporal-ap minmax-euclidean", TemporalAffinityPropagation(similarity="minmax-euclidean"), "coarse"),
        ("temporal-ap cosine", TemporalAffinityPropagation(similarity="cosine"), absolute),
        ("temporal-agglomerative cosine", TemporalAgglomerative(similarity="cosine", linkage="average"), "coarse"),
        (ProbabilityLinkage.name, None, "paper"),
    ]
    return tuple(
        Candidate(f"{name}, cannot-link" if linked else name, method, grid, linked)
        for name, method, grid in kinds
        for linked in (True, False)
    )


def checked_grids(candidates: Sequence[Candidate]) -> list[Grid]:
    """The points of each candidate; an error, before any work, where there is none or one has no name of its own."""
    names = [candidate.name for candidate in candidates]
    if not names:
        raise DataError("name at least one candidate to choose from")
    if len(set(names)) < len(names):
        raise DataError(f"each candidate must have a name of its own, found {', '.join(names)}")
    unfitted = ProbabilityLinkage(intercept=0, looks=0, time=0)
    grids = []
    for candidate in candidates:
        method = candidate.method or unfitted
        given = candidate.grid
        grids.append(completed(method, given) if isinstance(given, Grid) else method.grid(given))
    return grids


def told(candidate: Candidate, grid: Grid) -> dict[str, Any]:
    """A candidate as JSON values."""
    known = candidate.method.get_params() if candidate.method else {}
    return {
        "name": candidate.name,
        "method": candidate.method.name if candidate.method else ProbabilityLinkage.name,
        "settings": {name: value for name, value in known.items() if name not in grid.axes},
        "grid": grid.axes,
        "cannot_link": candidate.cannot_link,
    }
