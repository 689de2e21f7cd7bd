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
from polypcount.clustering.similarity import Matrix
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
        """Similarities [units, units], with 0 between units that cannot be one polyp."""
        return np.where(self.forbidden, 0, similarity) if len(self.cannot_link) else similarity

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
        left, right = np.nonzero(np.triu(self.forbidden))
        broken = np.flatnonzero((labels[:, left] == labels[:, right]).any(axis=1))
        above, below, mean = _most_similar_first(similarity)
        near = np.searchsorted(-mean, -np.broadcast_to(floor, len(labels)), side="right")
        parted = labels.copy()
        for point in broken:
            _join(parted[point], self.forbidden, above[: near[point]], below[: near[point]])
        return parted

    def join_similarities(self, similarity: Matrix) -> NDArray[np.float64]:
        """Falling similarities at which units join by rule 3, if all of them start in one group."""
        above, below, mean = _most_similar_first(similarity)
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


def _most_similar_first(similarity: Matrix) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """All pairs of units, as two columns, and the similarity of each pair: the mean of both directions."""
    mean = (similarity + similarity.T) / 2
    above, below = np.triu_indices(len(mean), 1)
    order = np.argsort(-mean[above, below], kind="stable")
    above, below = above[order], below[order]
    return above, below, mean[above, below]


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
