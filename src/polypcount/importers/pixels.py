"""Image sizes without decoding the image, and boxes around the parts of a mask."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from polypcount.errors import FileError, first_line

if TYPE_CHECKING:
    from PIL import Image

_LARGEST_PIXELS = 1 << 27
_LEAST_AREA_PIXELS = 50  # of a part of a mask; smaller ones are specks left by compression and hand drawing


def image_size(path: Path) -> tuple[int, int]:
    """Width and height in pixels, from the header."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path) as image:
                return image.size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as problem:
        raise FileError(f"{path} is not a readable image: {first_line(problem)}") from None


def mask_boxes(path: Path) -> NDArray[np.float32]:
    """Boxes [n, 4] around the connected bright parts of a mask image, from left to right."""
    from scipy import ndimage

    parts, _ = ndimage.label(read_mask(path), structure=np.ones((3, 3)))
    areas = np.bincount(parts.ravel())
    boxes = [
        (columns.start, rows.start, columns.stop, rows.stop)
        for number, (rows, columns) in enumerate(ndimage.find_objects(parts), start=1)
        if areas[number] >= _LEAST_AREA_PIXELS
    ]
    return np.array(sorted(boxes), np.float32).reshape(-1, 4)


def read_mask(path: Path) -> NDArray[np.bool_]:
    """Where a mask image is set, bool[height, width]."""
    from PIL import Image

    width, height = image_size(path)
    if width * height > _LARGEST_PIXELS:
        raise FileError(f"{path} is too large for a mask: {width} x {height} pixels")
    try:
        with Image.open(path) as image:
            return _marked(image)
    except (OSError, ValueError, SyntaxError) as problem:
        raise FileError(f"{path} is not a readable image: {first_line(problem)}") from None


def _marked(image: "Image.Image") -> NDArray[np.bool_]:
    """Where a mask is set: bright, of another index than 0, or opaque where it has no other content."""
    if image.mode == "P":
        return np.asarray(image) > 0
    grey = np.asarray(image.convert("L"))
    if image.mode in ("RGBA", "LA") and grey.min() == grey.max():
        grey = np.asarray(image.getchannel("A"))
    # Some masks are 0 and 1. Others are dark because nothing is set, with noise from compression.
    return grey > 127 if grey.max() > 127 or len(np.unique(grey)) > 3 else grey > 0
