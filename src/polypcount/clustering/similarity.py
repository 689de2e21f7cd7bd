"""Similarity of tracklets: visual, in time, and both fused. All matrices are float64[n, n] in [0, 1]."""

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.errors import DataError

Matrix = NDArray[np.float64]
VisualSimilarity = Literal["cosine", "minmax-euclidean"]
Fusion = Literal["sum", "product"]
Block = tuple[slice, slice]
_DECIMALS = 12
_BLOCK = 64  # rows; with a few thousand columns, a block fits into the second-level cache


def visual_similarity(vectors: ArrayLike, kind: VisualSimilarity = "cosine") -> Matrix:
    """Similarity of embeddings.

    - cosine: (1 + cos) / 2, an absolute value; a zero vector has the cosine 0 with every other vector.
    - minmax-euclidean: 1 - minmax(distance), as in the published code; relative to the other tracklets of the video.

    Args:
        vectors: float[n, d].
        kind: Which of the two.
    """
    if kind not in get_args(VisualSimilarity):
        raise DataError(f"visual similarity must be one of {', '.join(get_args(VisualSimilarity))}, found {kind!r}")
    rows = finite_rows(vectors)
    if kind == "minmax-euclidean":
        from scipy.spatial.distance import cdist

        distance: Matrix = cdist(rows, rows)
        # Where all distances are equal, all similarities are 1, as for a constant matrix in `minmax`.
        return 1 - minmax(distance) if distance.size and np.ptp(distance) > 0 else np.ones_like(distance)
    return cosine_matrix(rows)


def cosine_matrix(rows: Matrix, change: Callable[[Matrix, Block], None] | None = None) -> Matrix:
    """(1 + cos) / 2 of every pair of vectors, float64[n, n], with 1 on the diagonal.

    Args:
        rows: Finite vectors, float64[n, d].
        change: Changes the values further, without another pass over the matrix; see `change_symmetric`.
    """
    unit = unit_vectors(rows)
    matrix: Matrix = unit @ unit.T  # numpy computes one half and mirrors it, so it is symmetric

    def fill(block: Matrix, where: Block) -> None:
        block += 1
        block /= 2
        # The product of equal vectors differs from 1 in the last bits, depending on their rows; rounding makes it 1.
        np.round(block, _DECIMALS, out=block)
        np.clip(block, 0, 1, out=block)
        if change is not None:
            change(block, where)

    change_symmetric(matrix, fill)
    np.fill_diagonal(matrix, 1)
    return matrix


def change_symmetric(matrix: Matrix, change: Callable[[Matrix, Block], None]) -> None:
    """Change the elements of a symmetric matrix, in place and in blocks that stay in the processor's cache.

    Args:
        matrix: float64[n, n].
        change: Called with blocks that cover the upper half, and their rows and columns; changes a block in place. The
            new value of an element must not depend on which of both halves it lies in.
    """
    for start in range(0, len(matrix), _BLOCK):
        rows, columns = slice(start, start + _BLOCK), slice(start, len(matrix))
        change(matrix[rows, columns], (rows, columns))
        matrix[start + _BLOCK :, rows] = matrix[rows, start + _BLOCK :].T


