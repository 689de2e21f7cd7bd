"""What is known of pairs of tracklets before any is compared: some cannot be one polyp, some must be.

Every method that groups honours both in the same way:

1. Tracklets that must be one polyp are one *unit* from the start; the similarity of two units is the mean over their
   tracklets. So no method can part them.
2. Units that cannot be one polyp have the similarity 0, the lowest there is.
3. A group that holds such a pair all the same, because both are like a third, is taken apart: its units join again, the
   most similar pair first, unless that would bring a forbidden pair together. So no such pair is left in any group.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from polypcount.clustering.similarity import Matrix
from polypcount.errors import DataError

Pairs = NDArray[np.int32]
Labels = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Constraints:
    """Pairs of the n tracklets of a video, each int32[m, 2] of rows; the order within a pair does not matter.

    cannot_link: such as two tracklets with boxes in one frame. must_link: such as two that a person has put together.
    Pairs that contradict each other are an error that names one.
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
        """The unit of each tracklet, int32[n], numbered in the order of their first tracklets."""
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
        """Similarities of units, means over those of their tracklets [n, n]; without must-links the same matrix."""
        units = len(self.forbidden)
        if units == self.count:
            return similarity
        share = np.zeros((units, self.count))
        share[self.unit, np.arange(self.count)] = 1
        share /= share.sum(axis=1, keepdims=True)
        return np.asarray(share @ similarity @ share.T)

    def lower(self, similarity: Matrix) -> Matrix:
        """The similarities of units, 0 between those that cannot be one polyp. Without cannot-links the same."""
        return np.where(self.forbidden, 0, similarity) if len(self.cannot_link) else similarity

    def part(self, labels: Labels, similarity: Matrix, floor: ArrayLike = -np.inf) -> Labels:
        """Take apart the groups that hold a forbidden pair, at each point of a grid.

        labels: int32[points, units], any numbers from 0 to units - 1. similarity: [units, units].
        floor: pairs less similar than this do not join again; one number, or one for each point.
        Gives labels of the same kind.
        """
        if not len(self.cannot_link):
            return labels
        left, right = np.nonzero(np.triu(self.forbidden))
        broken = np.flatnonzero((labels[:, left] == labels[:, right]).any(axis=1))
        mean = (similarity + similarity.T) / 2
        above, below = np.triu_indices(len(mean), 1)
        order = np.argsort(-mean[above, below], kind="stable")
        above, below = above[order], below[order]
        near = np.searchsorted(-mean[above, below], -np.broadcast_to(floor, len(labels)), side="right")
        parted = labels.copy()
        for point in broken:
            _part(parted[point], self.forbidden, above[: near[point]], below[: near[point]])
        return parted

    def spread(self, labels: Labels) -> Labels:
        """Labels of tracklets [points, n] from those of units [points, units], as rows of tracklets."""
        first = np.unique(self.unit, return_index=True)[1].astype(np.int32)
        return first[labels[:, self.unit]] if self.count else labels


def _pairs(name: str, given: ArrayLike, count: int) -> Pairs:
    pairs = np.asarray(given)
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


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _part(labels, forbidden, above, below):  # type: ignore[no-untyped-def]
    """Rule 3 for one grouping [units], in place. above, below: pairs of units, the most similar first.

    A new group is called after its first unit, which is free: a group keeps its name only if it is left whole.
    """
    n = len(labels)
    whole = np.ones(n, np.bool_)
    for i in range(n):
        for j in range(i):
            if labels[i] == labels[j] and forbidden[i, j]:
                whole[labels[i]] = False
    home = np.empty(n, np.int32)  # of each unit, the first unit of its group so far
    for i in range(n):
        home[i] = i
        if whole[labels[i]]:
            for j in range(i):
                if labels[j] == labels[i]:
                    home[i] = home[j]
                    break
    barred = forbidden.copy()  # between groups so far, kept in the row and column of their first unit
    for k in range(len(above)):
        i, j = above[k], below[k]
        if labels[i] != labels[j] or whole[labels[i]]:
            continue
        keep, gone = min(home[i], home[j]), max(home[i], home[j])
        if keep == gone or barred[keep, gone]:
            continue
        for m in range(n):
            if home[m] == gone:
                home[m] = keep
            barred[keep, m] |= barred[gone, m]
            barred[m, keep] |= barred[m, gone]
    labels[:] = home
