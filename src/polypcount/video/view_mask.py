"""Masks: the endoscope's view stays, the text and insets around it become black."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.errors import DataError
from polypcount.video.frames import Image

Rectangle = tuple[int, int, int, int]
View = NDArray[np.bool_]

_SIDE = 256  # pixels of the longer side of the reduced image in which the view is searched
_CONTRAST = 8  # grey levels by which the view is brighter than its border; the border's noise is half of that
_DARKEST = 2  # per cent of an image that the border must have to be masked
_BLACK = 32  # the brightest grey level of a border
_LINE, _STROKE = 3, 9  # pixels of the reduced image: thinner parts are lines or letters
_MARGIN = 0.01  # of the longer side, kept around the view
_SMALLEST, _LARGEST = 0.1, 0.98  # share of the image that a view has
_STRAY = 0.25  # a smaller share of frames that are bright all over is ignored


@dataclass(frozen=True, eq=False)
class FrameMask:
    """What is blackened in every frame of a recording.

    Attributes:
        rectangles: (x, y, width, height) of each in pixels.
        view: bool[height, width], True inside the endoscope's view; all else becomes black. It is scaled to frames of
            another size. None masks no border.
    """

    rectangles: tuple[Rectangle, ...] = ()
    view: View | None = None

    def __post_init__(self) -> None:
        for rectangle in self.rectangles:
            if len(rectangle) != 4 or rectangle[2] < 1 or rectangle[3] < 1:
                raise DataError(f"mask: a rectangle is x, y, width, height, the last two above 0, found {rectangle}")
        if self.view is not None and (self.view.ndim != 2 or not self.view.size or self.view.dtype != bool):
            raise DataError(f"mask: view must be bool[height, width], found {self.view.dtype}{list(self.view.shape)}")

    def apply(self, frame: Image) -> Image:
        """A masked copy of a frame, uint8[height, width, 3]; the frame itself where there is nothing to mask."""
        if not self.rectangles and self.view is None:
            return frame
        height, width = frame.shape[:2]
        masked = frame.copy()
        if self.view is not None:
            masked[~_scaled(self.view, height, width)] = 0
        for x, y, wide, high in self.rectangles:
            if x >= width or y >= height or x + wide <= 0 or y + high <= 0:
                raise DataError(f"mask: {x},{y},{wide},{high} is outside of the frame, which is {width} x {height}")
            masked[max(y, 0) : y + high, max(x, 0) : x + wide] = 0
        return masked


def parse_rectangle(text: str) -> Rectangle:
    """The rectangle that "x,y,width,height" means, in whole pixels."""
    try:
        x, y, width, height = (int(part) for part in text.split(","))
    except ValueError:
        raise DataError(
            f"mask: x,y,width,height in whole pixels are expected, such as 0,0,300,80, found {text!r}"
        ) from None
    return FrameMask(((x, y, width, height),)).rectangles[0]


def find_view(frames: Iterable[Image]) -> View | None:
    """Find the endoscope's view in a recording.

    Pixels that are brighter than the border in any of the frames are kept, without thin parts (text). The view is the
    convex hull of their largest part, with a small margin. So insets are masked too, unless they touch the view. A part
    at least half as
    large as the largest is a second view.

    Args:
        frames: About eight frames of the recording, uint8[height, width, 3].

    Returns:
        bool[height, width]; None where the view fills the image, or none is found.
    """
    from scipy import ndimage

    level, (height, width) = _levels(frames)
    # A dark lumen is filled before letters are removed. Otherwise a thin rim of the view around it would be removed
    # too.
    bright = ndimage.binary_fill_holes(_without_thin(level > _border(level), _LINE))
    parts, _ = ndimage.label(_without_thin(bright, _STROKE))
    sizes = np.bincount(parts.ravel(), minlength=2)[1:]
    view = np.zeros((height, width), bool)
    for part in np.flatnonzero((sizes > 0) & (sizes >= sizes.max() / 2)):
        view |= _hull(parts == part + 1, height, width)
    return view if view.size and _SMALLEST <= view.mean() <= _LARGEST else None


def _levels(frames: Iterable[Image]) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    """The highest level of each pixel of the reduced image in any frame; and height and width of the first frame."""
    size = (0, 0)
    levels: list[NDArray[np.uint8]] = []
    for frame in frames:
        if not levels:
            size = (frame.shape[0], frame.shape[1])
            rows, columns = (max(1, round(side * min(1, _SIDE / max(size)))) for side in size)
        reduced = frame.take(_nearest(rows, frame.shape[0]), axis=0).take(_nearest(columns, frame.shape[1]), axis=1)
        levels.append(reduced.max(axis=2))
    if not levels:
        return np.zeros((1, 1), np.uint8), size
    stack = np.stack(levels)
    # A menu or a test image is bright all over, and would hide the border that nearly all other frames have.
    full = (stack > _border(np.median(stack, axis=0))).mean(axis=(1, 2)) > _LARGEST
    return stack[~full if full.mean() < _STRAY else slice(None)].max(axis=0), size


def _without_thin(bright: View, thickness: int) -> View:
    """Remove parts that are less than `thickness` pixels thick."""
    from scipy import ndimage

    # At the edge of the image the view is cut off, not thin: the outside counts as equal to the edge.
    thick = ndimage.minimum_filter(bright.astype(np.uint8), thickness, mode="nearest")
    return np.asarray(ndimage.maximum_filter(thick, thickness, mode="nearest"), bool)


def _border(level: NDArray[Any]) -> float:
    """The highest level of the border."""
    return min(float(np.percentile(level, _DARKEST)), _BLACK) + _CONTRAST


def _hull(part: View, height: int, width: int) -> View:
    """The convex hull of a part of the reduced image, with a margin, in the whole image: bool[height, width]."""
    from scipy.spatial import ConvexHull

    y = np.flatnonzero(part.any(axis=1))
    left, right = part[y].argmax(axis=1), part.shape[1] - part[y, ::-1].argmax(axis=1)
    corners = np.concatenate([np.stack([x, y + below], axis=1) for x in (left, right) for below in (0, 1)])
    # Inside each side of the hull a x + b y + c <= 0, in pixels; (a, b) has the length 1.
    a, b, c = ConvexHull(corners * [width / part.shape[1], height / part.shape[0]]).equations.T
    c = c - _MARGIN * max(height, width)
    # So in each row of pixels, the inside lies between the last bound on the left and the first on the right.
    rest = b * (np.arange(height)[:, None] + 0.5) + c
    upright = np.abs(a) > 1e-9
    bound = -rest / np.where(upright, a, 1)
    start = np.where(upright & (a < 0), bound, -np.inf).max(axis=1)
    stop = np.where(upright & (a > 0), bound, np.inf).min(axis=1)
    stop[(rest[:, ~upright] > 0).any(axis=1)] = -np.inf
    x = np.arange(width) + 0.5
    return np.asarray((x >= start[:, None]) & (x <= stop[:, None]))


def _scaled(view: View, height: int, width: int) -> View:
    """The view at another size, by nearest neighbour."""
    if view.shape == (height, width):
        return view
    return view[_nearest(height, view.shape[0])[:, None], _nearest(width, view.shape[1])]


def _nearest(count: int, pixels: int) -> NDArray[np.intp]:
    """The index of the nearest pixel for each of `count` pixels, when a row of `pixels` is resampled."""
    return ((np.arange(count) + 0.5) * (pixels / count)).astype(np.intp)
