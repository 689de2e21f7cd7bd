"""Image files as RGB arrays: JPEG by simplejpeg, PNG, TIFF and BMP by Pillow."""

import warnings
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from polypcount.errors import FileError, first_line
from polypcount.storage import read_bytes
from polypcount.video.crop import resize
from polypcount.video.frames import Image, refuse_large
from polypcount.video.views import FrameView

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

_LARGEST_BYTES = 1 << 29
_JPEG_START = b"\xff\xd8\xff"


def read_image(path: Path) -> Image:
    """Read an image file as RGB uint8[height, width, 3].

    Pixels are given as stored: an orientation in EXIF is ignored, since boxes are drawn on stored pixels. Grey and
    palette images become RGB, transparency is dropped, 16-bit values keep their upper 8 bits. Of several pages, the
    first is read.
    """
    return read_view(path).image


def read_view(path: Path) -> FrameView:
    """Read an image file as `read_image` does; a JPEG is decoded when its pixels are asked for."""
    data = read_bytes(path, _LARGEST_BYTES)
    if not data.startswith(_JPEG_START):
        return FrameView.of(_read_with_pillow(path, data))
    import simplejpeg  # type: ignore[import-untyped]

    try:
        height, width, space, _ = simplejpeg.decode_jpeg_header(data)
    except ValueError as problem:
        raise _unreadable(path, problem) from None
    refuse_large(path, width, height)
    if space in ("CMYK", "YCCK"):
        return FrameView.of(_read_with_pillow(path, data))
    return FrameView(width, height, _Jpeg(path, data))


class _Jpeg:
    """A JPEG image that is not decoded yet; see `views.Pixels`."""

    def __init__(self, path: Path, data: bytes) -> None:
        self._path, self._data = path, data

    def image(self) -> Image:
        return self._decoded()

    def scaled(self, width: int, height: int) -> Image:
        # Decoding at a fraction of the size averages over blocks, as `resize` does above twice the size.
        return resize(self._decoded(min_width=2 * width, min_height=2 * height), width, height)

    def _decoded(self, **least: int) -> Image:
        import simplejpeg

        try:
            image: Image = simplejpeg.decode_jpeg(self._data, colorspace="RGB", **least)
        except ValueError as problem:
            raise _unreadable(self._path, problem) from None
        return image


def _read_with_pillow(path: Path, data: bytes) -> Image:
    from PIL import Image as Pillow

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # huge images are refused below
            with Pillow.open(BytesIO(data), formats=("PNG", "TIFF", "BMP", "JPEG")) as image:
                refuse_large(path, image.width, image.height)
                return _as_rgb(path, image)
    except (OSError, ValueError, SyntaxError, EOFError, Pillow.DecompressionBombError) as problem:
        raise _unreadable(path, problem) from None


def _as_rgb(path: Path, image: "PillowImage") -> Image:
    if image.mode == "F":
        raise FileError(f"{path} has pixels of 32-bit fractions; 8 or 16 bits were expected, convert it to PNG")
    if image.mode.startswith("I"):  # Pillow's own conversion would cut off at 255 instead of scaling
        grey = (np.clip(np.asarray(image), 0, 65535) >> 8).astype(np.uint8)
        return np.repeat(grey[:, :, None], 3, axis=2)
    return np.asarray(image.convert("RGB"))


def _unreadable(path: Path, problem: BaseException) -> FileError:
    return FileError(
        f"{path} is not a readable JPEG, PNG, TIFF or BMP image ({first_line(problem)}); "
        "if it was cut off, copy it again"
    )
