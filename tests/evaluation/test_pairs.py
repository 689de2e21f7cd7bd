"""Pair counts, against going through all pairs."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from polypcount.errors import DataError
from polypcount.evaluation import PairCounts, pair_counts, sweep_counts

Sample = tuple[list[int], list[int]]


@st.composite
def groupings(draw: st.DrawFn, smallest: int = 0) -> Sample:
    """Groups and polyps of the same tracklets, in numbers with holes."""
    count = draw(st.integers(smallest, 14))
    group = st.lists(st.sampled_from([0, 1, 2, 5, 900]), min_size=count, max_size=count)
    polyp = st.lists(st.sampled_from([0, 3, 4, 2**31 - 1]), min_size=count, max_size=count)
    return draw(group), draw(polyp)


def one_by_one(labels: list[int], truth: list[int]) -> PairCounts:
    """Every pair i < j, looked at."""
    seen = [
        (labels[i] == labels[j], truth[i] == truth[j])  # positive, of one polyp
        for i, j in combinations(range(len(labels)), 2)
    ]
    kinds = ((True, True), (True, False), (False, True), (False, False))
    return PairCounts(*(seen.count(kind) for kind in kinds))


@given(sample=groupings())
def test_counts_equal_those_of_all_pairs(sample: Sample) -> None:
    assert pair_counts(*sample) == one_by_one(*sample)


@given(sample=groupings(smallest=1))
def test_fpr_is_the_same_over_ordered_pairs_with_the_diagonal(sample: Sample) -> None:
    labels, truth = sample
    negative = [(i, j) for i, j in product(range(len(labels)), repeat=2) if truth[i] != truth[j]]
    merged = [labels[i] == labels[j] for i, j in negative]
    expected = sum(merged) / len(merged) if merged else np.nan
    assert pair_counts(labels, truth).fpr == pytest.approx(expected, nan_ok=True)


@given(sample=groupings(), data=st.data())
def test_order_and_names_do_not_matter(sample: Sample, data: st.DataObject) -> None:
    labels, truth = sample
    order = data.draw(st.permutations(range(len(labels))))
    new_group = dict(zip([0, 1, 2, 5, 900], data.draw(st.permutations(range(5))), strict=True))
    renamed = [new_group[labels[i]] for i in order], [2**31 - 1 - truth[i] for i in order]
    assert pair_counts(*renamed) == pair_counts(labels, truth)


def test_rates_and_where_they_are_undefined() -> None:
    counts = PairCounts(true_positive=3, false_positive=1, false_negative=6, true_negative=9)
    assert (counts.tpr, counts.fpr, counts.precision) == (3 / 9, 1 / 10, 3 / 4)
    one_polyp = pair_counts([0, 0, 1], [7, 7, 7])
    assert (one_polyp.tpr, one_polyp.precision) == (1 / 3, 1)
    assert np.isnan(one_polyp.fpr)
    all_different = pair_counts([0, 1], [0, 1])
    assert all_different.fpr == 0
    assert np.isnan([all_different.tpr, all_different.precision]).all()
    for few in ([], [0]):
        assert pair_counts(few, few) == PairCounts(0, 0, 0, 0)


@given(data=st.data(), count=st.integers(0, 12), points=st.integers(0, 6))
def test_a_sweep_equals_its_points(data: st.DataObject, count: int, points: int) -> None:
    numbers = st.integers(0, max(0, count - 1))
    grouping = st.lists(numbers, min_size=count, max_size=count)
    rows = data.draw(st.lists(grouping, min_size=points, max_size=points))
    truth = data.draw(st.lists(st.sampled_from([0, 1, 8]), min_size=count, max_size=count))
    sweep = sweep_counts(np.array(rows, np.int32).reshape(points, count), truth)
    assert len(sweep.groups) == len(sweep.fpr) == points
    for point, row in enumerate(rows):
        expected = one_by_one(row, truth)
        assert sweep.groups[point] == len(set(row))
        assert sweep.true_positive[point] == expected.true_positive
        assert sweep.false_positive[point] == expected.false_positive
        assert sweep.false_negative[point] == expected.false_negative
        assert sweep.true_negative[point] == expected.true_negative
        assert sweep.fpr[point] == pytest.approx(expected.fpr, nan_ok=True)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
def test_a_sweep_takes_any_whole_numbers_in_any_layout(dtype: type) -> None:
    rows: NDArray[Any] = np.asfortranarray(np.array([[0, 1, 2, 2], [0, 0, 0, 0]], dtype))
    sweep = sweep_counts(rows, [5, 5, 6, 6])
    assert sweep.groups.tolist() == [3, 1]
    assert sweep.true_positive.tolist() == [1, 2]
    assert sweep.fpr.tolist() == [0, 1]


@pytest.mark.parametrize("count", [0, 1])
def test_a_sweep_over_too_few_tracklets_for_a_pair(count: int) -> None:
    sweep = sweep_counts(np.zeros((3, count), np.int32), [4] * count)
    assert sweep.groups.tolist() == [count] * 3
    assert not np.any([sweep.true_positive, sweep.false_positive, sweep.false_negative, sweep.true_negative])
    assert np.isnan(sweep.fpr).all()


def test_counts_of_many_tracklets_do_not_overflow() -> None:
    count = 100_000  # more pairs than 32 bits can count
    everything = np.zeros(count, np.int32)
    expected = count * (count - 1) // 2
    assert pair_counts(everything, everything).true_positive == expected
    assert sweep_counts(everything[None], everything).true_positive.tolist() == [expected]


@pytest.mark.parametrize(
    ("labels", "truth", "message"),
    [
        ([0, 1], [0], "labels and truth must have a row per tracklet, found 2 and 1 rows"),
        ([0, -1], [0, 0], "labels row 1: the group is unknown"),
        ([0, 0, 0], [0, 0, -1], "truth row 2: the polyp is unknown"),
        ([0.5], [0], "labels row 0: group must be a whole number, found 0.5"),
    ],
)
def test_bad_input(labels: list[float], truth: list[int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        pair_counts(labels, truth)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(2, np.int32), r"\[points, 2\], found \[2\]"),
        (np.zeros((1, 3), np.int32), r"\[points, 2\], found \[1, 3\]"),
        (np.array([[0, 1], [0, 2]]), "from 0 to 1, found 0 to 2"),
        (np.array([[-1, 0]]), "found -1"),
        (np.zeros((1, 2)), "whole numbers"),
    ],
)
def test_bad_sweeps(labels: NDArray[np.generic], message: str) -> None:
    with pytest.raises(DataError, match=message):
        sweep_counts(labels, [0, 1])
    with pytest.raises(DataError, match="truth row 0: the polyp is unknown"):
        sweep_counts(np.zeros((1, 1), np.int32), [-1])
