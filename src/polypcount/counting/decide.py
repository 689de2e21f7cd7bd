"""Which tracklets are one polyp, and how certain that is.

The grouping is repeated: at values of the operating point that were right for other recordings, and with vectors of
resampled frames. So the doubt covers two causes. How readily tracklets should be joined cannot be learned from the
recording itself. And the frames of a tracklet may disagree.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from polypcount.clustering import Band, GroupingInput, OperatingPoint, group_into, run_tasks
from polypcount.clustering.grouping import renumber
from polypcount.counting.evidence import Evidence
from polypcount.counting.known_pairs import KnownPairs
from polypcount.counting.result import DoubtfulPair

REPETITIONS = 60
USUAL_FPS = 25.0  # where the frame rate is not known
_BLOCK = 64  # rows of an n x n table that are worked on at a time
_SURE = 0.05  # a doubt is shown if its share of repetitions is between this and 1 - this
PolypRange = tuple[int, int | None]


@dataclass(frozen=True, eq=False)
class Decision:
    """The groups of n tracklets, and how certain they are.

    Attributes:
        labels: int32[n], groups 0, 1, ... in the order of their first tracklets.
        together: float32[n, n], share of repetitions in which two tracklets are in one group.
        repeated: int32[repetitions], number of groups in each.
        low: Lower end of the interval; see `ends`.
        high: Upper end of the interval.
        certainty: float64[groups]; see `certainty`.
        pairs: Decisions that change the count, most uncertain first.
        unmet: Why the count lies outside the range that the user gave; empty if it does not.
    """

    labels: NDArray[np.int32]
    together: NDArray[np.float32]
    repeated: NDArray[np.int32]
    low: int
    high: int
    certainty: NDArray[np.float64]
    pairs: tuple[DoubtfulPair, ...]
    unmet: str = ""


def decide(
    evidence: Sequence[Evidence],
    together: NDArray[np.int64],
    duration: float,
    point: OperatingPoint,
    polyp_range: PolypRange | None = None,
    known: KnownPairs | None = None,
    *,
    fps: float | None = None,
    tracked: bool = False,
) -> Decision:
    """Group the tracklets of one recording.

    Args:
        evidence: Evidence of the tracklets, in time order.
        together: int64[m, 2], rows of tracklets with boxes in one frame.
        duration: Duration of the recording in frames; see `duration_frames`.
        point: Method, parameters, and how they vary between recordings.
        polyp_range: The fewest and the most polyps there can be.
        known: Pairs that somebody knows to be one polyp, or two.
        fps: Frames per second; None where it is not known.
        tracked: Whether our tracker made the tracks.
    """
    if not evidence:
        none, unmet = np.empty(0, np.int32), _unmet(evidence, 0, polyp_range)
        return Decision(none, np.empty((0, 0), np.float32), none, 0, 0, np.empty(0), (), unmet)
    tracklets = grouping_input(evidence, together, duration, point, known)
    labels = _group_at(tracklets, point, polyp_range)
    count = len(np.unique(labels))
    repeated = _repeat(evidence, tracklets, point, polyp_range)
    counts = np.array([len(np.unique(row)) for row in repeated], np.int32)
    share = share_together(repeated)
    band = point.band(len(evidence), tracked=tracked)
    if band is None:
        low, high = interval(counts, count, point.level)
    else:
        seconds = np.array([one.box_count for one in evidence]) / (fps or USUAL_FPS)
        low, high = within(ends(point, band, tracklets, seconds), count, polyp_range)
    unmet = _unmet(evidence, count, polyp_range)
    return Decision(labels, share, counts, low, high, certainty(labels, repeated), doubtful_pairs(labels, share), unmet)


def group(
    evidence: Sequence[Evidence],
    together: NDArray[np.int64],
    duration: float,
    point: OperatingPoint,
    polyp_range: PolypRange | None = None,
    known: KnownPairs | None = None,
) -> NDArray[np.int32]:
    """The group of each tracklet at the operating point itself, int32[n]; arguments as for `decide`."""
    return _group_at(grouping_input(evidence, together, duration, point, known), point, polyp_range)


def _group_at(tracklets: GroupingInput, point: OperatingPoint, polyp_range: PolypRange | None) -> NDArray[np.int32]:
    if polyp_range is not None:
        return group_into(point, tracklets, *polyp_range)[0]
    return renumber(point.labels_at(tracklets, [getattr(point.build(), point.varied)])[0])


def _repeat(
    evidence: Sequence[Evidence], tracklets: GroupingInput, point: OperatingPoint, polyp_range: PolypRange | None
) -> NDArray[np.int32]:
    """Groups of each repetition, int32[REPETITIONS, n]. tracklets: With the vectors of all looked-at frames."""
    values = point.repeated_values(REPETITIONS)
    repeated = np.zeros((REPETITIONS, len(evidence)), np.int32)
    draws = min(len(evidence[0].vectors) - 1, REPETITIONS)

    def repeat(draw: int) -> None:
        drawn = tracklets.with_vectors(_vectors(evidence, 1 + draw))
        if polyp_range is None:
            repeated[draw::draws] = point.labels_at(drawn, values[draw::draws])
            return
        for row in range(draw, REPETITIONS, draws):
            varied = {**point.parameters, point.varied: float(values[row])}
            repeated[row] = _group_at(drawn, point.model_copy(update={"parameters": varied}), polyp_range)

    # One thread of BLAS for each of ours: more would wait for each other, and waiting takes the cores from the others.
    with threadpool_limits(1, "blas"):
        for _ in run_tasks(partial(repeat, draw) for draw in range(draws)):
            pass
    return repeated


def _vectors(evidence: Sequence[Evidence], draw: int) -> NDArray[np.float32]:
    return np.stack([one.vectors[draw] for one in evidence])


def grouping_input(
    evidence: Sequence[Evidence],
    together: NDArray[np.int64],
    duration: float,
    point: OperatingPoint,
    known: KnownPairs | None = None,
) -> GroupingInput:
    """The tracklets of one recording as a grouping method takes them; arguments as for `decide`."""
    known = known or KnownPairs()
    start = np.array([one.start_frame for one in evidence], np.int64)
    apart = np.concatenate([together[: None if point.cannot_link else 0], known.two_polyps])
    return GroupingInput.of(_vectors(evidence, 0), start, apart, known.one_polyp, duration=duration)


def share_together(repeated: NDArray[np.int32]) -> NDArray[np.float32]:
    """Share of repetitions in which two tracklets are in one group, float32[n, n].

    Args:
        repeated: int32[repetitions, n], the group of each tracklet; at most 255 repetitions.
    """
    repetitions, n = repeated.shape
    share = np.empty((n, n), np.float32)
    # Narrow numbers in blocks that stay in the processor's cache: there are n * n * repetitions comparisons.
    groups = repeated.astype(np.uint16 if n <= 1 << 16 else np.int32)
    equal, times = np.empty((_BLOCK, n), bool), np.empty((_BLOCK, n), np.uint8)
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        times[:] = 0
        for row in groups:
            np.equal(row[start:stop, None], row, out=equal[: stop - start])
            times += equal.view(np.uint8)
        share[start:stop] = times[: stop - start]
    share /= repetitions
    return share


def _unmet(evidence: Sequence[Evidence], count: int, polyp_range: PolypRange | None) -> str:
    """Why the count lies outside the range that the user gave; empty if it does not."""
    if polyp_range is None:
        return ""
    fewest, most = polyp_range
    if count < fewest:
        few = len(evidence) < fewest
        reason = f"there are {len(evidence)} tracklets" if few else "the method gives no such grouping"
        return f"The count should be at least {fewest}, but {reason}; {count} is the nearest."
    if most is not None and count > most:
        return (
            f"The count should be at most {most}, but tracklets with boxes in one frame are different polyps, or the "
            f"method gives no such grouping; {count} is the nearest."
        )
    return ""


def ends(point: OperatingPoint, band: Band, tracklets: GroupingInput, seconds: NDArray[np.float64]) -> tuple[int, int]:
    """The lower and the upper end of the interval of a recording.

    They are the numbers of groups at the two values of its band. At the lower end, groups count only if they are seen
    for long enough.

    Args:
        point: The operating point that the band belongs to.
        band: The band of the recording.
        tracklets: The tracklets of the recording.
        seconds: float64[n], how long each tracklet is seen.
    """
    fewest, most = point.labels_at(tracklets, [band.low, band.high])
    return seen_groups(fewest, seconds, band.seconds), len(np.unique(most))


def seen_groups(labels: NDArray[np.int32], seconds: NDArray[np.float64], least: float) -> int:
    """How many groups are seen for at least so many seconds. seconds: float64[n], of each tracklet."""
    groups = np.unique(labels, return_inverse=True)[1]
    return int(np.count_nonzero(np.bincount(groups, seconds) >= least))


def within(found: tuple[int, int], count: int, polyp_range: PolypRange | None) -> tuple[int, int]:
    """The ends of an interval, inside the range that the user gave and widened to hold the count."""
    fewest, most = polyp_range or (0, None)
    low, high = (max(end, fewest) if most is None else min(max(end, fewest), most) for end in found)
    return min(low, count), max(high, count)


def interval(counts: NDArray[np.int32], count: int, level: float) -> tuple[int, int]:
    """The quantiles (1 - level) / 2 and (1 + level) / 2 of the repeated counts, widened to hold the count."""
    if not len(counts):
        return count, count
    low = int(np.quantile(counts, (1 - level) / 2, method="lower"))
    high = int(np.quantile(counts, (1 + level) / 2, method="higher"))
    return min(low, count), max(high, count)


def certainty(labels: NDArray[np.int32], repeated: NDArray[np.int32]) -> NDArray[np.float64]:
    """How often each group comes out again, float64[groups].

    For each group: the mean over repetitions of its largest Jaccard overlap with a group of the repetition.
    """
    sizes = np.bincount(labels)
    overlap = np.zeros((len(repeated), len(sizes)))
    for row, groups in enumerate(repeated):
        others = np.bincount(groups)
        pair, shared = np.unique(labels.astype(np.int64) * len(others) + groups, return_counts=True)
        group, other = np.divmod(pair, len(others))
        np.maximum.at(overlap[row], group, shared / (sizes[group] + others[other] - shared))
    return np.asarray(overlap.mean(axis=0))


def doubtful_pairs(labels: NDArray[np.int32], together: NDArray[np.float32]) -> tuple[DoubtfulPair, ...]:
    """One pair of tracklets for each decision that changes the count, most uncertain first.

    For two groups that may be one polyp: the pair, with a tracklet from each, that is in one group most often. For a
    group that may be two polyps: the lowest edge of its maximum spanning tree, where the group would split.
    """
    members = [np.flatnonzero(labels == number) for number in range(int(labels.max(initial=-1)) + 1)]
    order = np.concatenate([np.empty(0, np.int64), *members])
    stops = np.cumsum([len(group) for group in members])
    pairs = []
    for group, stop in zip(members, stops.tolist(), strict=True):
        # The tracklets of later groups, group by group.
        later, starts = order[stop:], stops[stops >= stop][:-1] - stop
        if not len(later):
            break
        block = together[np.ix_(group, later)]
        most = np.maximum.reduceat(block, starts, axis=1)  # of each tracklet with each later group
        for other in np.flatnonzero(most.max(axis=0).astype(np.float64) > _SURE).tolist():
            row = int(most[:, other].argmax())
            column = starts[other] + int((block[row, starts[other] :] == most[row, other]).argmax())
            pairs.append(_pair(group[row], later[column], float(most[row, other]), one_polyp=False))
    for group in members:
        if len(group) > 1:
            row, column, share = _weakest_link(together[np.ix_(group, group)])
            if share < 1 - _SURE:
                pairs.append(_pair(group[row], group[column], share, one_polyp=True))
    return tuple(sorted(pairs, key=lambda pair: (-pair.uncertainty, pair.first, pair.second)))


def _pair(one: np.int64, other: np.int64, share: float, *, one_polyp: bool) -> DoubtfulPair:
    first, second = sorted((int(one), int(other)))
    return DoubtfulPair(first, second, share, "two?" if one_polyp else "one?")


def _weakest_link(together: NDArray[np.float32]) -> tuple[int, int, float]:
    """The lowest edge of the maximum spanning tree of a group, as (row, column, share)."""
    n = len(together)
    reached = np.zeros(n, bool)
    best, from_ = together[0].astype(np.float64), np.zeros(n, np.int64)
    reached[0] = True
    weakest = (0, 0, np.inf)
    for _ in range(n - 1):
        nearest = int(np.argmax(np.where(reached, -1.0, best)))
        if best[nearest] < weakest[2]:
            weakest = (int(from_[nearest]), nearest, float(best[nearest]))
        reached[nearest] = True
        closer = together[nearest] > best
        best[closer], from_[closer] = together[nearest][closer], nearest
    return weakest
