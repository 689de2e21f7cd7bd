"""How a polyp on the wall appears in the frame: from its pose to a map onto the image, and to a box around it.

A pose is float64[n, 6]: x and y of its middle, in heights of the frame from the frame's middle; its diameter seen from
the front, in heights; its turn in radians; and its tilt along x and y, a vector whose length is an angle in radians.
A polyp is flat here, and as large as a disc of diameter 1.
"""

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
_FAR_SIDE = 0.3  # how much smaller the far side of a tilted polyp is


def seen_from(pose: Values) -> Values:
    """Homographies float64[n, 3, 3], from a polyp of diameter 1 to the frame."""
    turn, tilt = pose[:, 3], np.linalg.norm(pose[:, 4:], axis=1)
    along = np.arctan2(pose[:, 5], pose[:, 4])
    squeeze = np.zeros((len(pose), 3, 3))
    squeeze[:, 0, 0], squeeze[:, 1, 1], squeeze[:, 2, 2] = np.cos(tilt), 1, 1
    squeeze[:, 2, 0] = _FAR_SIDE * np.sin(tilt)
    placed = np.zeros_like(squeeze)
    placed[:, 0, 0] = placed[:, 1, 1] = pose[:, 2]
    placed[:, :2, 2], placed[:, 2, 2] = pose[:, :2], 1
    return np.asarray(placed @ _rotation(along) @ squeeze @ _rotation(turn - along))


def ellipse_boxes(matrix: Values, ratio: float) -> Values:
    """Boxes float64[n, 4] around an ellipse of the area of a disc, seen through homographies.

    The lines that touch an ellipse form a dual conic C. A map H takes it to H C H^T, and the upright lines in it are
    the roots of a quadratic equation.

    Args:
        matrix: float64[n, 3, 3].
        ratio: Length of the ellipse by its width.
    """
    dual = np.asarray((matrix * [0.25 * ratio, 0.25 / ratio, -1.0]) @ np.swapaxes(matrix, 1, 2))
    boxes = np.empty((len(matrix), 4))
    for axis in (0, 1):
        middle = dual[:, axis, 2] / dual[:, 2, 2]
        half = np.sqrt(np.maximum(middle**2 - dual[:, axis, axis] / dual[:, 2, 2], 0))
        boxes[:, axis], boxes[:, axis + 2] = middle - half, middle + half
    return boxes


def outline_boxes(matrix: Values, outline: Values) -> Values:
    """Boxes float64[n, 4] around the points of an outline, float64[m, 2], seen through homographies."""
    flat = np.column_stack([outline, np.ones(len(outline))]) @ np.swapaxes(matrix, 1, 2)
    points = flat[..., :2] / flat[..., 2:]
    return np.hstack([points.min(axis=1), points.max(axis=1)])


def in_frame(boxes: Values, width: int, height: int) -> NDArray[np.float32]:
    """Boxes in heights from the middle as whole pixels, cut off at the edge of the frame as annotators do."""
    pixels = (boxes * height + np.array([width, height, width, height]) / 2).round()
    sides = np.array([width, height])
    # Of a polyp with an odd outline hardly anything may be left; a box has at least three pixels.
    low = np.clip(pixels[:, :2], 0, sides - 3)
    high = np.clip(np.maximum(pixels[:, 2:], low + 3), 0, sides)
    return np.hstack([low, high]).astype(np.float32)


def _rotation(angle: Values) -> Values:
    matrix = np.zeros((len(angle), 3, 3))
    matrix[:, 0, 0] = matrix[:, 1, 1] = np.cos(angle)
    matrix[:, 1, 0] = np.sin(angle)
    matrix[:, 0, 1] = -matrix[:, 1, 0]
    matrix[:, 2, 2] = 1
    return matrix
