"""One score over several runs: its mean, and how far it moves with the seed, the render and the video."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from polypcount.evaluation import Mean
from polypcount.reproduce.results import Run


@dataclass(frozen=True)
class Spread:
    """A score over runs, each the mean over the videos of one benchmark with one seed.

    mean: over all runs in which it is defined; NaN of none.
    videos: sqrt(mean over runs of the sample variance over videos); of one run, what the paper prints behind ±.
    seeds: sqrt(mean over benchmarks of the sample variance over seeds); NaN where none has two seeds.
    renders: sample standard deviation over benchmarks of the mean over seeds; NaN of fewer than two. It holds what the
        seeds move the means, too.
    low, high: mean over runs of the ends of the bootstrap interval over videos.
    least, most: the lowest and the highest run.
    runs: in how many it is defined.
    """

    mean: float
    videos: float
    seeds: float
    renders: float
    low: float
    high: float
    least: float
    most: float
    runs: int


def spread_of(runs: Sequence[Run], score: Callable[[Run], Mean]) -> Spread:
    """The spread of a score that is a mean over videos."""
    found = [(run.benchmark, score(run)) for run in runs]
    known = [(benchmark, mean) for benchmark, mean in found if not math.isnan(mean.mean)]
    values = [mean.mean for _, mean in known]
    groups: dict[str, list[float]] = {}
    for benchmark, mean in known:
        groups.setdefault(benchmark, []).append(mean.mean)
    return Spread(
        mean=_mean(values),
        videos=_pooled([mean.std for _, mean in known]),
        seeds=_pooled([_std(group) for group in groups.values()]),
        renders=_std([_mean(group) for group in groups.values()]),
        low=_mean([mean.low for _, mean in known]),
        high=_mean([mean.high for _, mean in known]),
        least=min(values, default=math.nan),
        most=max(values, default=math.nan),
        runs=len(values),
    )


def _mean(values: Sequence[float]) -> float:
    defined = [value for value in values if not math.isnan(value)]
    return float(np.mean(defined)) if defined else math.nan


def _std(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def _pooled(deviations: Sequence[float]) -> float:
    """Root of the mean square of those that are defined."""
    return math.sqrt(_mean([deviation**2 for deviation in deviations]))
