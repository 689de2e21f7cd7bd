"""How far a count may be off, learnt from recordings with known polyps."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering import Band, OperatingPoint
from polypcount.counting.counted_videos import CountedVideo
from polypcount.counting.decide import seen_groups

MOST_TRACKLETS = (2, 8, 10**6)  # of the recordings of a band
FEWEST = 30  # recordings of a band; smaller bands are joined with the next
# Share of 1 - level that either end may miss. With a half, intervals hold more than their level, since counts are
# whole. 0.6 was chosen by cross-validation on the recordings that the bundled points were chosen on, see
# docs/counting.md (benchmarks/count_accuracy.py --ends).
END_SHARE = 0.6
SECONDS = (0.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # tried for groups that may be false alarms


def fit_bands(
    point: OperatingPoint,
    videos: Sequence[CountedVideo],
    values: Sequence[float],
    level: float,
    end_share: float = END_SHARE,
) -> tuple[Band, ...]:
    """The bands of an operating point, by kind of boxes and number of tracklets.

    Each end is set by conformal risk control. A recording is missed at the lower end where that is above the true
    number, and at the upper end where that is below it. The ends are as near to each other as (misses + 1) / (n + 1)
    <= end_share * (1 - level) allows on the n recordings of the band, for either end. If a new recording is
    exchangeable with these, either end misses it with at most that probability. The point's own value lies between the
    two values of a band.

    Args:
        point: The method, its parameters and which of them is varied.
        videos: Recordings with known polyps.
        values: The values of the varied parameter to choose from, rising.
        level: Share of recordings whose true number an interval should hold.
        end_share: Share of 1 - level that either end may miss.
    """
    most_miss = end_share * (1 - level)
    bands: list[Band] = []
    for tracked in (False, True):
        of_kind = [video for video in videos if video.tracked == tracked]
        waiting: list[CountedVideo] = []
        least = 0
        for most in MOST_TRACKLETS:
            waiting += [video for video in of_kind if least < len(video.truth) <= most]
            least = most
            rest = sum(len(video.truth) > most for video in of_kind)
            if waiting and (rest == 0 or (len(waiting) >= FEWEST and rest >= FEWEST)):
                bands.append(_band(point, waiting, values, most_miss, tracked=tracked, most=most))
                waiting = []
    return tuple(bands)


def _band(
    point: OperatingPoint,
    videos: Sequence[CountedVideo],
    values: Sequence[float],
    most_miss: float,
    *,
    tracked: bool,
    most: int,
) -> Band:
    labels = [point.labels_at(video.tracklets, values) for video in videos]
    polyps = np.array([video.polyps for video in videos])
    most_misses = most_miss * (len(videos) + 1) - 1
    own = float(point.parameters[point.varied])
    loose, strict = np.array(values) <= own, np.array(values) >= own
    highs = np.array([[len(np.unique(row)) for row in rows] for rows in labels])
    high = _narrowest(highs < polyps[:, None], highs.mean(axis=0), most_misses, strict)
    ends: list[tuple[float, float, float, int]] = []
    for seconds in SECONDS if tracked else SECONDS[:1]:
        lows = np.array(
            [
                [seen_groups(row, video.seconds, seconds) for row in rows]
                for rows, video in zip(labels, videos, strict=True)
            ]
        )
        best = _narrowest(lows > polyps[:, None], -lows.mean(axis=0), most_misses, loose)
        missed = np.count_nonzero(lows[:, best] > polyps)
        ends.append((max(missed - most_misses, 0), -float(lows[:, best].mean()), seconds, best))
    _, _, seconds, low = min(ends)
    return Band(
        tracked=tracked,
        tracklets=most,
        low=float(values[low]),
        high=float(values[high]),
        seconds=seconds,
        procedures=len(videos),
    )


def _narrowest(
    missed: NDArray[np.bool_], width: NDArray[np.float64], most_misses: float, allowed: NDArray[np.bool_]
) -> int:
    """The allowed value with the smallest width among those with few enough misses, or with the fewest misses.

    Args:
        missed: bool[recordings, values].
        width: float64[values].
        most_misses: How many are few enough.
        allowed: bool[values].
    """
    misses = missed.sum(axis=0)
    return int(np.lexsort((width, np.maximum(misses - most_misses, 0), ~allowed))[0])
