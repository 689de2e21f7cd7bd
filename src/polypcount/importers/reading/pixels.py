"""Image sizes without decoding the image, and boxes around the parts of a mask."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from polypcount.errors import FileError, first_line

if TYPE_CHECKING:
    from PIL import Image

_FORMATS = ("PNG", "TIFF", "BMP", "JPEG")
_LEAST_AREA_PIXELS = 50  # of a part of a mask; smaller ones are specks left by compression and hand drawing


def image_size(path: Path) -> tuple[int, int]:
    """Width and height in pixels, from the header."""
    with _opened(path) as image:
        return image.size


def mask_boxes(path: Path) -> NDArray[np.float32]:
    """Boxes float32[n, 4] around the connected bright parts of a mask image, from left to right."""
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
    """The set pixels of a mask, bool[height, width]: bright, of an index above 0, or opaque without other content."""
    with _opened(path) as image:
        if image.mode == "P":
            return np.asarray(image) > 0
        grey = np.asarray(image.convert("L"))
        if image.mode in ("RGBA", "LA") and grey.min() == grey.max():
            grey = np.asarray(image.getchannel("A"))
    # Some masks hold only 0 and 1. Others are dark because nothing is set, apart from compression noise.
    return grey > 127 if grey.max() > 127 or len(np.unique(grey)) > 3 else grey > 0


@contextmanager
def _opened(path: Path) -> Iterator["Image.Image"]:
    """An image file, whose pixels are not yet read; a small file that claims to hold a huge image is refused."""
    from PIL import Image

    if path.exists() and not path.is_file():  # reading a pipe would wait for ever
        raise FileError(f"{path} is not a file; an image was expected")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=_FORMATS) as image:
                yield image
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError, Warning) as problem:
        raise FileError(
            f"{path} is not a readable image: {first_line(problem)}; if it was cut off, copy it again"
        ) from None