def pair_values(matrix: Matrix, members: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
    """The mean of both directions for each pair of rows, float64[n * (n - 1) / 2]: (0, 1), (0, 2), ..., (1, 2), ...

    Args:
        matrix: float64[n, n].
        members: Rows to take, rising; all by default.
    """
    count, filled = len(matrix) if members is None else len(members), 0
    values = np.empty(count * (count - 1) // 2)
    for start in range(0, count, _BLOCK):
        if members is None:
            mean = matrix[start : start + _BLOCK, start:] + matrix[start:, start : start + _BLOCK].T
        else:
            block, rest = members[start : start + _BLOCK], members[start:]
            mean = matrix[np.ix_(block, rest)] + matrix[np.ix_(rest, block)].T
        mean /= 2
        for row in range(len(mean)):
            partners = mean.shape[1] - row - 1
            values[filled : filled + partners] = mean[row, row + 1 :]
            filled += partners
    return values


def finite_rows(vectors: ArrayLike) -> Matrix:
    """Vectors as float64[n, d].

    Raises:
        DataError: A value is not a finite number; the message names the row.
    """
    rows = np.asarray(vectors)
    if rows.ndim != 2 or rows.dtype.kind not in "fiub":
        raise DataError(f"vectors must be numbers of the shape [n, d], found {rows.dtype} {list(rows.shape)}")
    if not np.isfinite(rows).all():
        bad = int(np.argmax(~np.isfinite(rows).all(axis=1)))
        raise DataError(f"vectors must be finite, found {rows[bad][~np.isfinite(rows[bad])][0]} in row {bad}")
    return rows.astype(np.float64)


def unit_vectors(rows: Matrix) -> Matrix:
    """Vectors [n, d] scaled to the length 1; a zero vector stays zero."""
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0)
    scaled = rows / np.where(largest > 0, largest, 1)  # so that no square overflows or becomes 0
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled / np.where(length > 0, length, 1))


def temporal_adjacency(positions: ArrayLike, gamma: float, duration: float = 1.0) -> Matrix:
    """minmax(exp(-gamma * abs(p_i - p_j) / duration)) of positions [n].

    Frame numbers, with the number of frames as the duration, are best: their differences are exact.

    Args:
        positions: float[n], where in the video each tracklet lies.
        gamma: At least 0; the higher, the faster nearness falls.
        duration: Length of the video in the unit of the positions; 1 if they are shares of it.
    """
    position = checked_positions(positions, duration)
    if not (np.isfinite(gamma) and gamma >= 0):
        raise DataError(f"gamma must be a number of at least 0, found {gamma}")
    return minmax(np.exp(-gamma * (np.abs(position[:, None] - position) / duration)))


def checked_positions(positions: ArrayLike, duration: float) -> NDArray[np.float64]:
    """Positions as float64[n]; `DataError` where they are no numbers or lie outside a video of this duration."""
    position = np.asarray(positions, np.float64)
    if position.ndim != 1:
        raise DataError(f"positions must have the shape [n], found {list(position.shape)}")
    if not np.isfinite(position).all():
        raise DataError(f"tracklet {int(np.argmax(~np.isfinite(position)))} has no position")
    if not (np.isfinite(duration) and duration > 0):
        raise DataError(f"the duration must be a number above 0, found {duration}")
    if position.size and np.ptp(position) > duration * (1 + 1e-9):
        raise DataError(
            f"positions span {np.ptp(position):g}, more than the duration of the video, {duration:g}: "
            "give both in one unit, such as frame numbers and the number of frames"
        )
    return position


def fuse(visual: Matrix, temporal: Matrix, alpha: float, how: Fusion = "sum") -> Matrix:
    """Fused similarity: alpha * V + (1 - alpha) * T, or the product V * T, in which alpha plays no part."""
    if visual.shape != temporal.shape:
        raise DataError(f"V and T must have one shape, found {list(visual.shape)} and {list(temporal.shape)}")
    if how not in get_args(Fusion):
        raise DataError(f"fusion must be one of {', '.join(get_args(Fusion))}, found {how!r}")
    if not 0 <= alpha <= 1:
        raise DataError(f"alpha must be between 0 and 1, found {alpha}")
    return visual * temporal if how == "product" else alpha * visual + (1 - alpha) * temporal


def minmax(matrix: Matrix) -> Matrix:
    """(x - min) / (max - min) over all elements; a constant matrix becomes all ones, never NaN."""
    if matrix.size == 0:
        return matrix
    low, high = matrix.min(), matrix.max()
    return (matrix - low) / (high - low) if high > low else np.ones_like(matrix)
