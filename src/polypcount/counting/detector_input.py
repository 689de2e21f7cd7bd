"""From a frame to the image that a detector takes, and boxes back to the frame."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.encoder import Preprocessing
from polypcount.video import resize
from polypcount.video.frames import Image

_GREY = 114  # beside the frame, as the exporters of the YOLO family have it


@dataclass(frozen=True)
class Placement:
    """Where a frame lies in the input of a detector.

    left, top: pixels of the input beside and above it.
    across, down: pixels of the frame for one pixel of the input.
    """

    left: int
    top: int
    across: float
    down: float

    def to_frame(self, xyxy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Boxes float64[n, 4] in pixels of the input -> in pixels of the frame, not cut off at its edges."""
        corner = np.array([self.left, self.top, self.left, self.top])
        return np.asarray((xyxy - corner) * np.array([self.across, self.down, self.across, self.down]))


def letterboxed(frame: Image, width: int, height: int) -> tuple[Image, Placement]:
    """The frame in its proportions, as large as fits, in the middle of grey: uint8[height, width, 3]."""
    frame_height, frame_width = frame.shape[:2]
    scale = min(width / frame_width, height / frame_height)
    shown_width = min(width, max(1, round(frame_width * scale)))
    shown_height = min(height, max(1, round(frame_height * scale)))
    # Of an odd number of grey rows the smaller half is above; exporters round in the same way.
    left, top = (width - shown_width) // 2, (height - shown_height) // 2
    image: Image = np.full((height, width, 3), _GREY, np.uint8)
    image[top : top + shown_height, left : left + shown_width] = resize(frame, shown_width, shown_height)
    return image, Placement(left, top, frame_width / shown_width, frame_height / shown_height)


def stretched(frame: Image, width: int, height: int) -> tuple[Image, Placement]:
    """The frame stretched to uint8[height, width, 3]."""
    frame_height, frame_width = frame.shape[:2]
    return resize(frame, width, height), Placement(0, 0, frame_width / width, frame_height / height)


def planes(image: Image, images: Preprocessing) -> NDArray[np.float32]:
    """The image uint8[height, width, 3] -> float32[1, 3, height, width]: (x / 255 - mean) / std of each colour.

    `normalised` does the same for crops; for one large image it takes four times as long.
    """
    std = np.array(images.std)
    scale, shift = 1 / (255 * std), np.array(images.mean) / std
    colours = np.ascontiguousarray(image.transpose(2, 0, 1))
    found = np.multiply(colours, scale.astype(np.float32)[:, None, None], dtype=np.float32)
    found -= shift.astype(np.float32)[:, None, None]
    return found[None]
