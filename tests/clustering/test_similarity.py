"""Similarities, against plain calculations."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polypcount.clustering import fuse, minmax, temporal_adjacency, visual_similarity
from polypcount.clustering.similarity import pair_values
from polypcount.errors import DataError

NUMBERS = st.floats(-50, 50).map(lambda number: round(number, 3))  # squares that do not vanish
VECTORS = st.integers(1, 6).flatmap(
    lambda d: st.lists(st.lists(NUMBERS, min_size=d, max_size=d), min_size=1, max_size=6)
)


@given(vectors=VECTORS)
def test_visual_similarities_equal_the_plain_calculation(vectors: list[list[float]]) -> None:
    cosine, euclid = visual_similarity(vectors), visual_similarity(vectors, "minmax-euclidean")
    distances = [[math.dist(a, b) for b in vectors] for a in vectors]
    low, high = min(map(min, distances)), max(map(max, distances))
    for i, a in enumerate(vectors):
        for j, b in enumerate(vectors):
            expected = 1 - (distances[i][j] - low) / (high - low) if high > low else 1.0
            assert euclid[i, j] == pytest.approx(expected, abs=1e-9)
            product = math.hypot(*a) * math.hypot(*b)
            if product > 1e-9:
                expected = (1 + sum(x * y for x, y in zip(a, b, strict=True)) / product) / 2
                assert cosine[i, j] == pytest.approx(1.0 if i == j else expected, abs=1e-9)
    for matrix in (cosine, euclid):
        assert (matrix == matrix.T).all()
        assert matrix.min() >= 0
        assert matrix.max() <= 1


def test_never_nan() -> None:
    same = np.ones((3, 4))
    assert visual_similarity(same, "minmax-euclidean").tolist() == np.ones((3, 3)).tolist()
    zeros = visual_similarity(np.zeros((2, 3)))
    assert zeros.tolist() == [[1, 0.5], [0.5, 1]]
    assert np.isfinite(visual_similarity([[1e300, 1e300], [1e-300, 0], [-1e300, 0]])).all()
    assert temporal_adjacency([0.3, 0.3], 5).tolist() == [[1, 1], [1, 1]]
    assert temporal_adjacency([0.1, 0.9], 0).tolist() == [[1, 1], [1, 1]]
    for empty in (visual_similarity(np.zeros((0, 5))), temporal_adjacency([], 1), minmax(np.zeros((0, 0)))):
        assert empty.shape == (0, 0)


@given(positions=st.lists(st.floats(0, 1), min_size=2, max_size=8), gamma=st.floats(0.1, 10))
def test_temporal_adjacency_equals_the_plain_calculation(positions: list[float], gamma: float) -> None:
    raw = [[math.exp(-gamma * abs(p - q)) for q in positions] for p in positions]
    low, high = min(map(min, raw)), max(map(max, raw))
    expected = [[(x - low) / (high - low) if high > low else 1.0 for x in row] for row in raw]
    assert temporal_adjacency(positions, gamma).tolist() == pytest.approx(np.array(expected), abs=1e-9)


def test_positions_may_be_frames_and_then_start_anywhere() -> None:
    frames = np.array([100, 350, 1000, 70_000])
    shares = temporal_adjacency(frames / 90_000, 3.5)
    assert temporal_adjacency(frames, 3.5, 90_000) == pytest.approx(shares, abs=1e-12)
    assert (temporal_adjacency(frames, 3.5, 90_000) == temporal_adjacency(frames + 12_345, 3.5, 90_000)).all()
    with pytest.raises(DataError, match="the duration must be a number above 0, found 0"):
        temporal_adjacency(frames, 1, 0)


def test_fusion() -> None:
    visual, temporal = np.array([[1, 0.4], [0.4, 1]]), np.array([[1, 0.0], [0.0, 1]])
    assert fuse(visual, temporal, 0.25).tolist() == [[1, 0.1], [0.1, 1]]
    assert fuse(visual, temporal, 1).tolist() == visual.tolist()
    assert fuse(visual, temporal, 0).tolist() == temporal.tolist()
    assert fuse(visual, temporal, 0.5, "product").tolist() == temporal.tolist()


def test_bad_input() -> None:
    with pytest.raises(DataError, match=r"must be numbers of the shape \[n, d\], found int64 \[3\]"):
        visual_similarity([1, 2, 3])
    with pytest.raises(DataError, match="must be finite, found nan in row 1"):
        visual_similarity([[1.0], [np.nan]])
    with pytest.raises(DataError, match="must be one of cosine, minmax-euclidean, found 'dot'"):
        visual_similarity([[1.0]], "dot")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="tracklet 1 has no position"):
        temporal_adjacency([0.5, np.nan], 1)
    with pytest.raises(DataError, match="gamma must be"):
        temporal_adjacency([0.5], -1)
    with pytest.raises(DataError, match="alpha must be between 0 and 1, found 2"):
        fuse(np.ones((1, 1)), np.ones((1, 1)), 2)
    with pytest.raises(DataError, match="must have one shape"):
        fuse(np.ones((1, 1)), np.ones((2, 2)), 0.5)


@pytest.mark.parametrize("count", [0, 1, 2, 64, 65, 150])
def test_large_matrices_are_filled_like_small_ones(count: int) -> None:
    vectors = np.random.default_rng(count).normal(size=(count, 5))
    similarity = visual_similarity(vectors)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.allclose(similarity, (1 + unit @ unit.T) / 2, atol=1e-12)
    assert np.array_equal(similarity, similarity.T)
    assert (np.diag(similarity) == 1).all()


@pytest.mark.parametrize("count", [0, 1, 2, 64, 65, 150])
def test_values_of_pairs_are_means_of_both_directions(count: int) -> None:
    matrix = np.random.default_rng(count).random((count, count))
    assert pair_values(matrix).tolist() == [
        (matrix[i, j] + matrix[j, i]) / 2 for i in range(count) for j in range(i + 1, count)
    ]
    members = np.arange(0, count, 2)
    assert pair_values(matrix, members).tolist() == pair_values(matrix[np.ix_(members, members)]).tolist()
