"""Pairs of tracklets of one video: in one group or two, of one polyp or two.

A pair is two different tracklets in no order. It is positive if both are in one group, and true if the grouping agrees
with the truth. FPR and TPR would be the same over ordered pairs, and FPR also if tracklets were paired with themselves.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.compiled import compiled
from polypcount.corpus.columns import Int32Column, int_column, refuse_rows
from polypcount.errors import DataError

Counts = NDArray[np.int64]
Rates = NDArray[np.float64]


@dataclass(frozen=True)
class PairCounts:
    """Pairs of tracklets of one video, n * (n - 1) / 2 in all.

    Attributes:
        true_positive: Number of pairs of one polyp, in one group.
        false_positive: Number of pairs of two polyps, in one group.
        false_negative: Number of pairs of one polyp, in two groups.
        true_negative: Number of pairs of two polyps, in two groups.
    """

    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int

    @property
    def fpr(self) -> float:
        """False positive rate, FP / (FP + TN): the share of pairs of two polyps that were merged; NaN without any."""
        return ratio(self.false_positive, self.false_positive + self.true_negative)

    @property
    def tpr(self) -> float:
        """True positive rate, TP / (TP + FN): the share of pairs of one polyp that were merged; NaN without any."""
        return ratio(self.true_positive, self.true_positive + self.false_negative)

    @property
    def precision(self) -> float:
        """TP / (TP + FP): the share of merged pairs that are of one polyp; NaN without any."""
        return ratio(self.true_positive, self.true_positive + self.false_positive)


@dataclass(frozen=True, eq=False)
class SweepCounts:
    """The counts of `PairCounts` at each point of a grid, int64[points], and int32[points] groups."""

    groups: NDArray[np.int32]
    true_positive: Counts
    false_positive: Counts
    false_negative: Counts
    true_negative: Counts

    @property
    def fpr(self) -> Rates:
        """FP / (FP + TN), float64[points]; NaN where no pair is of two polyps."""
        negative = self.false_positive + self.true_negative
        return np.where(negative > 0, self.false_positive / np.maximum(negative, 1), np.nan)


def pair_counts(labels: ArrayLike, truth: ArrayLike) -> PairCounts:
    """Count the pairs of n tracklets of one video, without forming them.

    With n_kc the tracklets of polyp c in group k, n_k those of the group and n_c those of the polyp, and C2(m) the
    m * (m - 1) / 2 pairs of m items: TP = sum of C2(n_kc), FP = sum of C2(n_k) - TP, FN = sum of C2(n_c) - TP and
    TN = C2(n) - TP - FP - FN.

    Args:
        labels: int[n], the group of each tracklet, any numbers of at least 0.
        truth: int[n], the polyp of each tracklet, any numbers of at least 0.
    """
    group, polyp = group_and_polyp(labels, truth)
    both, positive, same = (_pairs(sharing(values)) for values in (cell(group, polyp), group, polyp))
    every = len(group) * (len(group) - 1) // 2
    return PairCounts(both, positive - both, same - both, every - positive - same + both)


def sweep_counts(labels: ArrayLike, truth: ArrayLike) -> SweepCounts:
    """Count the pairs at every point of a grid, in time and memory that grow with n and not with its square.

    Args:
        labels: int32[points, n], the group of each tracklet at each point, numbers from 0 to n - 1.
        truth: int[n], the polyp of each tracklet, any numbers of at least 0.
    """
    polyp = polyp_column(truth)
    rows = np.asarray(labels)
    if rows.ndim != 2 or rows.shape[1] != len(polyp):
        raise DataError(f"labels must have the shape [points, {len(polyp)}], found {list(rows.shape)}")
    # The compiled loop uses labels as indices of an array, so they must not lie outside it.
    if rows.size and (rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= len(polyp)):
        raise DataError(f"labels must be whole numbers from 0 to {len(polyp) - 1}, found {rows.min()} to {rows.max()}")
    order = np.argsort(polyp, kind="stable")
    _, polyp_sizes = np.unique(polyp, return_counts=True)
    counts = np.zeros((4, len(rows)), np.int64)
    groups = np.zeros(len(rows), np.int32)
    _sweep(np.ascontiguousarray(rows, np.int32), order, polyp_sizes.astype(np.int64), groups, counts)
    return SweepCounts(groups, *counts)


def group_and_polyp(labels: ArrayLike, truth: ArrayLike) -> tuple[Int32Column, Int32Column]:
    """Both as int32[n]; `DataError` where a tracklet has no group or no known polyp, or where the lengths differ."""
    group, polyp = _column("labels", "group", labels, "give every tracklet a group"), polyp_column(truth)
    if len(group) != len(polyp):
        raise DataError(f"labels and truth must have a row per tracklet, found {len(group)} and {len(polyp)} rows")
    return group, polyp


def polyp_column(truth: ArrayLike) -> Int32Column:
    """The polyps int32[n]; `DataError` names the first tracklet whose polyp is unknown."""
    return _column("truth", "polyp", truth, "leave such tracklets out")


def cell(group: Int32Column, polyp: Int32Column) -> Counts:
    """A number for the cell (group, polyp) of the contingency table that each tracklet is in, int64[n]."""
    return (group.astype(np.int64) << 32) | polyp


def sharing(values: Int32Column | Counts) -> Counts:
    """Number of tracklets that share the value of each, itself included, int64[n]."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(counts[which], np.int64)


def ratio(part: float, whole: float) -> float:
    """Part / whole; NaN where the whole is 0."""
    return part / whole if whole else float("nan")


def _column(table: str, name: str, values: ArrayLike, mend: str) -> Int32Column:
    column = int_column(table, name, values, minimum=-(2**31))
    refuse_rows(table, column < 0, lambda row: f"the {name} is unknown, found {column[row]}; {mend}")
    return column


def _pairs(sizes: Counts) -> int:
    """Pairs of tracklets that share a value. Each of m has m - 1 partners, so every pair is summed twice."""
    return int((sizes - 1).sum()) // 2


@compiled()
def _sweep(labels, order, polyp_sizes, groups, counts):  # type: ignore[no-untyped-def]
    """Fill groups [points] and counts [4, points]: TP, FP, FN, TN.

    order: [n], the tracklets polyp by polyp; polyp_sizes: tracklets of each polyp. A tracklet that joins m others makes
    m pairs, so pairs are counted while groups grow.
    """
    points, n = labels.shape
    same = 0
    for size in polyp_sizes:
        same += size * (size - 1) // 2
    in_group, in_cell = np.empty(n, np.int64), np.zeros(n, np.int64)
    for point in range(points):
        in_group[:] = 0
        positive, both, start = 0, 0, 0
        for size in polyp_sizes:
            for i in range(start, start + size):
                group = labels[point, order[i]]
                groups[point] += in_group[group] == 0
                positive += in_group[group]
                both += in_cell[group]
                in_group[group] += 1
                in_cell[group] += 1
            # Only the cells of this polyp were used. Clearing only those keeps a point at O(n).
            for i in range(start, start + size):
                in_cell[labels[point, order[i]]] = 0
            start += size
        counts[0, point] = both
        counts[1, point] = positive - both
        counts[2, point] = same - both
        counts[3, point] = n * (n - 1) // 2 - positive - same + both
