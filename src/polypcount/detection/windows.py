"""Which part of a frame the detector is shown in training, and where the polyps are in it.

A frame lies in the middle of a square. Positions in the square are from -1 to 1 along both sides; so are positions in
the detector's input, along each of its sides.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.detection.recipe import FrameChanges

_Values = NDArray[np.float64]
LEAST_SHOWN = 0.3  # share of a polyp's box that must be in view for the polyp to be found
LEAST_SIDE = 6.0  # pixels
_TRIES = 12
_FREE_ZOOM = 4.0  # largest factor for a part without a polyp
_MARGIN = 1.1  # of a polyp's box, kept out of such a part
_TURNED_LITTLE = 0.1


@dataclass(frozen=True, eq=False)
class Window:
    """A part of a frame, perhaps turned and mirrored: the point q of the input shows the point `centre + axes @ q`.

    Attributes:
        centre: float64[2].
        axes: float64[2, 2].
    """

    centre: _Values
    axes: _Values

    def boxes(self, xyxy: _Values) -> _Values:
        """Where boxes of the square are in the input, float64[n, 4].

        A polyp is taken for the ellipse inside its box: that is what the box around it is computed from when the frame
        is turned. The box around the turned corners would be too large.
        """
        inverse = np.linalg.inv(self.axes)
        middle = ((xyxy[:, :2] + xyxy[:, 2:]) / 2 - self.centre) @ inverse.T
        half = np.sqrt(((xyxy[:, None, 2:] - xyxy[:, None, :2]) / 2 * inverse) ** 2 @ np.ones(2))
        return np.concatenate([middle - half, middle + half], axis=1)


def letterbox(content: _Values, aspect: float) -> Window:
    """The window that counting uses: the whole frame.

    Args:
        content: Half of the frame's width and height in the square; the longer one is 1.
        aspect: Width of the input divided by its height.
    """
    across = max(content[0], content[1] * aspect)
    return Window(np.zeros(2), np.diag([across, across / aspect]))


def draw_window(
    content: _Values, xyxy: _Values, aspect: float, changes: FrameChanges, rng: np.random.Generator
) -> Window:
    """A random window, by the settings of a recipe.

    Args:
        content: See `letterbox`.
        xyxy: Boxes of polyps in the square, float64[n, 4].
        aspect: See `letterbox`.
        changes: How far frames are changed.
        rng: Of all random numbers.
    """
    whole = np.diag(letterbox(content, aspect).axes)
    turned = changes.rotation * (1 if rng.random() < 0.5 else _TURNED_LITTLE)
    angle = np.radians(rng.uniform(-turned, turned))
    mirror = np.where(rng.random(2) < 0.5 * changes.flip, -1.0, 1.0)
    stretch = np.exp(rng.uniform(-1, 1) * np.log1p(changes.stretch) / 2)
    shape = np.array([stretch, 1 / stretch]) * whole
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    if len(xyxy) and rng.random() < changes.empty:
        window = _free(content, xyxy, shape, turn * mirror, rng)
        if window is not None:
            return window
    low, high = -np.log(changes.shrink), np.log(changes.zoom)
    if rng.random() < 0.5:  # as in a recording
        low, high = max(low, -0.25), min(high, 0.25)
    half = shape * np.exp(-rng.uniform(low, high))
    room = np.abs(content - half)  # the frame stays in view, or the view in the frame
    centre = rng.uniform(-1, 1, 2) * room
    if len(xyxy) and rng.random() < 0.6:
        box = xyxy[rng.integers(len(xyxy))]
        near = (box[:2] + box[2:]) / 2 + rng.uniform(-0.9, 0.9, 2) * half
        centre = np.clip(near, -room, room)
    return Window(centre, turn * mirror * half)


def _free(content: _Values, xyxy: _Values, shape: _Values, turn: _Values, rng: np.random.Generator) -> Window | None:
    """A part of the frame without a polyp, as large as it can be found; None if there is none."""
    middle, side = (xyxy[:, :2] + xyxy[:, 2:]) / 2, (xyxy[:, 2:] - xyxy[:, :2]) * _MARGIN / 2
    guarded = np.concatenate([middle - side, middle + side], axis=1)
    for zoom in np.sort(rng.uniform(1.2, _FREE_ZOOM, _TRIES)):
        half = shape / zoom
        room = np.maximum(content - half, 0)
        window = Window(rng.uniform(-1, 1, 2) * room, turn * half)
        seen = window.boxes(guarded)
        if ((seen[:, :2] >= 1) | (seen[:, 2:] <= -1)).any(axis=1).all():
            return window
    return None


def seen_boxes(boxes: _Values, width: int, height: int) -> tuple[_Values, NDArray[np.bool_], NDArray[np.bool_]]:
    """Boxes in the input, -1 to 1, as far as they are in view.

    Returns:
        Boxes float64[n, 4] in pixels, cut off at the edges; which of them are to be found, bool[n]; and which are in
        view so little that finding them is neither right nor wrong, bool[n].
    """
    scale = np.array([width, height, width, height]) / 2
    whole = (boxes + 1) * scale
    shown = np.clip(whole, 0, 2 * scale)
    area, visible = ((each[:, 2:] - each[:, :2]).prod(axis=1) for each in (whole, shown))
    large = (shown[:, 2:] - shown[:, :2]).min(axis=1, initial=np.inf) >= LEAST_SIDE
    found = large & (visible >= LEAST_SHOWN * area)
    return shown, found, ~found & (visible > 0)
