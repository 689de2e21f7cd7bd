"""The compiled core of affinity propagation: messages between points, the same to the last bit as scikit-learn's.

With S the similarities and the preference on their diagonal, R the responsibilities and A the availabilities, and d the
damping, one iteration is

    R[i, k] <- d * R[i, k] + (1 - d) * (S[i, k] - max over j != k of (A[i, j] + S[i, j]))
    A[i, k] <- d * A[i, k] + (1 - d) * min(0, R[k, k] + sum over j not in {i, k} of max(0, R[j, k]))
    A[k, k] <- d * A[k, k] + (1 - d) * (sum over j != k of max(0, R[j, k]))

and k is an exemplar where R[k, k] + A[k, k] > 0. To give the same labels as scikit-learn in every tie, sums are taken
in the same order, no operation is contracted or reordered, and the same tiny noise is added to S.

An iteration goes over the matrices twice, row by row. Two things make it fast. Rows are padded to whole vectors of the
processor, with similarities of minus infinity, which change no result. And the two highest values of a row of A + S are
nearly always in the same columns as before, so one maximum over the rest of the row finds them.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from polypcount.compiled import compiled

_VECTOR = 8  # float64 values in the widest vector of a processor
LARGEST = 1e100  # messages of similarities up to this cannot overflow


def _maximum(typing_context: Any, x: Any, y: Any) -> Any:  # noqa: ARG001
    """The larger of two numbers that are not NaN, in the form that LLVM recognises as a maximum and vectorises."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        number = ir.DoubleType()
        function = builder.module.declare_intrinsic("llvm.maxnum", [number], ir.FunctionType(number, [number, number]))
        return builder.call(function, arguments, fastmath=("nnan", "nsz"))

    return types.float64(types.float64, types.float64), build


_larger: Any = intrinsic(_maximum)


@compiled()
def solve(similarity, preferences, noise, damping, max_iter, convergence_iter, owner, iterations, converged):  # type: ignore[no-untyped-def]
    """Propagate with each preference [points] on similarity and noise, both [n, n].

    Fills owner int32[points, n], the exemplar of each point, iterations int32[points] and converged bool[points].
    """
    n = len(similarity)
    iterations[:] = 0
    converged[:] = True
    owner[:] = 0
    if n <= 1:
        return
    lowest, highest = similarity[0, 1], similarity[0, 1]
    for i in range(n):
        for j in range(n):
            if i != j:
                lowest = min(lowest, similarity[i, j])
                highest = max(highest, similarity[i, j])
    all_equal = n == 2 or lowest == highest
    middle = lowest if lowest == highest else (lowest + highest) / 2
    eps, tiny = np.finfo(np.float64).eps, np.finfo(np.float64).tiny * 100
    width = -(-n // _VECTOR) * _VECTOR
    s, r, a = np.full((n, width), -np.inf), np.empty((n, width)), np.empty((n, width))
    for i in range(n):
        for j in range(n):
            s[i, j] = similarity[i, j] + (eps * similarity[i, j] + tiny) * noise[i, j]
    is_exemplar = np.zeros(n, np.bool_)
    for point in range(len(preferences)):
        preference = preferences[point]
        alone = all_equal and preference > middle
        # A preference above every similarity makes each point its own exemplar from the first iteration on, for
        # good, so iterating is not needed. The margin is far above the noise.
        if not all_equal and max_iter > convergence_iter:
            alone = preference - highest > 1e-9 * max(1.0, abs(preference), abs(highest))
            iterations[point] = convergence_iter + 1 if alone else 0
        if not (alone or all_equal):
            for i in range(n):
                s[i, i] = preference + (eps * preference + tiny) * noise[i, i]
            r[:] = 0
            a[:] = 0
            iterations[point], converged[point] = _iterate(s, r, a, damping, max_iter, convergence_iter, is_exemplar)
            if is_exemplar.any():
                _assign(s, np.flatnonzero(is_exemplar), owner[point])
            else:
                alone, converged[point] = True, False
        if alone:
            for i in range(n):
                owner[point, i] = i


@compiled()
def _iterate(s, r, a, damping, max_iter, convergence_iter, is_exemplar):  # type: ignore[no-untyped-def]
    """Exchange messages until the exemplars stay the same; returns (iterations, converged). a and r start as zeros."""
    n, width = s.shape
    rest = 1 - damping
    column_sum = np.empty(width)
    best, second, best_column = np.empty(n), np.empty(n), np.empty(n, np.int64)
    recent = np.zeros((n, convergence_iter), np.bool_)
    times = np.zeros(n, np.int64)
    for i in range(n):
        best[i], second[i], best_column[i] = _two_highest(a, s, i)
    for iteration in range(max_iter):
        column_sum[:] = 0
        for i in range(n):
            # The loop treats all columns alike; the two special ones, p and i, are corrected after it.
            p, top = best_column[i], best[i]
            at_best, sum_at_best, sum_at_diagonal = r[i, p], column_sum[p], column_sum[i]
            for j in range(width):
                value = r[i, j] * damping + (s[i, j] - top) * rest
                r[i, j] = value
                column_sum[j] += _larger(value, 0.0)
            value = at_best * damping + (s[i, p] - second[i]) * rest
            r[i, p] = value
            column_sum[p] = sum_at_best + _larger(value, 0.0)
            column_sum[i] = sum_at_diagonal + r[i, i]
        for i in range(n):
            p = best_column[i]
            at_diagonal, s_best, s_diagonal = a[i, i], s[i, p], s[i, i]
            s[i, p] = s[i, i] = -np.inf  # so that `others` is the maximum over all other columns
            others = -np.inf
            for j in range(width):
                lacking = _larger(r[i, j], 0.0) - column_sum[j]
                value = a[i, j] * damping - _larger(lacking, 0.0) * rest
                a[i, j] = value
                others = _larger(others, value + s[i, j])
            s[i, p], s[i, i] = s_best, s_diagonal
            a[i, i] = at_diagonal * damping - (r[i, i] - column_sum[i]) * rest
            diagonal = a[i, i] + s_diagonal
            if p == i:
                best[i], second[i] = diagonal, others
            else:
                best[i], second[i] = a[i, p] + s_best, max(others, diagonal)
            # Where both are equal, either may be called the highest.
            if best[i] < second[i]:
                best[i], second[i], best_column[i] = _two_highest(a, s, i)
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


@compiled()
def _two_highest(a, s, i):  # type: ignore[no-untyped-def]
    """The highest value of row i of a + s, the second highest, and the column of the highest."""
    best, second, column = -np.inf, -np.inf, 0
    for j in range(len(s)):
        value = a[i, j] + s[i, j]
        if value > best:
            best, second, column = value, best, j
        elif value > second:
            second = value
    return best, second, column


@compiled()
def _assign(s, exemplars, owner):  # type: ignore[no-untyped-def]
    """Give each point to its most similar exemplar, let each group choose its best exemplar, and assign again."""
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
