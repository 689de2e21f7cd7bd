"""From sweeps to folds: choose on all videos but one, and judge on that one."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polypcount.clustering import Grid, Method
from polypcount.errors import DataError
from polypcount.evaluation.pairs import Rates
from polypcount.evaluation.scores import score_video
from polypcount.evaluation.selection import RULES, FprAverage, choose, front
from polypcount.evaluation.study import Fold, MethodStudy, RuleStudy
from polypcount.evaluation.summary import mean_of, summarise
from polypcount.evaluation.sweeps import VideoSweep
from polypcount.evaluation.videos import StudyVideo


@dataclass(frozen=True, eq=False)
class Means:
    """FR and FPR of each video and point, to take means of.

    Attributes:
        fr: float64[videos, points]; NaN for a video without tracklets.
        false: float64[videos, points], FP of each.
        negative: float64[videos, points], FP + TN of each.
        fpr_average: How the FPR of several videos becomes one.
    """

    fr: Rates
    false: Rates
    negative: Rates
    fpr_average: FprAverage

    def without(self, *videos: int) -> tuple[Rates, Rates]:
        """Mean FR and FPR [points] over all videos but these; NaN where undefined."""
        others = ~np.isin(np.arange(len(self.fr)), videos)
        fr, false, negative = self.fr[others], self.false[others], self.negative[others]
        fr, defined = fr[~np.isnan(fr[:, 0])], negative[:, 0] > 0
        with np.errstate(invalid="ignore"):  # 0 / 0 is NaN
            mean_fr = fr.sum(axis=0) / np.float64(len(fr))
            if self.fpr_average == "pooled":
                return mean_fr, false.sum(axis=0) / negative.sum(axis=0)
            rates = false[defined] / negative[defined]
            count = len(rates) if self.fpr_average == "defined" else len(false)
            return mean_fr, rates.sum(axis=0) / np.float64(count)

    def at(self, videos: Sequence[int], points: Sequence[int]) -> tuple[float, float]:
        """Mean FR and FPR over some videos, each at a point of its own."""
        fr, false, negative = (part[videos, points][:, None] for part in (self.fr, self.false, self.negative))
        fr, fpr = Means(fr, false, negative, self.fpr_average).without()
        return float(fr[0]), float(fpr[0])


@dataclass(frozen=True, eq=False)
class Swept:
    """One method on every video at every point of a grid, for folds to choose from."""

    method: Method
    grid: Grid
    videos: Sequence[StudyVideo]
    sweeps: Sequence[VideoSweep]
    fpr_average: FprAverage

    @cached_property
    def means(self) -> Means:
        """FR and FPR of each video and point."""
        polyps = np.array([[video.polyps or math.nan] for video in self.videos])
        counts = [sweep.counts for sweep in self.sweeps]
        false = np.array([count.false_positive for count in counts], np.float64)
        negative = false + np.array([count.true_negative for count in counts])
        return Means(np.array([count.groups for count in counts]) / polyps, false, negative, self.fpr_average)

    def fold(self, row: int, point: int, selected: tuple[float, float]) -> Fold:
        """Judge one video at a point.

        Args:
            row: Which video.
            point: Number of the point in the grid.
            selected: Mean FR and FPR on which the point was chosen.
        """
        video, sweep, parameters = self.videos[row], self.sweeps[row], self.grid.point(point)
        # Sweeps keep only counts, so the groups of a chosen point are made again.
        labels = type(self.method)(**{**self.method.get_params(), **parameters}).group(video.tracklets).labels
        scores = score_video(labels, video.truth, video.annotated_polyps)
        if scores.groups != sweep.counts.groups[point]:
            raise DataError(
                f"{self.method.name} gives {scores.groups} groups in video {video.video.id}, and gave "
                f"{sweep.counts.groups[point]} before: a method must be deterministic, and sweeps that another "
                "version of it has kept must be removed"
            )
        return Fold(video.video.id, point, parameters, *selected, scores, labels, bool(sweep.converged[point]))


def study_method(swept: Swept, target_fpr: float) -> MethodStudy:
    """All folds of one method, under both rules."""
    grid, method = swept.grid, swept.method
    rules = ["fixed"] if len(grid) == 1 else list(RULES)
    folds: dict[str, list[Fold]] = {rule: [] for rule in rules}
    for row in range(len(swept.videos)):
        fr, fpr = swept.means.without(row)
        for rule in rules:
            point = 0 if rule == "fixed" else choose(fr, fpr, target_fpr, rule)  # type: ignore[arg-type]
            selected = (math.nan, math.nan) if rule == "fixed" else (float(fr[point]), float(fpr[point]))
            folds[rule].append(swept.fold(row, point, selected))
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
        unconverged=float(np.mean([~sweep.converged for sweep in swept.sweeps])),
    )


def rule_study(rule: str, folds: Sequence[Fold], parameters: Iterable[str]) -> RuleStudy:
    """The folds and their means. Every fold must have each of the parameters."""
    return RuleStudy(
        rule,
        tuple(folds),
        summarise([fold.scores for fold in folds]),
        {name: mean_of([fold.parameters[name] for fold in folds]) for name in parameters},
        mean_of([fold.selected_fpr for fold in folds]),
    )
