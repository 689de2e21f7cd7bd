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

    scale: width and height of the region, as a multiple of the box's.
    size: side of the crop in pixels.
    shape: "squash" stretches the region to a square, as published; "pad" keeps its proportions and puts black
        beside it.
    minimum: shortest side of the region in pixels, for boxes that are hardly there; less only in a smaller image.
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
        """One line that is the same for two rules only if they give the same pixels."""
        return (
            f"crop 1: scale {float(self.scale)!r}, size {self.size}, {self.shape}, minimum {self.minimum}, "
            f"bilinear with antialiasing, gap {_REDUCING_GAP}"
        )

    def roomier(self) -> "CropRule":
        """The same rule with a side a tenth longer, up to a multiple of 16, to cut from when training: 256 for 232."""
        return dataclasses.replace(self, size=-(-self.size * 11 // 160) * 16)

    def region(self, xyxy: ArrayLike, width: int, height: int) -> tuple[int, int, int, int]:
        """Left, top, right, bottom in whole pixels, right and bottom not included, of the part of the image to cut.

        It is the box scaled about its centre, cut off at the image's edges, and truncated to whole pixels. So a box
        near an edge is not in the middle of its region.
        """
        box = np.asarray(xyxy, np.float64)
        if box.shape != (4,) or not np.isfinite(box).all():
            raise DataError(f"crop: a box must be four numbers, found {box.tolist()}")
        left, right = self._span(box[0], box[2], width)
        top, bottom = self._span(box[1], box[3], height)
        return left, top, right, bottom

    def _span(self, low: float, high: float, length: int) -> tuple[int, int]:
        centre, half = (low + high) / 2, self.scale * (high - low) / 2
        start = int(min(max(centre - half, 0), length))
        stop = int(min(max(centre + half, 0), length))
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
    """The image in the middle of a black square of `size` pixels, which it fits into."""
    height, width, _ = image.shape
    if (width, height) == (size, size):
        return image
    square: Image = np.zeros((size, size, 3), np.uint8)
    x, y = (size - width) // 2, (size - height) // 2
    square[y : y + height, x : x + width] = image
    return square


# Pillow first averages over blocks where the reduction is more than twice this; the result hardly differs.
_REDUCING_GAP = 2.0


def resize(image: Image, width: int, height: int) -> Image:
    """The image uint8[h, w, 3] at another size.

    By Pillow: its bilinear filter widens with the reduction, so nothing flickers between frames through aliasing, and
    it enlarges smoothly, which OpenCV's area filter does not. Pillow is needed anyway; OpenCV is not.
    """
    from PIL import Image as Pillow

    if image.shape[:2] == (height, width):
        return np.ascontiguousarray(image)
    picture = Pillow.fromarray(np.ascontiguousarray(image))
    return np.asarray(picture.resize((width, height), Pillow.Resampling.BILINEAR, reducing_gap=_REDUCING_GAP))
