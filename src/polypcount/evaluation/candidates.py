"""Ways of grouping among which a nested study chooses."""

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

# As many as `coarse` has, in the range of absolute similarities and their means.
_ABSOLUTE_PREFERENCES = (-1.0, -0.5, -0.2, 0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0)
_UNFITTED = ProbabilityLinkage(intercept=0, looks=0, time=0)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A way of grouping that may be chosen.

    Attributes:
        name: Its name in the results, unique among the candidates.
        method: The method; None for `ProbabilityLinkage`, whose coefficients are fitted in each fold.
        grid: The points to search: a preset of the method, or a grid.
        cannot_link: Whether tracklets with boxes in one frame are kept apart.
    """

    name: str
    method: Method | None
    grid: Preset | Grid
    cannot_link: bool

    def points(self) -> Grid:
        """The points to search, checked."""
        method = self.method or _UNFITTED
        return completed(method, self.grid) if isinstance(self.grid, Grid) else method.grid(self.grid)

    def to_dict(self) -> dict[str, Any]:
        """The candidate as JSON values."""
        axes = self.points().axes
        settings = self.method.get_params() if self.method else {}
        return {
            "name": self.name,
            "method": (self.method or _UNFITTED).name,
            "settings": {name: value for name, value in settings.items() if name not in axes},
            "grid": axes,
            "cannot_link": self.cannot_link,
        }


def default_candidates() -> tuple[Candidate, ...]:
    """The paper's method, the same on absolute similarity, linkage, and linkage on probabilities.

    Each comes with cannot-links, then without. Where they make no difference, the first is chosen.
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
