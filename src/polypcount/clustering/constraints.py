"""Pairs of tracklets that cannot be one polyp, and pairs that must be.

Every method that groups applies both in the same way:

1. Tracklets that must be one polyp are one *unit* from the start. The similarity of two units is the mean over their
   tracklets. So no method can separate them.
2. Units that cannot be one polyp have the similarity 0, the lowest possible.
3. A group may still hold such a pair, because both are similar to a third unit. It is taken apart: its units join
   again, the most similar pair first, unless that would bring a forbidden pair together.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from polypcount.clustering.grouping import Labels
from polypcount.clustering.similarity import Matrix, pair_values
from polypcount.compiled import compiled
from polypcount.errors import DataError

Pairs = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Constraints:
    """Pairs of the tracklets of a video. The order within a pair does not matter.

    Attributes:
        count: Number of tracklets.
        cannot_link: int32[m, 2] rows, such as two tracklets with boxes in one frame.
        must_link: int32[m, 2] rows, such as two tracklets that a person has joined.

    Raises:
        DataError: A row does not exist, or two pairs contradict each other.
    """

    count: int
    cannot_link: Pairs = field(default_factory=lambda: np.empty((0, 2), np.int32))
    must_link: Pairs = field(default_factory=lambda: np.empty((0, 2), np.int32))

    def __post_init__(self) -> None:
        for name in ("cannot_link", "must_link"):
            object.__setattr__(self, name, _pairs(name, getattr(self, name), self.count))
        left, right = self.cannot_link.T
        clash = self.unit[left] == self.unit[right]
        if clash.any():
            i, j = self.cannot_link[int(np.argmax(clash))]
            raise DataError(f"tracklets {i} and {j} must be one polyp and cannot be: take back one of the constraints")

    @cached_property
    def unit(self) -> NDArray[np.int32]:
        """The unit of each tracklet, int32[n]; units are numbered in the order of their first tracklets."""
        links = coo_array((np.ones(len(self.must_link), bool), tuple(self.must_link.T)), (self.count, self.count))
        if self.count == 0:
            return np.empty(0, np.int32)
        return np.asarray(connected_components(links, directed=False)[1], np.int32)

    @cached_property
    def forbidden(self) -> NDArray[np.bool_]:
        """Which units cannot be one polyp, bool[units, units], symmetric."""
        units = int(self.unit.max(initial=-1)) + 1
        matrix = np.zeros((units, units), bool)
        left, right = self.unit[self.cannot_link].T
        matrix[left, right] = matrix[right, left] = True
        return matrix

    def unite(self, similarity: Matrix) -> Matrix:
        """Similarities [units, units] from those of tracklets [n, n]: means over the tracklets of each unit."""
        units = len(self.forbidden)
        if units == self.count:
            return similarity
        share = np.zeros((units, self.count))
        share[self.unit, np.arange(self.count)] = 1
        share /= share.sum(axis=1, keepdims=True)
        return np.asarray(share @ similarity @ share.T)

    def lower(self, similarity: Matrix) -> Matrix:
        """Put 0 between units that cannot be one polyp, in place, and return the similarities [units, units]."""
        left, right = self.unit[self.cannot_link].T
        similarity[left, right] = similarity[right, left] = 0
        return similarity

    def part(self, labels: Labels, similarity: Matrix, floor: ArrayLike = -np.inf) -> Labels:
        """Take apart the groups that hold a forbidden pair, at each point of a grid.

        Args:
            labels: int32[points, units], numbers from 0 to units - 1.
            similarity: float64[units, units].
            floor: Pairs less similar than this do not join again; one number, or one for each point.

        Returns:
            Labels of the same shape and range.
        """
        if not len(self.cannot_link):
            return labels
        left, right = self.unit[self.cannot_link].T
        parted, floors = labels.copy(), np.broadcast_to(floor, len(labels))
        broken = np.zeros(labels.shape, bool)  # units of groups that are taken apart
        for point, row in enumerate(labels):
            both = row[left[row[left] == row[right]]]
            if len(both):
                broken[point] = np.isin(row, both)
                parted[point] = _first_units(row)
        points = np.flatnonzero(broken.any(axis=1))
        for members in _never_apart(parted[points], broken[points]):
            # The groups of most points are parts of those of another point, so the pairs are sorted once for all.
            above, below, mean = _most_similar_first(similarity, members)
            barred = self.forbidden[np.ix_(members, members)]
            near = np.searchsorted(-mean, -floors[points], side="right")
            for point, stop in zip(points.tolist(), near.tolist(), strict=True):
                inside = broken[point, members]
                if inside.any():
                    home = labels[point, members]
                    _join(home, barred, above[:stop], below[:stop])
                    parted[point, members[inside]] = members[home[inside]]
        return parted

    def join_similarities(self, similarity: Matrix) -> NDArray[np.float64]:
        """Falling similarities at which units join by rule 3, if all of them start in one group."""
        above, below, mean = _most_similar_first(similarity, np.arange(len(similarity)))
        return np.asarray(mean[_join(np.zeros(len(similarity), np.int32), self.forbidden, above, below)])

    def spread(self, labels: Labels) -> Labels:
        """Labels of tracklets [points, n] from those of units [points, units]."""
        first = np.unique(self.unit, return_index=True)[1].astype(np.int32)
        return first[labels[:, self.unit]] if self.count else labels


def _pairs(name: str, rows: ArrayLike, count: int) -> Pairs:
    pairs = np.asarray(rows)
    pairs = np.empty((0, 2), np.int32) if pairs.size == 0 else pairs
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise DataError(f"{name} must be pairs of tracklet rows, whole numbers [m, 2], found {list(pairs.shape)}")
    bad = ((pairs < 0) | (pairs >= count)).any(axis=1)
    if bad.any():
        raise DataError(f"{name} names tracklets {pairs[bad][0].tolist()}, but there are {count}, numbered from 0")
    same = pairs[:, 0] == pairs[:, 1]
    if same.any() and name == "cannot_link":
        raise DataError(f"cannot_link names tracklet {pairs[same][0, 0]} twice in one pair")
    return pairs.astype(np.int32)


def _first_units(labels: NDArray[np.int32]) -> NDArray[np.intp]:
    """The first unit of each unit's group [units]."""
    _, first, group = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(first[group])


