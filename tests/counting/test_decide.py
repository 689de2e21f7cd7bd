"""Groups of tracklets and how sure they are, against plain calculations."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polypcount.clustering import OperatingPoint
from polypcount.counting.decide import (
    REPETITIONS,
    Decision,
    PolypRange,
    certainty,
    doubtful_pairs,
    interval,
    share_together,
)
from polypcount.counting.decide import decide as decide_about
from polypcount.counting.evidence import Evidence

POINT = OperatingPoint(
    method="temporal-agglomerative",
    parameters={"alpha": 1.0, "gamma": 1.0, "threshold": 0.8, "similarity": "cosine"},
    cannot_link=True,
    varied="threshold",
    values=(0.7, 0.8, 0.9),
    level=0.9,
    selected_on="vectors of a test",
)
NONE = np.empty((0, 2), np.int64)


def decide(
    vectors: np.ndarray,
    start: np.ndarray,
    duration: float,
    together: np.ndarray,
    point: OperatingPoint,
    polyp_range: PolypRange | None = None,
) -> Decision:
    """Decide about tracklets that have these vectors [n, 1 + draws, d] and start in these frames."""
    evidence = [
        Evidence(row, 0, int(frame), int(frame) + 1, 1, vector)
        for row, (frame, vector) in enumerate(zip(start, vectors, strict=True))
    ]
    return decide_about(evidence, together, duration, point, polyp_range)


def vectors_of(*angles: float, draws: int = 4) -> np.ndarray:
    """Unit vectors at these angles in degrees, every resample the same."""
    turned = np.deg2rad(angles)
    plane = np.stack([np.cos(turned), np.sin(turned)], axis=1).astype(np.float32)
    return np.repeat(plane[:, None], 1 + draws, axis=1)


def test_nothing_one_and_two() -> None:
    nothing = decide(np.empty((0, 5, 2), np.float32), np.empty(0, np.int64), 1, NONE, POINT)
    assert len(nothing.labels) == 0
    assert (nothing.low, nothing.high, nothing.pairs) == (0, 0, ())
    one = decide(vectors_of(0), np.array([3]), 100, NONE, POINT)
    assert one.labels.tolist() == [0]
    assert (one.low, one.high) == (1, 1)
    assert one.certainty.tolist() == [1.0]
    alike = decide(vectors_of(0, 0), np.array([3, 50]), 100, NONE, POINT)
    assert alike.labels.tolist() == [0, 0]
    assert alike.together.tolist() == [[1, 1], [1, 1]]
    different = decide(vectors_of(0, 180), np.array([3, 50]), 100, NONE, POINT)
    assert different.labels.tolist() == [0, 1]
    assert (different.low, different.high) == (2, 2)


def test_equal_ones_seen_in_one_frame_are_two() -> None:
    found = decide(vectors_of(0, 0), np.array([3, 3]), 100, np.array([[0, 1]]), POINT)
    assert found.labels.tolist() == [0, 1]
    assert found.together[0, 1] == 0
    assert (found.low, found.high) == (2, 2)


def test_what_lies_between_the_values_is_uncertain() -> None:
    # (1 + cos) / 2 of 55 degrees is 0.787: below two thirds of the values between 0.7 and 0.9, above the rest.
    found = decide(vectors_of(0, 55), np.array([3, 50]), 100, NONE, POINT)
    similarity = (1 + np.cos(np.deg2rad(55))) / 2
    expected = np.mean(np.quantile(POINT.values, (np.arange(REPETITIONS) + 0.5) / REPETITIONS) < similarity)
    assert found.together[0, 1] == pytest.approx(expected, abs=1 / REPETITIONS)
    assert found.labels.tolist() == [0, 1]
    assert (found.low, found.high) == (1, 2)
    (pair,) = found.pairs
    assert (pair.first, pair.second, pair.doubt) == (0, 1, "one?")
    assert pair.uncertainty == pytest.approx(1 - abs(2 * found.together[0, 1] - 1))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 7), st.integers(0, 10_000))
def test_whatever_comes_the_parts_agree(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, 6, 3)).astype(np.float32)
    start = np.sort(rng.integers(0, 500, n))
    found = decide(vectors, start, 600, NONE, POINT)
    groups = len(np.unique(found.labels))
    assert 1 <= found.low <= groups <= found.high <= n
    assert np.allclose(found.together, found.together.T)
    assert np.allclose(np.diag(found.together), 1)
    assert ((found.certainty > 0) & (found.certainty <= 1)).all()
    again = decide(vectors, start, 600, NONE, POINT)
    assert np.array_equal(again.together, found.together)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 10_000))
def test_certainty_is_the_mean_of_the_largest_jaccard_overlap(n: int, repetitions: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.unique(rng.integers(0, 3, n), return_inverse=True)[1].astype(np.int32)
    repeated = rng.integers(0, 3, (repetitions, n)).astype(np.int32)
    expected = []
    for group in range(labels.max() + 1):
        mine = set(np.flatnonzero(labels == group))
        best = []
        for row in repeated:
            others = [set(np.flatnonzero(row == value)) for value in set(row.tolist())]
            best.append(max(len(mine & other) / len(mine | other) for other in others))
        expected.append(np.mean(best))
    assert certainty(labels, repeated) == pytest.approx(expected)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 6), st.integers(0, 10_000))
def test_the_weakest_link_is_where_a_group_falls_apart(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    share = np.round(rng.uniform(0.1, 0.9, (n, n)), 3)
    together = np.triu(share, 1) + np.triu(share, 1).T + np.eye(n)
    (pair,) = doubtful_pairs(np.zeros(n, np.int32), together.astype(np.float32))
    # By trying all: the best way to cut in two leaves the least between the parts.
    cuts = [
        max(together[i, j] for i in part for j in range(n) if j not in part)
        for size in range(1, n)
        for part in itertools.combinations(range(n), size)
    ]
    assert pair.together == pytest.approx(min(cuts), abs=1e-6)
    assert pair.doubt == "two?"


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 10_000))
def test_two_groups_that_may_be_one_have_the_pair_that_is_together_most_often(n: int, most: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.unique(rng.integers(0, most, n), return_inverse=True)[1].astype(np.int32)
    share = np.triu(rng.integers(0, 6, (n, n)), 1)  # few values, so that there are ties; 3 / 60 is a doubt
    together = ((share + share.T) / 60).astype(np.float32)
    expected: dict[tuple[int, int], tuple[int, int, float]] = {}
    for i, j in itertools.product(range(n), range(n)):
        key = (labels[i], labels[j])
        if key[0] < key[1] and together[i, j].item() > max(0.05, expected.get(key, (0, 0, 0.0))[2]):
            expected[key] = (min(i, j), max(i, j), together[i, j].item())
    pairs = [pair for pair in doubtful_pairs(labels, together) if pair.doubt == "one?"]
    assert {(pair.first, pair.second, pair.together) for pair in pairs} == set(expected.values())


@pytest.mark.parametrize("n", [1, 64, 150])
def test_the_share_is_counted_pair_by_pair(n: int) -> None:
    repeated = np.random.default_rng(n).integers(0, min(n, 7), (5, n)).astype(np.int32)
    expected = (repeated[:, :, None] == repeated[:, None]).sum(axis=0)
    assert np.array_equal(share_together(repeated), expected.astype(np.float32) / np.float32(5))


def test_the_interval_holds_the_count_and_most_repetitions() -> None:
    counts = np.array([2] * 4 + [3] * 52 + [5] * 4, np.int32)
    assert interval(counts, 3, 0.9) == (2, 5)
    assert interval(counts, 3, 0.5) == (3, 3)
    assert interval(counts, 7, 0.5) == (3, 7)
    assert interval(np.empty(0, np.int32), 0, 0.9) == (0, 0)


@pytest.mark.parametrize("wanted", range(1, 7))
def test_a_given_number_of_polyps_is_met(wanted: int) -> None:
    vectors, start = vectors_of(0, 3, 40, 47, 110, 180), np.arange(0, 60, 10)
    decision = decide(vectors, start, 100, NONE, POINT, (wanted, wanted))
    assert len(np.unique(decision.labels)) == wanted
    assert (decision.low, decision.high, decision.unmet) == (wanted, wanted, "")


def test_bounds_change_only_a_count_outside_them() -> None:
    vectors, start = vectors_of(0, 3, 40, 47, 110, 180), np.arange(0, 60, 10)
    free = decide(vectors, start, 100, NONE, POINT)
    count = len(np.unique(free.labels))
    assert np.array_equal(decide(vectors, start, 100, NONE, POINT, (1, None)).labels, free.labels)
    assert len(np.unique(decide(vectors, start, 100, NONE, POINT, (count + 1, None)).labels)) == count + 1
    assert len(np.unique(decide(vectors, start, 100, NONE, POINT, (1, count - 1)).labels)) == count - 1


def test_a_number_that_cannot_be_met_says_why() -> None:
    vectors, start = vectors_of(0, 0, 0), np.array([3, 3, 50])
    many = decide(vectors, start, 100, NONE, POINT, (5, 5))
    assert len(np.unique(many.labels)) == 3
    assert "3 tracklets" in many.unmet
    few = decide(vectors, start, 100, np.array([[0, 1]]), POINT, (1, 1))
    assert len(np.unique(few.labels)) == 2
    assert "one frame" in few.unmet
    assert few.labels[0] != few.labels[1]
    nothing = decide(np.empty((0, 5, 2), np.float32), np.empty(0, np.int64), 1, NONE, POINT, (2, 2))
    assert "0 tracklets" in nothing.unmet
