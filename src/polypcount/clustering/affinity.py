"""Affinity propagation, the same to the last bit as scikit-learn's, compiled.

Two messages are exchanged between all pairs of n points until the same points have been exemplars for a while. With
S the similarities and the preference on their diagonal, R the responsibilities and A the availabilities, and d the
damping, one iteration is

    R[i, k] <- d * R[i, k] + (1 - d) * (S[i, k] - max over j != k of (A[i, j] + S[i, j]))
    A[i, k] <- d * A[i, k] + (1 - d) * min(0, R[k, k] + sum over j not in {i, k} of max(0, R[j, k]))
    A[k, k] <- d * A[k, k] + (1 - d) * (sum over j != k of max(0, R[j, k]))

and k is an exemplar where R[k, k] + A[k, k] > 0. To give the same labels as scikit-learn in every tie, sums are taken
in the same order, nothing is contracted or reordered, and the same tiny noise is added to S.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

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
    matrix = np.array(similarity, np.float64)
    _check(matrix, damping, max_iter, convergence_iter)
    if not np.isfinite(preference):
        raise DataError(f"the preference must be a finite number, found {preference}")
    noise = _noise(len(matrix), random_state)
    buffers = np.empty((3, *matrix.shape))
    owner = np.empty(len(matrix), np.int32)
    iterations, converged = _solve(
        matrix, float(preference), noise, damping, max_iter, convergence_iter, buffers, owner
    )
    exemplars, labels = np.unique(owner, return_inverse=True)
    return Propagation(labels.astype(np.int32), exemplars, bool(converged), int(iterations))


def _check(matrix: Matrix, damping: float, max_iter: int, convergence_iter: int) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"similarities must have the shape [n, n], found {list(matrix.shape)}")
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise DataError(f"similarities must be finite, found {matrix[row, column]} in row {row}, column {column}")
    if not 0.5 <= damping < 1:
        raise DataError(f"damping must be at least 0.5 and below 1, found {damping}")
    if max_iter < 1 or convergence_iter < 1:
        raise DataError(f"max_iter and convergence_iter must be at least 1, found {max_iter} and {convergence_iter}")


@lru_cache(maxsize=64)
def _noise(count: int, random_state: int) -> Matrix:
    """The normal numbers [n, n] that scikit-learn draws to keep messages from swinging between equal points."""
    noise = np.random.RandomState(random_state).standard_normal((count, count))
    noise.flags.writeable = False
    return noise


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _solve(similarity, preference, noise, damping, max_iter, convergence_iter, buffers, owner):  # type: ignore[no-untyped-def]
    """Fill `owner` [n] with the exemplar of each point; gives (iterations, converged).

    buffers: [3, n, n] to work in, with any content.
    """
    n = len(similarity)
    if n <= 1:
        owner[:] = 0
        return 0, True
    lowest, highest = similarity[0, 1], similarity[0, 1]
    for i in range(n):
        for j in range(n):
            if i != j:
                lowest = min(lowest, similarity[i, j])
                highest = max(highest, similarity[i, j])
    if n == 2 or lowest == highest:
        middle = lowest if lowest == highest else (lowest + highest) / 2
        for i in range(n):
            owner[i] = i if preference > middle else 0
        return 0, True
    messages, responsibility, availability = buffers[0], buffers[1], buffers[2]
    eps, tiny = np.finfo(np.float64).eps, np.finfo(np.float64).tiny * 100
    for i in range(n):
        for j in range(n):
            value = preference if i == j else similarity[i, j]
            messages[i, j] = value + (eps * value + tiny) * noise[i, j]
    # A preference above every similarity makes each point its own exemplar from the first iteration on, and nothing
    # can change that; the iterations would only confirm it. The margin is far above the noise.
    if preference - highest > 1e-9 * max(1.0, abs(preference), abs(highest)) and max_iter > convergence_iter:
        for i in range(n):
            owner[i] = i
        return convergence_iter + 1, True
    responsibility[:] = 0
    availability[:] = 0
    is_exemplar = np.zeros(n, np.bool_)
    iterations, converged = _iterate(
        messages, responsibility, availability, damping, max_iter, convergence_iter, is_exemplar
    )
    if is_exemplar.any():
        _assign(messages, np.flatnonzero(is_exemplar), owner)
    else:
        converged = False
        for i in range(n):
            owner[i] = i
    return iterations, converged


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _iterate(s, r, a, damping, max_iter, convergence_iter, is_exemplar):  # type: ignore[no-untyped-def]
    """Exchange messages until the exemplars stay; gives (iterations, converged). a, r: zeros to begin with.

    Each iteration goes over the matrices twice, row by row: once for the responsibilities and their column sums, and
    once for the availabilities, with which it looks for the two highest values of a + s that the next one needs.
    """
    n = len(s)
    rest = 1 - damping
    column_sum, row = np.empty(n), np.empty(n)
    best, second, place = np.empty(n), np.empty(n), np.empty(n, np.int64)
    recent = np.zeros((n, convergence_iter), np.bool_)
    times = np.zeros(n, np.int64)
    for i in range(n):
        row[:] = s[i]
        best[i], second[i], place[i] = _two_highest(row)
    for iteration in range(max_iter):
        column_sum[:] = 0
        for i in range(n):
            s_row, r_row, top = s[i], r[i], best[i]
            p = place[i]
            at_place, sum_at_place, sum_at_diagonal = r_row[p], column_sum[p], column_sum[i]
            for j in range(n):
                value = r_row[j] * damping + (s_row[j] - top) * rest
                r_row[j] = value
                column_sum[j] += value if value > 0 else 0.0
            value = at_place * damping + (s_row[p] - second[i]) * rest
            r_row[p] = value
            column_sum[p] = sum_at_place + (value if value > 0 else 0.0)
            column_sum[i] = sum_at_diagonal + r_row[i]
        for i in range(n):
            s_row, r_row, a_row = s[i], r[i], a[i]
            at_diagonal = a_row[i]
            for j in range(n):
                lacking = (r_row[j] if r_row[j] > 0 else 0.0) - column_sum[j]
                value = a_row[j] * damping - (lacking if lacking > 0 else 0.0) * rest
                a_row[j] = value
                row[j] = value + s_row[j]
            a_row[i] = at_diagonal * damping - (r_row[i] - column_sum[i]) * rest
            row[i] = a_row[i] + s_row[i]
            best[i], second[i], place[i] = _two_highest(row)
        count, settled, slot = 0, True, iteration % convergence_iter
        for i in range(n):
            now = a[i, i] + r[i, i] > 0
            times[i] += int(now) - int(recent[i, slot])
            recent[i, slot] = is_exemplar[i] = now
            count += now
            settled &= times[i] == convergence_iter or times[i] == 0
        if iteration >= convergence_iter and settled and count > 0:
            return iteration + 1, True
    return max_iter, False


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _two_highest(values):  # type: ignore[no-untyped-def]
    """The highest value, the second highest, and where the highest first stands; that place is overwritten."""
    best = _highest(values)
    place = 0
    while values[place] != best:
        place += 1
    values[place] = -np.inf
    return best, _highest(values), place


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _highest(values):  # type: ignore[no-untyped-def]
    """The highest value, eight side by side: a maximum has no order, so one instruction can take all eight."""
    n = len(values)
    whole = n - n % 8
    h0 = h1 = h2 = h3 = h4 = h5 = h6 = h7 = -np.inf
    for j in range(0, whole, 8):
        v = values[j]
        h0 = v if v > h0 else h0
        v = values[j + 1]
        h1 = v if v > h1 else h1
        v = values[j + 2]
        h2 = v if v > h2 else h2
        v = values[j + 3]
        h3 = v if v > h3 else h3
        v = values[j + 4]
        h4 = v if v > h4 else h4
        v = values[j + 5]
        h5 = v if v > h5 else h5
        v = values[j + 6]
        h6 = v if v > h6 else h6
        v = values[j + 7]
        h7 = v if v > h7 else h7
    for j in range(whole, n):
        v = values[j]
        h0 = v if v > h0 else h0
    return max(max(max(h0, h1), max(h2, h3)), max(max(h4, h5), max(h6, h7)))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _assign(s, exemplars, owner):  # type: ignore[no-untyped-def]
    """Give each point to the exemplar most similar to it, let each group choose its best exemplar, and assign again."""
    n, groups = len(s), len(exemplars)
    group = np.empty(n, np.int64)
    for turn in range(2):
        for i in range(n):
            best = 0
            for k in range(1, groups):
                if s[i, exemplars[k]] > s[i, exemplars[best]]:
                    best = k
            group[i] = best
        for k in range(groups):
            group[exemplars[k]] = k
        if turn == 0:
            for k in range(groups):
                members = np.flatnonzero(group == k)
                best_sum = -np.inf
                for candidate in members:
                    total = 0.0
                    for member in members:
                        total += s[member, candidate]
                    if total > best_sum:
                        exemplars[k], best_sum = candidate, total
    for i in range(n):
        owner[i] = exemplars[group[i]]
