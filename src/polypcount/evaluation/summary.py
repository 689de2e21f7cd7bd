"""Scores over videos: means, standard deviations and confidence intervals."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.errors import DataError
from polypcount.evaluation.scores import VideoScores

DRAWS_AT_A_TIME = 1_000_000  # limits the memory of the bootstrap to some tens of megabytes

SCORES: dict[str, Callable[[VideoScores], float]] = {
    "fr": lambda video: video.fr,
    "fr_all": lambda video: video.fr_all,
    "fr_single_polyp": lambda video: video.fr if video.polyps == 1 else math.nan,
    "fr_multi_polyp": lambda video: video.fr if video.polyps > 1 else math.nan,
    "fpr": lambda video: video.fpr,
    "fpr_zero_filled": lambda video: 0.0 if math.isnan(video.fpr) else video.fpr,
    "tpr": lambda video: video.tpr,
    "precision": lambda video: video.precision,
    "count_error": lambda video: video.count_error if video.tracklets else math.nan,
    "absolute_count_error": lambda video: abs(video.count_error) if video.tracklets else math.nan,
    "exact_count": lambda video: video.count_error == 0 if video.tracklets else math.nan,
    "count_error_all": lambda video: video.count_error_all,
    "absolute_count_error_all": lambda video: abs(video.count_error_all),
    "exact_count_all": lambda video: video.count_error_all == 0,
    "adjusted_rand": lambda video: video.adjusted_rand,
    "v_measure": lambda video: video.v_measure,
    "bcubed_f1": lambda video: video.bcubed_f1,
}


@dataclass(frozen=True)
class Mean:
    """A mean over videos.

    Attributes:
        mean: Sum of the defined values / count; NaN without any.
        std: Sample standard deviation, sqrt(sum of (value - mean)^2 / (count - 1)); NaN below two values.
        low: Lower end of the bootstrap percentile interval of the mean; NaN below two values.
        high: Its upper end.
        count: Number of defined values.
        total: Number of values.
    """

    mean: float
    std: float
    low: float
    high: float
    count: int
    total: int


def mean_of(values: ArrayLike, *, level: float = 0.95, resamples: int = 10_000, seed: int = 0) -> Mean:
    """Mean over videos, with a bootstrap interval.

    The interval lies between the (1 - level) / 2 and (1 + level) / 2 quantiles of the means of `resamples` draws of as
    many videos with replacement. Videos with an undefined value are drawn too, so the interval is wider if there
    are many of them. A draw without a defined value is left out.

    Args:
        values: float[videos]; NaN is undefined and left out of the mean.
        level: Between 0 and 1.
        resamples: Number of draws, at least 1.
        seed: The same seed draws the same videos.
    """
    column = np.asarray(values, np.float64)
    if column.ndim != 1:
        raise DataError(f"values must have the shape [videos], found {list(column.shape)}")
    if (infinite := np.isinf(column)).any():
        raise DataError(f"values must be finite, or NaN where undefined, found infinity in row {np.argmax(infinite)}")
    if not 0 < level < 1 or resamples < 1:
        raise DataError(f"level must be between 0 and 1, resamples at least 1, found {level} and {resamples}")
    defined = column[~np.isnan(column)]
    mean = float(defined.mean()) if len(defined) else math.nan
    std, low, high = math.nan, math.nan, math.nan
    if len(defined) > 1:
        std = float(defined.std(ddof=1))
        if len(means := _resampled_means(column, resamples, seed)):
            low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Mean(mean, std, float(low), float(high), len(defined), len(column))


def summarise(
    scores: Sequence[VideoScores], *, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> dict[str, Mean]:
    """The mean of each score over videos, by name.

    - fr, fr_all, fpr, tpr, precision, adjusted_rand, v_measure, bcubed_f1: those of `VideoScores`, over the videos in
      which they are defined.
    - fr_single_polyp, fr_multi_polyp: fr over the videos in which one polyp has tracklets, and more than one.
    - fpr_zero_filled: fpr over all videos, 0 where it is undefined.
    - count_error, absolute_count_error: groups - polyps, and its absolute value, over videos with a tracklet.
    - exact_count: the share of those videos with the count error 0.
    - count_error_all, absolute_count_error_all, exact_count_all: the same against all annotated polyps.

    All scores are resampled by the same draws of videos.
    """
    return {
        name: mean_of([score(video) for video in scores], level=level, resamples=resamples, seed=seed)
        for name, score in SCORES.items()
    }


def _resampled_means(values: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    """Mean of the defined values of each draw, float64[draws with a defined value]."""
    rng = np.random.default_rng(seed)
    means = np.empty(resamples)
    step = max(1, DRAWS_AT_A_TIME // len(values))
    for start in range(0, resamples, step):
        stop = min(start + step, resamples)
        drawn = values[rng.integers(len(values), size=(stop - start, len(values)))]
        defined = ~np.isnan(drawn)
        count = defined.sum(axis=1)
        total = np.where(defined, drawn, 0).sum(axis=1)
        means[start:stop] = np.divide(total, count, out=np.full(stop - start, np.nan), where=count > 0)
    return means[~np.isnan(means)]
