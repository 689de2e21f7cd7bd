"""From sweeps to folds: choose on all videos but one, judge on that one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

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


@dataclass(frozen=True, eq=False)
class _Means:
    """FR and FPR of each video and point, and their means.

    fr: float64[videos, points]; false, negative: FP and FP + TN of the same shape.
    """

    fr: Floats
    false: Floats
    negative: Floats
    fpr_average: FprAverage

    def without(self, video: int | None) -> tuple[Floats, Floats]:
        """Mean FR and FPR [points] over all videos but one, or over all."""
        others = np.arange(len(self.fr)) != (-1 if video is None else video)
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


def study_method(
    method: Method,
    grid: Grid,
    videos: Sequence[StudyVideo],
    sweeps: Sequence[VideoSweep],
    target_fpr: float,
    fpr_average: FprAverage,
) -> MethodStudy:
    """All folds of one method, under both rules, from what it made of every video at every point of the grid."""
    polyps = np.array([[video.polyps or math.nan] for video in videos])
    false = np.array([sweep.counts.false_positive for sweep in sweeps], np.float64)
    means = _Means(
        np.array([sweep.counts.groups for sweep in sweeps]) / polyps,
        false,
        false + np.array([sweep.counts.true_negative for sweep in sweeps]),
        fpr_average,
    )
    groups = _Groups(method, grid, videos)
    rules = ["fixed"] if len(grid) == 1 else list(RULES)
    folds: dict[str, list[Fold]] = {rule: [] for rule in rules}
    for place, video in enumerate(videos):
        fr, fpr = means.without(place)
        for rule in rules:
            point = 0 if rule == "fixed" else choose(fr, fpr, target_fpr, rule)  # type: ignore[arg-type]
            selected = (math.nan, math.nan) if rule == "fixed" else (float(fr[point]), float(fpr[point]))
            labels = groups.at(place, point)
            scores = score_video(labels, video.truth, video.annotated_polyps)
            if scores.groups != sweeps[place].counts.groups[point]:
                raise DataError(
                    f"{method.name} gives {scores.groups} groups in video {video.video.id} where it gave "
                    f"{sweeps[place].counts.groups[point]} before: a method must give the same again, and what is kept "
                    "from another version of it must be removed (sweeps)"
                )
            folds[rule].append(
                Fold(
                    video.video.id,
                    point,
                    grid.point(point),
                    *selected,
                    scores,
                    labels,
                    bool(sweeps[place].converged[point]),
                )
            )
    fr, fpr = means.without(None)
    best = front(fr, fpr)
    return MethodStudy(
        method=method.name,
        estimator=method,
        settings={name: value for name, value in method.get_params().items() if name not in grid.axes},
        grid=grid.axes,
        points=len(grid),
        rules=tuple(_rule_study(rule, folds[rule], grid) for rule in rules),
        trade_off=np.column_stack([fpr[best], fr[best]]),
        unconverged=float(np.mean([~sweep.converged for sweep in sweeps])),
    )


def _rule_study(rule: str, folds: Sequence[Fold], grid: Grid) -> RuleStudy:
    return RuleStudy(
        rule,
        tuple(folds),
        summarise([fold.scores for fold in folds]),
        {name: mean_of([fold.parameters[name] for fold in folds]) for name in grid.axes},
        mean_of([fold.selected_fpr for fold in folds]),
    )


class _Groups:
    """The labels at chosen points; sweeps keep only counts, and to group a video once more costs next to nothing."""

    def __init__(self, method: Method, grid: Grid, videos: Sequence[StudyVideo]) -> None:
        self._method, self._grid, self._videos = method, grid, videos
        self._known: dict[tuple[int, int], NDArray[np.int32]] = {}

    def at(self, video: int, point: int) -> NDArray[np.int32]:
        if (video, point) not in self._known:
            method = type(self._method)(**{**self._method.get_params(), **self._grid.point(point)})
            self._known[video, point] = method.group(self._videos[video].scene).labels
        return self._known[video, point]
