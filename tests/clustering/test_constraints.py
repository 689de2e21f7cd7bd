"""Constraints: no method ever breaks one."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polypcount.clustering import METHODS, Constraints, GroupingInput, Method, Oracle, sweep
from polypcount.errors import DataError
from tests.clustering.inputs import partition, polyps_in_time

GROUPING = [kind for kind in METHODS.values() if kind is not Oracle]


@st.composite
def constrained(draw: st.DrawFn) -> GroupingInput:
    """Tracklets with constraints that do not contradict each other."""
    count = draw(st.integers(2, 14))
    base = polyps_in_time(count, draw(st.integers(0, 1000)))
    parts = draw(st.lists(st.integers(0, count + 3), min_size=count, max_size=count))
    pairs = list(itertools.combinations(range(count), 2))
    must = [(i, j) for i, j in pairs if parts[i] == parts[j]]
    may_not = [(j, i) for i, j in pairs if parts[i] != parts[j]]
    cannot = draw(st.lists(st.sampled_from(may_not), max_size=12)) if may_not else []
    return GroupingInput.of(base.vectors, base.positions, np.array(cannot, int), np.array(must, int))


@pytest.mark.parametrize("kind", GROUPING, ids=lambda kind: kind.name)
@settings(max_examples=25)
@given(tracklets=constrained())
def test_no_constraint_is_ever_broken(kind: type[Method], tracklets: GroupingInput) -> None:
    labels = sweep(kind(), tracklets, kind().grid("coarse")).labels
    for i, j in tracklets.constraints.cannot_link:
        assert (labels[:, i] != labels[:, j]).all()
    for i, j in tracklets.constraints.must_link:
        assert (labels[:, i] == labels[:, j]).all()


@pytest.mark.parametrize("kind", GROUPING, ids=lambda kind: kind.name)
def test_without_constraints_nothing_changes(kind: type[Method]) -> None:
    tracklets = polyps_in_time(10, 2)
    empty = GroupingInput.of(tracklets.vectors, tracklets.positions, np.empty((0, 2), int), [])
    grid = kind().grid("coarse")
    assert (sweep(kind(), tracklets, grid).labels == sweep(kind(), empty, grid).labels).all()


def test_a_broken_group_joins_again_by_similarity() -> None:
    # 0-1 and 2-3 are alike, 1-2 a little less, and 0 cannot be with 3: the weakest link, 1-2, is cut.
    similarity = np.array([[1, 0.9, 0.5, 0], [0.9, 1, 0.6, 0.5], [0.5, 0.6, 1, 0.8], [0, 0.5, 0.8, 1]])
    rules = Constraints(4, np.array([[3, 0]]))
    together = np.zeros((1, 4), np.int32)
    assert partition(rules.part(together, similarity)[0]) == {frozenset({0, 1}), frozenset({2, 3})}
    assert partition(rules.part(together, similarity, 0.85)[0]) == {frozenset({0, 1}), frozenset({2}), frozenset({3})}
    # With 0 barred from 1 as well, 1 goes with 2 and 3.
    rules = Constraints(4, np.array([[3, 0], [0, 1]]))
    assert partition(rules.part(together, similarity)[0]) == {frozenset({0}), frozenset({1, 2, 3})}
    # Groups without a forbidden pair are left as they are.
    apart = np.array([[2, 1, 1, 2], [3, 3, 0, 0]], np.int32)
    parted = rules.part(apart, similarity)
    assert partition(parted[0]) == {frozenset({0}), frozenset({3}), frozenset({1, 2})}
    assert partition(parted[1]) == {frozenset({0}), frozenset({1}), frozenset({2, 3})}


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 90), st.integers(0, 10_000), st.sampled_from([-np.inf, 0.3, 0.6]))
def test_joining_again_as_by_a_plain_calculation(count: int, seed: int, floor: float) -> None:
    rng = np.random.default_rng(seed)
    similarity = np.round(rng.random((count, count)), 1)  # with ties
    similarity = np.triu(similarity, 1) + np.triu(similarity, 1).T + np.eye(count)
    pairs = [(i, j) for i, j in rng.integers(0, count, (max(1, count // 3), 2)).tolist() if i != j]
    labels = rng.integers(0, 4, (5, count)).astype(np.int32)
    parted = Constraints(count, np.array(pairs, int).reshape(-1, 2)).part(labels, similarity, floor)
    apart = {frozenset(pair) for pair in pairs}
    for row, found in zip(labels, parted, strict=True):
        expected = set()
        for group in partition(row):
            broken = any(pair <= group for pair in apart)
            parts = [{unit} for unit in sorted(group)] if broken else [set(group)]
            for i, j in sorted(itertools.combinations(sorted(group), 2), key=lambda pair: -similarity[pair]):
                one, other = (next(part for part in parts if unit in part) for unit in (i, j))
                barred = any(frozenset((a, b)) in apart for a in one for b in other)
                if one is not other and similarity[i, j] >= floor and not barred:
                    parts.remove(other)
                    one |= other
            expected |= {frozenset(part) for part in parts}
        assert partition(found) == expected


def test_units_have_the_mean_similarity_of_their_tracklets() -> None:
    rules = Constraints(4, must_link=np.array([[1, 3]]))
    assert rules.unit.tolist() == [0, 1, 2, 1]
    similarity = np.arange(16.0).reshape(4, 4)
    united = rules.unite(similarity)
    assert united[0].tolist() == [0, (1 + 3) / 2, 2]
    assert united[1].tolist() == [(4 + 12) / 2, (5 + 7 + 13 + 15) / 4, (6 + 14) / 2]
    assert rules.spread(np.array([[0, 1, 0]], np.int32)).tolist() == [[0, 1, 0, 1]]


@pytest.mark.parametrize(
    ("cannot_link", "must_link", "message"),
    [
        ([[0, 2]], [[0, 1], [1, 2]], "tracklets 0 and 2 must be one polyp and cannot be"),
        ([[1, 1]], [], "cannot_link names tracklet 1 twice"),
        ([[0, 3]], [], r"cannot_link names tracklets \[0, 3\], but there are 3"),
        ([], [[-1, 0]], r"must_link names tracklets \[-1, 0\]"),
        ([0, 1], [], r"cannot_link must be pairs of tracklet rows, whole numbers \[m, 2\], found \[2\]"),
        ([[0.5, 1]], [], "cannot_link must be pairs"),
    ],
)
def test_bad_constraints(cannot_link: list[object], must_link: list[object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        GroupingInput.of(np.eye(3), None, cannot_link, must_link)  # type: ignore[arg-type]
