"""Groups of tracklets, how often each two of them fall together, and what that says of the count.

The groups are found again and again: at operating points that were right for other procedures, and with vectors of
resampled frames. So what is shown as uncertain is both how much is to be joined, which no recording tells by itself,
and how much the frames of a tracklet disagree.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering import Scene
from polypcount.counting.point import REPETITIONS, CountingPoint
from polypcount.counting.result import DoubtfulPair

SHORTEST_SECONDS = 60
_SURE = 0.05  # share of repetitions below which, or above the rest of which, there is no doubt worth showing


@dataclass(frozen=True, eq=False)
class Decision:
    """Groups of n tracklets, and how sure they are.

    labels: int32[n], 0 .. groups - 1 in the order of first tracklets.
    together: float32[n, n], share of repetitions in which two tracklets fall together.
    repeated: int32[repetitions], groups in each.
    low, high: of the count; see `interval`.
    certainty: float64[groups]; see `certainty`.
    pairs: decisions that change the count, most uncertain first.
    """

    labels: NDArray[np.int32]
    together: NDArray[np.float32]
    repeated: NDArray[np.int32]
    low: int
    high: int
    certainty: NDArray[np.float64]
    pairs: tuple[DoubtfulPair, ...]


def decide(
    vectors: NDArray[np.float32],
    start_frame: NDArray[np.int64],
    duration: float,
    cannot_link: NDArray[np.int64],
    point: CountingPoint,
) -> Decision:
    """Group the tracklets of one procedure.

    vectors: float32[n, 1 + resamples, d], those of all frames first. start_frame: int64[n], rising.
    duration: of the procedure in frames, see `duration_of`.
    cannot_link: int64[m, 2], pairs seen in one frame.
    """
    labels = groups_of(vectors[:, 0], start_frame, duration, cannot_link, point)
    values = point.repeated_values()
    repeated = np.zeros((REPETITIONS, len(labels)), np.int32)
    draws = vectors.shape[1] - 1
    for draw in range(min(draws, REPETITIONS)):
        mine = slice(draw, None, draws)
        scene = _scene(vectors[:, 1 + draw], start_frame, duration, cannot_link, point)
        repeated[mine] = point.labels_at(scene, values[mine])
    counts = np.array([len(np.unique(row)) for row in repeated], np.int32)
    together = np.zeros((len(labels), len(labels)), np.float32)
    for row in repeated:
        together += row[:, None] == row
    together /= REPETITIONS
    low, high = interval(counts, len(np.unique(labels)), point.level)
    return Decision(labels, together, counts, low, high, certainty(labels, repeated), doubtful_pairs(labels, together))


def duration_of(frame_count: int, fps: float | None) -> float:
    """What time between tracklets is a share of: the recording, in frames, but at least a minute.

    Otherwise seconds between two tracklets of a clip would count like the ends of a procedure. Without a frame rate,
    as of a folder of stills, nothing tells what a minute is.
    """
    return max(float(frame_count), SHORTEST_SECONDS * fps if fps else 1.0)


def groups_of(
    vectors: NDArray[np.float32],
    start_frame: NDArray[np.int64],
    duration: float,
    cannot_link: NDArray[np.int64],
    point: CountingPoint,
) -> NDArray[np.int32]:
    """int32[n], the group of each tracklet at the operating point itself. vectors: float32[n, d]."""
    return point.build().group(_scene(vectors, start_frame, duration, cannot_link, point)).labels


def _scene(
    vectors: NDArray[np.float32],
    start_frame: NDArray[np.int64],
    duration: float,
    cannot_link: NDArray[np.int64],
    point: CountingPoint,
) -> Scene:
    pairs = cannot_link if point.cannot_link else None
    return Scene.of(vectors, start_frame, pairs, duration=duration)


def interval(counts: NDArray[np.int32], count: int, level: float) -> tuple[int, int]:
    """Between the quantiles (1 - level) / 2 and (1 + level) / 2 of the repeated counts; never without the count."""
    if not len(counts):
        return count, count
    low = int(np.quantile(counts, (1 - level) / 2, method="lower"))
    high = int(np.quantile(counts, (1 + level) / 2, method="higher"))
    return min(low, count), max(high, count)


def certainty(labels: NDArray[np.int32], repeated: NDArray[np.int32]) -> NDArray[np.float64]:
    """float64[groups], mean over repetitions of the largest Jaccard overlap that one of their groups has with it."""
    found = np.zeros((len(repeated), len(np.unique(labels))))
    for row, groups in enumerate(repeated):
        shared = np.zeros((found.shape[1], int(groups.max(initial=-1)) + 1))
        np.add.at(shared, (labels, groups), 1)
        either = shared.sum(axis=1, keepdims=True) + shared.sum(axis=0) - shared
        found[row] = (shared / np.maximum(either, 1)).max(axis=1, initial=0)
    return np.asarray(found.mean(axis=0))


def doubtful_pairs(labels: NDArray[np.int32], together: NDArray[np.float32]) -> tuple[DoubtfulPair, ...]:
    """One pair of tracklets for each decision that changes the count, most uncertain first.

    Two groups may be one: the pair across them that falls together most often. A group may be two: the weakest link of
    the strongest chain through it (the lowest edge of its maximum spanning tree), at which it would fall apart.
    """
    found = []
    groups = int(labels.max(initial=-1)) + 1
    members = [np.flatnonzero(labels == group) for group in range(groups)]
    for first in range(groups):
        for second in range(first + 1, groups):
            block = together[np.ix_(members[first], members[second])]
            if (share := float(block.max())) > _SURE:
                row, column = divmod(int(block.argmax()), block.shape[1])
                found.append(_pair(members[first][row], members[second][column], share, one_polyp=False))
    for mine in members:
        if len(mine) > 1:
            row, column, share = _weakest_link(together[np.ix_(mine, mine)])
            if share < 1 - _SURE:
                found.append(_pair(mine[row], mine[column], share, one_polyp=True))
    return tuple(sorted(found, key=lambda pair: (-pair.uncertainty, pair.first, pair.second)))


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
