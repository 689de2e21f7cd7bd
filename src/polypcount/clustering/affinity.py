"""Affinity propagation with the labels and iteration counts of scikit-learn, for many preferences at a time."""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from polypcount.clustering.grouping import Sweep
from polypcount.clustering.messages import LARGEST, solve
from polypcount.clustering.similarity import Matrix
from polypcount.errors import DataError


def affinity_propagation(
    similarity: ArrayLike,
    preferences: ArrayLike,
    *,
    damping: float = 0.9,
    max_iter: int = 500,
    convergence_iter: int = 50,
    random_state: int = 42,
) -> Sweep:
    """Group n points by their similarities, once for each preference.

    The higher the preference, the more groups. Cases that the algorithm itself leaves open:

    - No point gives no group, and one point gives one group.
    - Two points are one group if their similarity (the mean of both directions) is at least the preference.
    - Points that are all equally similar are one group by the same rule.
    - Where no exemplar is found, every point is its own group and `converged` is False.

    The compiled work does not hold Python's lock, so several threads can run at a time.

    Args:
        similarity: float[n, n]. The diagonal is not used.
        preferences: float[points].
        damping: From 0.5 to below 1, the share of the old messages in the new ones.
        max_iter: Most iterations.
        convergence_iter: Affinity propagation has converged when the exemplars stayed the same for so many iterations.
        random_state: Seed of the tiny noise that keeps messages from swinging between equal points.

    Returns:
        A sweep over the preferences. Each group has the number of its exemplar.
    """
    matrix, preference = np.ascontiguousarray(similarity, np.float64), np.array(preferences, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"similarities must have the shape [n, n], found {list(matrix.shape)}")
    if not (np.abs(matrix) <= LARGEST).all():
        row, column = np.argwhere(~(np.abs(matrix) <= LARGEST))[0]
        raise DataError(f"similarities must be finite, found {matrix[row, column]} in row {row}, column {column}")
    if not (np.abs(preference) <= LARGEST).all():
        raise DataError(f"the preferences must be finite numbers, found {preference.tolist()}")
    sweep = Sweep.unfilled(len(preference), len(matrix))
    noise = _noise(len(matrix), random_state)
    solve(
        matrix, preference, noise, damping, max_iter, convergence_iter, sweep.labels, sweep.iterations, sweep.converged
    )
    return sweep


@lru_cache(maxsize=1)
def _noise(count: int, random_state: int) -> Matrix:
    """The normal numbers [n, n] that scikit-learn draws."""
    noise = np.random.RandomState(random_state).standard_normal((count, count))
    noise.flags.writeable = False
    return noise
