"""Scores over videos: means, their spread, and how sure they are."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.errors import DataError
from polypcount.evaluation.scores import VideoScores

Floats = NDArray[np.float64]
DRAWS_AT_A_TIME = 1_000_000  # bounds the memory of the bootstrap to some tens of megabytes

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

    mean: sum of the defined values / count; NaN of none.
    std: sample standard deviation, sqrt(sum of (value - mean)^2 / (count - 1)); NaN of fewer than two.
    low, high: bootstrap percentile interval of the mean; NaN of fewer than two.
    count: how many values are defined.
    total: how many values there are.
    """

    mean: float
    std: float
    low: float
    high: float
    count: int
    total: int


def mean_of(values: ArrayLike, *, level: float = 0.95, resamples: int = 10_000, seed: int = 0) -> Mean:
    """Mean of values [videos], of which those that are NaN are left out and counted.

    The interval is between the (1 - level) / 2 and (1 + level) / 2 quantiles of the means of `resamples` draws of as
    many videos with replacement. Videos with an undefined value are drawn too, so that the interval knows of their
    number; a draw with no defined value is left out. The same seed draws the same videos.
    """
    given = np.asarray(values, np.float64)
    if given.ndim != 1:
        raise DataError(f"values must have the shape [videos], found {list(given.shape)}")
    if (infinite := np.isinf(given)).any():
        row = int(np.argmax(infinite))
        raise DataError(f"values must be finite, or NaN where undefined, found {given[row]} in row {row}")
    if not 0 < level < 1:
        raise DataError(f"level must be between 0 and 1, found {level}; 0.95 is usual")
    if resamples < 1:
        raise DataError(f"resamples must be at least 1, found {resamples}; 10000 is usual")
    defined = given[~np.isnan(given)]
    mean = float(defined.mean()) if len(defined) else math.nan
    std, low, high = math.nan, math.nan, math.nan
    if len(defined) > 1:
        std = float(defined.std(ddof=1))
        if len(means := _resampled_means(given, resamples, seed)):
            low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Mean(mean, std, float(low), float(high), len(defined), len(given))


def summarise(
    scores: Sequence[VideoScores], *, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> dict[str, Mean]:
    """The mean of each score over videos, by name.

    fr, fr_all, fpr, tpr, precision, adjusted_rand, v_measure, bcubed_f1: as `VideoScores` has them, over the videos in
        which they are defined.
    fr_single_polyp, fr_multi_polyp: fr over the videos in which one polyp owns tracklets, and more than one.
    fpr_zero_filled: fpr over all videos, 0 where it is undefined.
    count_error, absolute_count_error: groups - polyps, and its absolute value; not of videos without a tracklet.
    exact_count: the share of those videos with the count error 0.
    count_error_all, absolute_count_error_all, exact_count_all: the same against all annotated polyps.

    Every score is resampled by the same draws of videos.
    """
    return {
        name: mean_of([score(video) for video in scores], level=level, resamples=resamples, seed=seed)
        for name, score in SCORES.items()
    }


def _resampled_means(values: Floats, resamples: int, seed: int) -> Floats:
    """The mean of the defined values of each draw, float64[draws that have any]."""
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