def _never_apart(first: Labels, broken: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """The smallest sets of units such that each broken group of each point lies in one of them.

    Args:
        first: int32[points, units], first unit of each unit's group.
        broken: bool[points, units], whether its group is broken.
    """
    units = first.shape[1]
    rows = np.unique(np.nonzero(broken)[1] * np.int64(units) + first[broken])
    links = coo_array((np.ones(len(rows), bool), np.divmod(rows, max(units, 1))), (units, units))
    number = connected_components(links, directed=False)[1] if units else np.empty(0, np.int32)
    inside = np.flatnonzero(broken.any(axis=0))
    inside = inside[np.argsort(number[inside], kind="stable")]
    return np.split(inside, np.flatnonzero(np.diff(number[inside])) + 1) if len(inside) else []


def _most_similar_first(
    similarity: Matrix, members: NDArray[np.intp]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """All pairs of these units, as two columns of indices in `members`, and the similarity of each pair.

    The similarity is the mean of both directions. Equally similar pairs come in the order of their units.
    """
    mean, count = pair_values(similarity, members), np.arange(len(members), dtype=np.int32)
    order = np.argsort(-mean)  # not stable, but several times faster than a stable sort
    mean = mean[order]
    equal = mean[1:] == mean[:-1]
    if equal.any():
        tied = np.concatenate([equal, [False]]) | np.concatenate([[False], equal])
        run = np.concatenate([[0], np.cumsum(~equal)])[tied]
        order[tied] = np.sort(run * len(order) + order[tied]) % len(order)
    above = np.repeat(count, count[::-1])
    first = np.cumsum(count[::-1], dtype=np.int64) - count[::-1]  # where the pairs of a unit begin
    above = above[order]
    below = (order - first[above]).astype(np.int32) + above + np.int32(1)
    return above, below, mean


@compiled()
def _join(labels, forbidden, above, below):  # type: ignore[no-untyped-def]
    """Apply rule 3 to one grouping [units], in place. above, below: pairs of units, the most similar first.

    A group without a forbidden pair stays whole, since all pairs that connected it join again. A group is numbered by
    its first unit. Returns which pairs joined two groups, bool[pairs].
    """
    home = np.arange(len(labels), dtype=labels.dtype)  # of each unit, the first unit of its group so far
    barred = forbidden.copy()  # between groups so far, in the row and column of their first unit
    joined = np.zeros(len(above), np.bool_)
    for k in range(len(above)):
        i, j = above[k], below[k]
        keep, gone = min(home[i], home[j]), max(home[i], home[j])
        if labels[i] != labels[j] or keep == gone or barred[keep, gone]:
            continue
        joined[k] = True
        for m in range(len(labels)):
            if home[m] == gone:
                home[m] = keep
            barred[keep, m] |= barred[gone, m]
            barred[m, keep] |= barred[m, gone]
    labels[:] = home
    return joined
