"""Affinity propagation with the labels and iteration counts of scikit-learn's, one preference or many at a time."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.clustering.messages import LARGEST, solve, workspace
from polypcount.clustering.similarity import Matrix
from polypcount.errors import DataError

Labels = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Propagation:
    """What affinity propagation found.

    labels: int32[n], the group of each point, numbered 0 .. groups - 1 in the order of their exemplars.
    exemplars: int32[groups], the point that stands for each group.
    converged: whether the exemplars had been the same for `convergence_iter` iterations.
    iterations: how many were run; 0 where none was needed.
    """

    labels: Labels
    exemplars: Labels
    converged: bool
    iterations: int


def affinity_propagation(
    similarity: ArrayLike,
    preference: float,
    *,
    damping: float = 0.9,
    max_iter: int = 500,
    convergence_iter: int = 50,
    random_state: int = 42,
) -> Propagation:
    """Group n points by their similarities [n, n], whose diagonal is not looked at.

    The higher the preference, the more groups. Stated answers for what the algorithm leaves open: no point gives no
    group and one point one group; two points are one group where their similarity (the mean of both directions) is at
    least the preference; points that are all equally similar are one group by the same rule; where no exemplar is
    found, every point is its own group and `converged` is False.
    """
    found = propagate(
        similarity,
        [preference],
        damping=damping,
        max_iter=max_iter,
        convergence_iter=convergence_iter,
        random_state=random_state,
    )
    exemplars, labels = np.unique(found.owner[0], return_inverse=True)
    return Propagation(labels.astype(np.int32), exemplars, bool(found.converged[0]), int(found.iterations[0]))


@dataclass(frozen=True, eq=False)
class Propagations:
    """What affinity propagation found at many points of a grid.

    owner: int32[points, n], the exemplar of each tracklet, so that tracklets of one group have one owner.
    iterations: int32[points]; converged: bool[points], as in `Propagation`.
    """

    owner: Labels
    iterations: Labels
    converged: NDArray[np.bool_]


def propagate(
    similarity: ArrayLike,
    preferences: ArrayLike,
    *,
    damping: float = 0.9,
    max_iter: int = 500,
    convergence_iter: int = 50,
    random_state: int = 42,
    work: Matrix | None = None,
) -> Propagations:
    """`affinity_propagation` of one matrix [n, n] with many preferences [points].

    The matrix is checked and made ready once, preferences that leave every tracklet alone are not run, and other
    threads can run meanwhile. work: of `messages.workspace(n)`, to be used again from call to call.
    """
    matrix = np.ascontiguousarray(similarity, np.float64)
    wanted = np.array(preferences, np.float64)
    _check(matrix, damping, max_iter, convergence_iter)
    if not (np.abs(wanted) <= LARGEST).all():
        raise DataError(f"the preference must be a finite number, found {wanted[~(np.abs(wanted) <= LARGEST)][0]}")
    owner = np.empty((len(wanted), len(matrix)), np.int32)
    iterations, converged = np.empty(len(wanted), np.int32), np.empty(len(wanted), np.bool_)
    solve(
        matrix,
        wanted,
        _noise(len(matrix), random_state),
        damping,
        max_iter,
        convergence_iter,
        workspace(len(matrix)) if work is None else work,
        owner,
        iterations,
        converged,
    )
    return Propagations(owner, iterations, converged)


def _check(matrix: Matrix, damping: float, max_iter: int, convergence_iter: int) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"similarities must have the shape [n, n], found {list(matrix.shape)}")
    if not (np.abs(matrix) <= LARGEST).all():
        row, column = np.argwhere(~(np.abs(matrix) <= LARGEST))[0]
        raise DataError(f"similarities must be finite, found {matrix[row, column]} in row {row}, column {column}")
    if not 0.5 <= damping < 1:
        raise DataError(f"damping must be at least 0.5 and below 1, found {damping}")
    if max_iter < 1 or convergence_iter < 1:
        raise DataError(f"max_iter and convergence_iter must be at least 1, found {max_iter} and {convergence_iter}")


@lru_cache(maxsize=1)
def _noise(count: int, random_state: int) -> Matrix:
    """The normal numbers [n, n] that scikit-learn draws to keep messages from swinging between equal points."""
    noise = np.random.RandomState(random_state).standard_normal((count, count))
    noise.flags.writeable = False
    return noise
