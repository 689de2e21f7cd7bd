"""The input of a detector: a frame at the size of the model, as numbers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.encoder import Preprocessing
from polypcount.video.frames import Image

GREY = 114  # beside a letterboxed frame, as the exporters of the YOLO family have it


@dataclass(frozen=True)
class Placement:
    """Where a frame is in the input of a model, in pixels of the input.

    Attributes:
        left: Columns before it.
        top: Rows above it.
        width: Its columns.
        height: Its rows.
    """

    left: int
    top: int
    width: int
    height: int


def placement(frame: tuple[int, int], size: tuple[int, int], *, letterbox: bool) -> Placement:
    """Where a frame is in an input.

    Args:
        frame: Width and height of the frame.
        size: Width and height of the input.
        letterbox: Keep the proportions, in the middle of the input, instead of stretching.
    """
    width, height = size
    if not letterbox:
        return Placement(0, 0, width, height)
    scale = min(width / frame[0], height / frame[1])
    shown_width = min(width, max(1, round(frame[0] * scale)))
    shown_height = min(height, max(1, round(frame[1] * scale)))
    # Of an odd number of grey rows the smaller half is above; exporters round in the same way.
    return Placement((width - shown_width) // 2, (height - shown_height) // 2, shown_width, shown_height)


class ModelInput:
    """The numbers that a model is given, kept from frame to frame: (x / 255 - mean) / std of each colour.

    Args:
        size: Width and height in pixels.
        images: Mean and standard deviation.
        dtype: Their type.
        padding: The value of pixels beside a letterboxed frame, 0 to 255.
    """

    def __init__(self, size: tuple[int, int], images: Preprocessing, dtype: type, padding: int = GREY) -> None:
        std = np.array(images.std)
        self._scale = (1 / (255 * std)).astype(np.float32)[:, None, None]
        self._shift = (np.array(images.mean) / std).astype(np.float32)[:, None, None]
        self._padding = (padding * self._scale - self._shift).astype(dtype)
        self._at: Placement | None = None
        self.values: NDArray[np.floating] = np.empty((1, 3, size[1], size[0]), dtype)

    def fill(self, image: Image, at: Placement) -> NDArray[np.floating]:
        """Put an image uint8[at.height, at.width, 3] at its place, padding elsewhere; float[1, 3, height, width]."""
        if at != self._at:
            self.values[0] = self._padding
            self._at = at
        place = self.values[0, :, at.top : at.top + at.height, at.left : at.left + at.width]
        colours = np.ascontiguousarray(image.transpose(2, 0, 1))  # four times as fast as calculating across colours
        numbers = np.multiply(colours, self._scale, dtype=np.float32)
        np.subtract(numbers, self._shift, out=place, casting="same_kind")
        return self.values

    def blank(self) -> NDArray[np.floating]:
        """Padding everywhere; float[1, 3, height, width]."""
        self.values[0], self._at = self._padding, None
        return self.values
