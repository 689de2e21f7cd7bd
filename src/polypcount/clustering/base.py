"""What all methods share: scikit-learn's contract, the search grid, and the sweep over it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from polypcount.clustering.grid import Grid, Preset
from polypcount.clustering.grouping import Grouping, renumber
from polypcount.clustering.messages import LARGEST
from polypcount.clustering.scene import Scene
from polypcount.clustering.similarity import Fusion, VisualSimilarity
from polypcount.errors import DataError

Labels = NDArray[np.int32]
_RANGES = {
    "alpha": (0.0, 1.0),
    "gamma": (0.0, 1e6),
    "threshold": (0.0, 1.0),
    "preference": (-LARGEST, LARGEST),
    "damping": (0.5, 1.0),
}
_WHOLE = {"max_iter": 1, "convergence_iter": 1, "random_state": 0}
_CHOICES: dict[str, tuple[str, ...]] = {
    "similarity": get_args(VisualSimilarity),
    "fusion": get_args(Fusion),
    "linkage": ("average", "complete", "single"),
}
Task = Callable[[], int]
"""A piece of a sweep: fills in its points and tells how many they were. Tasks of one sweep may run side by side."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """The groups of one video at every point of a grid.

    labels: int32[points, n]; tracklets of one group have one number, any from 0 to n - 1.
    iterations: int32[points]; converged: bool[points], as in `Grouping`.
    """

    labels: Labels
    iterations: Labels
    converged: NDArray[np.bool_]

    @classmethod
    def unfilled(cls, points: int, tracklets: int) -> "Sweep":
        """Every tracklet alone, until the tasks have run."""
        alone = np.tile(np.arange(tracklets, dtype=np.int32), (points, 1))
        return cls(alone, np.zeros(points, np.int32), np.ones(points, bool))


class Method(ClusterMixin, BaseEstimator, ABC):  # type: ignore[misc,unused-ignore]
    """A way to group the tracklets of a video, and an estimator in scikit-learn's sense.

    name: what the command line and tables call it.
    needs_positions: whether it looks at time.
    point_cost: what a point of its grid costs, as a share of what one of affinity propagation does.
    presets: its search grid under each preset name, values by parameter.
    """

    name: ClassVar[str]
    needs_positions: ClassVar[bool] = False
    point_cost: ClassVar[float] = 0.02
    presets: ClassVar[dict[Preset, dict[str, tuple[float, ...]]]]

    def grid(self, preset: Preset = "paper") -> Grid:
        """The points to try: those of the paper, fewer, or more where it matters."""
        if preset not in self.presets:
            raise DataError(f"the grid must be one of {', '.join(self.presets)}, found {preset!r}")
        return Grid(self.presets[preset])

    @abstractmethod
    def prepare(self, scene: Scene, grid: Grid) -> tuple[Sweep, list[Task]]:
        """A sweep over the grid, and the tasks that fill it."""

    def group(self, scene: Scene) -> Grouping:
        """The groups of one video, with the parameters that the method has."""
        sweep, tasks = self.prepare(scene, Grid({}))
        for task in tasks:
            task()
        labels = renumber(sweep.labels[0])
        return Grouping(
            labels,
            self._exemplars(scene, sweep.labels[0], labels),
            bool(sweep.converged[0]),
            int(sweep.iterations[0]),
            self.name,
            self.get_params(),
        )

    def fit(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike | None = None,
        *,
        positions: ArrayLike | None = None,
        duration: float = 1.0,
        cannot_link: ArrayLike | None = None,
        must_link: ArrayLike | None = None,
    ) -> Self:
        """Group the tracklets of one video; `grouping_` and `labels_` have the result.

        X: float[n, d], their vectors; none at all is fine and gives no group.
        y: int[n], their polyps; only the oracle looks at them.
        positions: float[n], where in the video each lies; duration: its length in the same unit, 1 for shares.
        cannot_link, must_link: int[m, 2], pairs of rows that cannot or must be one polyp.
        """
        vectors = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=0)
        self.grouping_ = self.group(Scene.of(vectors, positions, cannot_link, must_link, y, duration=duration))
        self.labels_ = self.grouping_.labels
        if "max_iter" in self.get_params():
            self.n_iter_ = self.grouping_.iterations
        return self

    def fit_predict(self, X: ArrayLike, y: ArrayLike | None = None, **known: Any) -> Labels:  # noqa: N803
        """`fit`, then `labels_`."""
        return self.fit(X, y, **known).labels_

    def _exemplars(self, scene: Scene, found: Labels, labels: Labels) -> Labels:  # noqa: ARG002
        """The tracklet that stands for each group: its first. found: labels of the sweep; labels: renumbered."""
        return np.unique(labels, return_index=True)[1].astype(np.int32)


def completed(method: Method, grid: Grid) -> Grid:
    """The grid in the method's own order; a parameter that it leaves out has the value that the method has.

    All other parameters of the method are looked at too, so that a wrong one is an error before any work.
    """
    for name, value in method.get_params().items():
        if name in _RANGES and name not in grid.axes:
            _in_range(method.name, name, value)
        if name in _WHOLE and (not isinstance(value, (int, np.integer)) or value < _WHOLE[name]):
            raise DataError(f"{method.name}: {name} must be a whole number from {_WHOLE[name]}, found {value!r}")
        if name in _CHOICES and value not in _CHOICES[name]:
            raise DataError(f"{method.name}: {name} must be one of {', '.join(_CHOICES[name])}, found {value!r}")
    searched = list(method.presets["paper"])
    unknown = [name for name in grid.axes if name not in searched]
    if unknown:
        allowed = ", ".join(searched) or "none"
        raise DataError(f"{method.name} has no parameter {unknown[0]} to search; it has: {allowed}")
    axes = {name: grid.axes.get(name) or (getattr(method, name),) for name in searched}
    return Grid({name: tuple(_in_range(method.name, name, value) for value in axes[name]) for name in searched})


def chunks(points: slice, size: int) -> Iterator[slice]:
    """Consecutive pieces of at most `size` points."""
    for start in range(points.start, points.stop, size):
        yield slice(start, min(start + size, points.stop))


def _in_range(method: str, name: str, value: Any) -> float:
    low, high = _RANGES[name]
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not low <= value <= high:
        raise DataError(f"{method}: {name} must be a number from {low:g} to {high:g}, found {value!r}")
    return float(value)
