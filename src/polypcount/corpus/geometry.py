"""Geometry of boxes."""

import numpy as np
from numpy.typing import NDArray


def iou(a: NDArray[np.floating], b: NDArray[np.floating]) -> NDArray[np.float64]:
    """Intersection over union of boxes row by row: area(a and b) / area(a or b), float64[n] from two [n, 4]."""
    ax1, ay1, ax2, ay2 = a.T.astype(np.float64, order="C")
    bx1, by1, bx2, by2 = b.T.astype(np.float64, order="C")
    width = np.minimum(ax2, bx2) - np.maximum(ax1, bx1)
    height = np.minimum(ay2, by2) - np.maximum(ay1, by1)
    shared = np.maximum(width, 0) * np.maximum(height, 0)
    union = (ax2 - ax1) * (ay2 - ay1) + (bx2 - bx1) * (by2 - by1) - shared
    return np.asarray(shared / union)
