"""Affinity propagation: the same as scikit-learn's, and stated answers where that leaves them open."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from polypcount.clustering import affinity_propagation
from polypcount.errors import DataError
from tests.clustering.inputs import scikit_learn

PREFERENCES = [-5.0, -1.0, -0.25, 0.0, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.0, 2.0]
KINDS = ("clusters", "ties", "near ties", "duplicates", "noise", "asymmetric")


def similarities(kind: str, count: int, seed: int) -> NDArray[np.float64]:
    """A matrix [n, n] of one of the kinds."""
    rng = np.random.default_rng(seed)
    if kind == "noise":
        values = rng.random((count, count))
        return np.asarray((values + values.T) / 2)
    if kind == "asymmetric":
        return np.round(rng.random((count, count)), 1)
    points = rng.normal(size=(count, 3)) + 5 * rng.integers(0, 4, count)[:, None]
    if kind in ("ties", "near ties"):
        points = np.round(points)
    if kind == "near ties":
        points += rng.normal(size=points.shape) * 10.0 ** -rng.integers(9, 17)
    if kind == "duplicates":
        points = points[rng.integers(0, max(2, count // 3), count)]
    distance = np.sqrt(((points[:, None] - points) ** 2).sum(axis=-1))
    return np.asarray(1 - distance / max(distance.max(), 1e-9))


def assert_same(similarity: NDArray[np.float64], preference: float, **options: float) -> bool:
    """Compare with scikit-learn; gives whether it converged."""
    exemplars, labels, iterations = scikit_learn(similarity, preference, **options)
    ours = affinity_propagation(similarity, [preference], **options)  # type: ignore[arg-type]
    assert ours.iterations[0] == iterations
    assert ours.labels[0].tolist() == np.array(exemplars)[labels].tolist()
    return bool(ours.converged[0])


@settings(max_examples=500)
@given(
    kind=st.sampled_from(KINDS),
    count=st.integers(3, 45),
    seed=st.integers(0, 10_000),
    preference=st.sampled_from(PREFERENCES) | st.floats(-2, 1.5),
    damping=st.sampled_from([0.5, 0.6, 0.8, 0.9, 0.95]),
    limits=st.sampled_from([(500, 50), (200, 15), (60, 50), (20, 15), (30, 50)]),
)
def test_labels_and_iterations_are_those_of_scikit_learn(
    kind: str, count: int, seed: int, preference: float, damping: float, limits: tuple[int, int]
) -> None:
    max_iter, convergence_iter = limits
    assert_same(
        similarities(kind, count, seed),
        preference,
        damping=damping,
        max_iter=max_iter,
        convergence_iter=convergence_iter,
    )


def test_many_preferences_at_a_time_in_every_kind() -> None:
    for kind in KINDS:
        for seed in range(4):
            similarity = similarities(kind, 3 + 7 * seed, seed)
            swept = affinity_propagation(similarity, PREFERENCES)
            for point, preference in enumerate(PREFERENCES):
                exemplars, labels, iterations = scikit_learn(similarity, preference)
                assert swept.labels[point].tolist() == np.array(exemplars)[labels].tolist()
                assert swept.iterations[point] == iterations


def test_non_converging_cases_are_the_same() -> None:
    converged = [assert_same(similarities("asymmetric", 20, seed), 0.75, damping=0.5, max_iter=60) for seed in range(8)]
    assert not all(converged)


def groups(similarity: object, preference: float) -> list[int]:
    """The exemplar of each point."""
    labels: list[int] = affinity_propagation(similarity, [preference]).labels[0].tolist()  # type: ignore[arg-type]
    return labels


def test_small_cases_have_stated_answers() -> None:
    none = affinity_propagation(np.zeros((0, 0)), [0.5])
    assert (none.labels.shape, none.converged.tolist()) == ((1, 0), [True])
    one = affinity_propagation([[0.3]], [9.0])
    assert (one.labels.tolist(), one.iterations.tolist()) == ([[0]], [0])
    for preference, expected in ((0.6, [0, 0]), (0.7, [0, 0]), (0.71, [0, 1])):
        assert groups([[1, 0.7], [0.7, 1]], preference) == expected
    assert groups([[0, 0.2], [0.8, 0]], 0.5) == [0, 0], "the mean of both directions"
    equal = np.full((4, 4), 0.5)
    assert groups(equal, 0.5) == [0, 0, 0, 0]
    assert groups(equal, 0.6) == [0, 1, 2, 3]


def test_no_exemplar_means_every_point_alone() -> None:
    result = affinity_propagation(similarities("clusters", 12, 3), [-5.0], max_iter=1)
    assert not result.converged[0]
    assert result.labels[0].tolist() == list(range(12))


def test_the_input_is_left_alone_and_its_diagonal_does_not_matter() -> None:
    matrix = similarities("clusters", 15, 1)
    before = matrix.copy()
    expected = groups(matrix, 0.4)
    assert (matrix == before).all()
    np.fill_diagonal(matrix, -7)
    assert groups(matrix, 0.4) == expected
    assert groups(matrix.astype(np.float32), 0.4) == expected


@pytest.mark.parametrize(
    ("similarity", "preference", "message"),
    [
        (np.zeros((2, 3)), 0.0, r"\[n, n\], found \[2, 3\]"),
        (np.array([[0, np.nan], [0, 0]]), 0.0, "nan in row 0, column 1"),
        (np.full((3, 3), 1e300), 0.0, r"1e\+300"),
        (np.zeros((3, 3)), np.inf, "preferences"),
    ],
)
def test_bad_input(similarity: NDArray[np.float64], preference: float, message: str) -> None:
    with pytest.raises(DataError, match=message):
        affinity_propagation(similarity, [preference])
