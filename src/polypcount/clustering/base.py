"""What all methods share: scikit-learn's contract, the search grid, and the sweep over it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from polypcount.clustering.grid import Grid, Preset
from polypcount.clustering.grouping import Grouping, Labels, Sweep, renumber
from polypcount.clustering.grouping_input import GroupingInput
from polypcount.clustering.messages import LARGEST
from polypcount.clustering.similarity import Fusion, VisualSimilarity
from polypcount.errors import DataError

_RANGES = {
    "alpha": (0.0, 1.0),
    "gamma": (0.0, 1e6),
    "threshold": (0.0, 1.0),
    "preference": (-LARGEST, LARGEST),
    "damping": (0.5, 0.9999),
}
_WHOLE = {"max_iter": 1, "convergence_iter": 1, "random_state": 0}
_CHOICES: dict[str, tuple[str, ...]] = {
    "similarity": get_args(VisualSimilarity),
    "fusion": get_args(Fusion),
    "linkage": ("average", "complete", "single"),
}
SweepTask = Callable[[], int]
"""A part of a sweep: fills in its points and returns how many there were. Tasks of a sweep may run at the same time."""


class Method(ClusterMixin, BaseEstimator, ABC):  # type: ignore[misc,unused-ignore]
    """A way to group the tracklets of a video, and an estimator in scikit-learn's sense.

    Attributes:
        name: Name on the command line and in tables.
        needs_positions: Whether the method uses time.
        point_cost: Cost of a point of its grid, relative to one of affinity propagation.
        presets: Its search grids by preset name; values by parameter.
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

    def cut_values(self, tracklets: GroupingInput, parameter: str) -> NDArray[np.float64]:  # noqa: ARG002
        """Values of one parameter between which the groups can change, float64[k], rising.

        For a threshold they show every number of groups that the method can give. For other parameters they are the
        values of the grid "fine".
        """
        return np.array(self.presets["fine"][parameter])

    @abstractmethod
    def prepare(self, tracklets: GroupingInput, grid: Grid) -> tuple[Sweep, list[SweepTask]]:
        """A sweep over the grid, and the tasks that fill it in."""

    def group(self, tracklets: GroupingInput) -> Grouping:
        """The groups of one video with the method's own parameters."""
        sweep, tasks = self.prepare(tracklets, Grid({}))
        for task in tasks:
            task()
        labels = renumber(sweep.labels[0])
        exemplars = self._exemplars(tracklets, sweep.labels[0], labels)
        return Grouping(
            labels, exemplars, bool(sweep.converged[0]), int(sweep.iterations[0]), self.name, self.get_params()
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
        """Group the tracklets of one video. The result is in `grouping_` and `labels_`.

        Args:
            X: float[n, d], vectors of the tracklets. With n = 0 there are no groups.
            y: int[n], polyps of the tracklets; only the oracle uses them.
            positions: float[n], where in the video each tracklet lies.
            duration: Length of the video in the unit of the positions; 1 if they are shares of it.
            cannot_link: int[m, 2], pairs of rows that cannot be one polyp.
            must_link: int[m, 2], pairs of rows that must be one polyp.
        """
        vectors = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=0)
        self.grouping_ = self.group(GroupingInput.of(vectors, positions, cannot_link, must_link, y, duration=duration))
        self.labels_ = self.grouping_.labels
        if "max_iter" in self.get_params():
            self.n_iter_ = self.grouping_.iterations
        return self

    def fit_predict(self, X: ArrayLike, y: ArrayLike | None = None, **options: Any) -> Labels:  # noqa: N803
        """Call `fit` and return `labels_`."""
        return self.fit(X, y, **options).labels_

    def _exemplars(self, tracklets: GroupingInput, swept: Labels, labels: Labels) -> Labels:  # noqa: ARG002
        """The tracklet that represents each group: its first. swept: labels of the sweep; labels: renumbered."""
        return np.unique(labels, return_index=True)[1].astype(np.int32)


def completed(method: Method, grid: Grid) -> Grid:
    """The grid in the method's own order. A parameter that it leaves out has the method's own value.

    Raises:
        DataError: A value of the grid or another parameter of the method is out of range.
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


def _in_range(method: str, name: str, value: Any) -> float:
    low, high = _RANGES[name]
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not low <= value <= high:
        raise DataError(f"{method}: {name} must be a number from {low:g} to {high:g}, found {value!r}")
    return float(value)
