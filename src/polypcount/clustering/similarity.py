"""How alike two tracklets are: by their looks, by their time, and by both. All matrices are float64[n, n] in [0, 1]."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.errors import DataError

Matrix = NDArray[np.float64]
VisualSimilarity = Literal["cosine", "minmax-euclidean"]
Fusion = Literal["sum", "product"]
_DECIMALS = 12


def visual_similarity(vectors: ArrayLike, kind: VisualSimilarity = "cosine") -> Matrix:
    """Similarity of embeddings [n, d].

    cosine: (1 + cos) / 2, an absolute value; a zero vector has the cosine 0 with every other.
    minmax-euclidean: 1 - minmax(distance), as the published code has it, relative to the other tracklets of the video.
    """
    if kind not in get_args(VisualSimilarity):
        raise DataError(f"visual similarity must be one of {', '.join(get_args(VisualSimilarity))}, found {kind!r}")
    rows = finite_rows(vectors)
    if kind == "minmax-euclidean":
        from scipy.spatial.distance import cdist

        distance: Matrix = cdist(rows, rows)
        # All at one distance are all alike, as a constant matrix is by the rule of `minmax`.
        return 1 - minmax(distance) if distance.size and np.ptp(distance) > 0 else np.ones_like(distance)
    unit = unit_vectors(rows)
    # Equal vectors have a product of 1 up to the last bits, which depend on where they stand; rounding makes it 1.
    similarity: Matrix = np.clip(np.round((1 + unit @ unit.T) / 2, _DECIMALS), 0, 1)
    similarity = (similarity + similarity.T) / 2
    np.fill_diagonal(similarity, 1)
    return similarity


def finite_rows(vectors: ArrayLike) -> Matrix:
    """Vectors as float64[n, d]; an error that names the first row that is not finite."""
    rows = np.asarray(vectors)
    if rows.ndim != 2 or rows.dtype.kind not in "fiub":
        raise DataError(f"vectors must be numbers of the shape [n, d], found {rows.dtype} {list(rows.shape)}")
    if not np.isfinite(rows).all():
        bad = int(np.argmax(~np.isfinite(rows).all(axis=1)))
        raise DataError(f"vectors must be finite, found {rows[bad][~np.isfinite(rows[bad])][0]} in row {bad}")
    return rows.astype(np.float64)


def unit_vectors(rows: Matrix) -> Matrix:
    """The same directions [n, d] with the length 1; a zero vector stays one."""
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0)
    scaled = rows / np.where(largest > 0, largest, 1)  # so that no square overflows or vanishes
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled / np.where(length > 0, length, 1))


def temporal_adjacency(positions: ArrayLike, gamma: float, duration: float = 1.0) -> Matrix:
    """minmax(exp(-gamma * abs(p_i - p_j) / duration)) of positions [n].

    duration: the video's length in the unit of the positions; 1 for positions that are shares of it. Frame numbers with
    the number of frames are best, as their differences are exact and so do not depend on where counting starts.
    """
    places = np.asarray(positions, np.float64)
    if places.ndim != 1:
        raise DataError(f"positions must have the shape [n], found {list(places.shape)}")
    if not np.isfinite(places).all():
        raise DataError(f"tracklet {int(np.argmax(~np.isfinite(places)))} has no position")
    if not (np.isfinite(gamma) and gamma >= 0):
        raise DataError(f"gamma must be a number of at least 0, found {gamma}")
    if not (np.isfinite(duration) and duration > 0):
        raise DataError(f"the duration must be a number above 0, found {duration}")
    if places.size and np.ptp(places) > duration * (1 + 1e-9):
        raise DataError(
            f"positions span {np.ptp(places):g}, more than the duration of the video, {duration:g}: "
            "give both in one unit, such as frame numbers and the number of frames"
        )
    return minmax(np.exp(-gamma * (np.abs(places[:, None] - places) / duration)))


def fuse(visual: Matrix, temporal: Matrix, alpha: float, how: Fusion = "sum") -> Matrix:
    """Both together: alpha * V + (1 - alpha) * T, or V * T, where alpha plays no part."""
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
