"""The crop around a box: which part of the frame it is, and how it becomes a square of a fixed size."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from polypcount.errors import DataError
from polypcount.video.frames import Image

Shape = Literal["squash", "pad"]
_LARGEST_SIDE = 4096


@dataclass(frozen=True)
class CropRule:
    """How a crop is cut from a frame.

    Attributes:
        scale: Width and height of the region, as a multiple of those of the box.
        size: Side of the crop in pixels.
        shape: "squash" stretches the region to a square, as published; "pad" keeps its proportions and fills up with
            black.
        minimum: Shortest side of the region in pixels, for tiny boxes; shorter only where the image is.
    """

    scale: float = 5.0
    size: int = 232
    shape: Shape = "squash"
    minimum: int = 8

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise DataError(f"crop: scale must be a positive number, found {self.scale}")
        for name in ("size", "minimum"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or not 1 <= value <= _LARGEST_SIDE:
                raise DataError(f"crop: {name} must be from 1 to {_LARGEST_SIDE} pixels, found {value}")
        if self.shape not in get_args(Shape):
            raise DataError(f"crop: shape must be one of {', '.join(get_args(Shape))}, found {self.shape}")

    @property
    def fingerprint(self) -> str:
        """A text that is equal for two rules only if they give the same pixels."""
        return (
            f"crop 1: scale {float(self.scale)!r}, size {self.size}, {self.shape}, minimum {self.minimum}, "
            f"bilinear with antialiasing, gap {_REDUCING_GAP}"
        )

    def roomier(self) -> "CropRule":
        """The rule for larger crops to train on: a side a tenth longer, rounded up to a multiple of 16."""
        return dataclasses.replace(self, size=-(-self.size * 11 // 160) * 16)

    def region(self, xyxy: ArrayLike, width: int, height: int) -> tuple[int, int, int, int]:
        """The part of the image to cut: left, top, right, bottom in whole pixels, right and bottom not included.

        It is the box scaled about its centre, cut off at the edges of the image, and truncated to whole pixels. So a
        box near an edge is not in the middle of its region.
        """
        box = np.asarray(xyxy, np.float64)
        if box.shape != (4,) or not np.isfinite(box).all():
            raise DataError(f"crop: a box must be four numbers, found {box.tolist()}")
        (left, right), (top, bottom) = self._span(box[0], box[2], width), self._span(box[1], box[3], height)
        return left, top, right, bottom

    def _span(self, low: float, high: float, length: int) -> tuple[int, int]:
        centre, half = (low + high) / 2, self.scale * (high - low) / 2
        start, stop = (int(min(max(edge, 0), length)) for edge in (centre - half, centre + half))
        least = min(self.minimum, length)
        if stop - start < least:
            start = int(min(max(centre - least / 2, 0), length - least))
            stop = start + least
        return start, stop

    def crop(self, frame: Image, xyxy: ArrayLike) -> Image:
        """The crop around a box, uint8[size, size, 3], of a frame uint8[height, width, 3]."""
        left, top, right, bottom = self.region(xyxy, frame.shape[1], frame.shape[0])
        width, height = self.shown_size(right - left, bottom - top)
        return padded(resize(frame[top:bottom, left:right], width, height), self.size)

    def shown_size(self, width: int, height: int) -> tuple[int, int]:
        """Width and height in pixels that a region of this size has in the crop."""
        if self.shape == "squash":
            return self.size, self.size
        longest = max(width, height)
        return max(1, round(width * self.size / longest)), max(1, round(height * self.size / longest))


def padded(image: Image, size: int) -> Image:
    """The image in the middle of a black square with a side of `size` pixels; the image may not be larger."""
    height, width, _ = image.shape
    square: Image = np.zeros((size, size, 3), np.uint8)
    x, y = (size - width) // 2, (size - height) // 2
    square[y : y + height, x : x + width] = image
    return square


# Where an image is reduced by more than twice this, Pillow first averages over blocks; the result hardly differs.
_REDUCING_GAP = 2.0


def resize(image: Image, width: int, height: int) -> Image:
    """Resize an image uint8[h, w, 3].

    Pillow's bilinear filter widens with the reduction, so aliasing does not flicker between frames. It also enlarges
    smoothly, which OpenCV's area filter does not.
    """
    from PIL import Image as Pillow

    if image.shape[:2] == (height, width):
        return np.ascontiguousarray(image)
    picture = Pillow.fromarray(np.ascontiguousarray(image))
    return np.asarray(picture.resize((width, height), Pillow.Resampling.BILINEAR, reducing_gap=_REDUCING_GAP))
