"""From sweeps to folds: choose on all videos but one, judge on that one."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering import Grid, Method
from polypcount.errors import DataError
from polypcount.evaluation.scenes import StudyVideo
from polypcount.evaluation.scores import score_video
from polypcount.evaluation.selection import RULES, choose, front
from polypcount.evaluation.study import Fold, MethodStudy, RuleStudy
from polypcount.evaluation.summary import mean_of, summarise
from polypcount.evaluation.sweeps import VideoSweep

Floats = NDArray[np.float64]
FprAverage = Literal["defined", "zero-filled", "pooled"]


def check_average(fpr_average: str) -> None:
    """Raise where it is no way to average."""
    if fpr_average not in get_args(FprAverage):
        raise DataError(f"fpr_average must be one of {', '.join(get_args(FprAverage))}, found {fpr_average!r}")


@dataclass(frozen=True, eq=False)
class Means:
    """FR and FPR of each video and point, and their means.

    fr: float64[videos, points]; false, negative: FP and FP + TN of the same shape.
    """

    fr: Floats
    false: Floats
    negative: Floats
    fpr_average: FprAverage

    def without(self, *videos: int) -> tuple[Floats, Floats]:
        """Mean FR and FPR [points] over all videos but these."""
        others = ~np.isin(np.arange(len(self.fr)), videos)
        fr = self.fr[others]
        seen = ~np.isnan(fr[:, 0])
        false, negative = self.false[others], self.negative[others]
        defined = negative[:, 0] > 0
        nothing = np.full(self.fr.shape[1], np.nan)
        mean_fr = fr[seen].mean(axis=0) if seen.any() else nothing
        if self.fpr_average == "pooled":
            return mean_fr, false.sum(axis=0) / negative.sum(axis=0) if defined.any() else nothing
        rates = false[defined] / negative[defined]
        count = len(rates) if self.fpr_average == "defined" else len(false)
        return mean_fr, rates.sum(axis=0) / count if count else nothing

    def at(self, videos: Sequence[int], points: Sequence[int]) -> tuple[float, float]:
        """Mean FR and FPR over some videos, each at a point of its own."""
        fr, false, negative = (part[videos, points][:, None] for part in (self.fr, self.false, self.negative))
        fr, fpr = Means(fr, false, negative, self.fpr_average).without()
        return float(fr[0]), float(fpr[0])


@dataclass(frozen=True, eq=False)
class Swept:
    """What one method made of every video at every point of a grid, for folds to choose from."""

    method: Method
    grid: Grid
    videos: Sequence[StudyVideo]
    sweeps: Sequence[VideoSweep]
    fpr_average: FprAverage

    @cached_property
    def means(self) -> Means:
        """FR and FPR of each video and point."""
        polyps = np.array([[video.polyps or math.nan] for video in self.videos])
        false = np.array([sweep.counts.false_positive for sweep in self.sweeps], np.float64)
        return Means(
            np.array([sweep.counts.groups for sweep in self.sweeps]) / polyps,
            false,
            false + np.array([sweep.counts.true_negative for sweep in self.sweeps]),
            self.fpr_average,
        )

    def fold(self, place: int, point: int, selected: tuple[float, float]) -> Fold:
        """One video, judged at a point. selected: mean FR and FPR on which the point was chosen."""
        video, sweep = self.videos[place], self.sweeps[place]
        labels = self._labels(place, point)
        scores = score_video(labels, video.truth, video.annotated_polyps)
        if scores.groups != sweep.counts.groups[point]:
            raise DataError(
                f"{self.method.name} gives {scores.groups} groups in video {video.video.id} where it gave "
                f"{sweep.counts.groups[point]} before: a method must give the same again, and what is kept "
                "from another version of it must be removed (sweeps)"
            )
        parameters, converged = self.grid.point(point), bool(sweep.converged[point])
        return Fold(video.video.id, point, parameters, *selected, scores, labels, converged)

    def _labels(self, place: int, point: int) -> NDArray[np.int32]:
        """The groups at a chosen point; sweeps keep only counts, and to group once more costs next to nothing."""
        if (place, point) not in self._known:
            method = type(self.method)(**{**self.method.get_params(), **self.grid.point(point)})
            self._known[place, point] = method.group(self.videos[place].scene).labels
        return self._known[place, point]

    @cached_property
    def _known(self) -> dict[tuple[int, int], NDArray[np.int32]]:
        return {}


def study_method(
    method: Method,
    grid: Grid,
    videos: Sequence[StudyVideo],
    sweeps: Sequence[VideoSweep],
    target_fpr: float,
    fpr_average: FprAverage,
) -> MethodStudy:
    """All folds of one method, under both rules, from what it made of every video at every point of the grid."""
    swept = Swept(method, grid, videos, sweeps, fpr_average)
    rules = ["fixed"] if len(grid) == 1 else list(RULES)
    folds: dict[str, list[Fold]] = {rule: [] for rule in rules}
    for place in range(len(videos)):
        fr, fpr = swept.means.without(place)
        for rule in rules:
            point = 0 if rule == "fixed" else choose(fr, fpr, target_fpr, rule)  # type: ignore[arg-type]
            selected = (math.nan, math.nan) if rule == "fixed" else (float(fr[point]), float(fpr[point]))
            folds[rule].append(swept.fold(place, point, selected))
    fr, fpr = swept.means.without()
    best = front(fr, fpr)
    return MethodStudy(
        method=method.name,
        estimator=method,
        settings={name: value for name, value in method.get_params().items() if name not in grid.axes},
        grid=grid.axes,
        points=len(grid),
        rules=tuple(rule_study(rule, folds[rule], grid.axes) for rule in rules),
        trade_off=np.column_stack([fpr[best], fr[best]]),
        unconverged=float(np.mean([~sweep.converged for sweep in sweeps])),
    )


def rule_study(rule: str, folds: Sequence[Fold], parameters: Iterable[str]) -> RuleStudy:
    """The folds and their means. parameters: those that every fold has."""
    return RuleStudy(
        rule,
        tuple(folds),
        summarise([fold.scores for fold in folds]),
        {name: mean_of([fold.parameters[name] for fold in folds]) for name in parameters},
        mean_of([fold.selected_fpr for fold in folds]),
    )
