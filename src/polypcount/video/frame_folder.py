"""Frames of a folder of images."""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus import IMAGE_SUFFIXES
from polypcount.errors import FileError, first_line
from polypcount.importers.reading import image_size
from polypcount.natural import natural_key
from polypcount.video.frames import Image, missing_frame, wanted_frames
from polypcount.video.images import read_view
from polypcount.video.views import FrameView


class FrameFolder:
    """Frames that are image files, one each; the images may differ in size.

    Args:
        folder: Where they are.
        names: File of frame k below the folder, as a list or by frame; None for all images directly in the folder, in
            natural order, without hidden files.
        frame_count: How many frames there are; None for as many as there are names.
        fps: Frames per second, which a folder does not say.
    """

    def __init__(
        self,
        folder: Path,
        names: Sequence[str] | Mapping[int, str] | None = None,
        *,
        frame_count: int | None = None,
        fps: float | None = None,
    ) -> None:
        self.path, self.fps = folder, fps
        names = images_in(folder) if names is None else names
        self._names = names if isinstance(names, Mapping) else dict(enumerate(names))
        self.frame_count = max(self._names, default=-1) + 1
        self._expected = max(frame_count or 0, self.frame_count)
        if not self._names:
            raise FileError(f"{folder} holds no images; JPEG, PNG, TIFF or BMP files directly in it were expected")

    @cached_property
    def _size(self) -> tuple[int, int]:
        return image_size(self.path / self._names[min(self._names)])

    @property
    def width(self) -> int:
        """Pixels of the first image."""
        return self._size[0]

    @property
    def height(self) -> int:
        """Pixels of the first image."""
        return self._size[1]

    def file_of(self, frame: int) -> Path | None:
        """The image of a frame; None where it has none."""
        name = self._names.get(frame)
        return None if name is None else self.path / name

    def frames(self, wanted: ArrayLike) -> Iterator[tuple[int, Image]]:
        """Each wanted frame once, in rising order, as (index, RGB uint8[height, width, 3]); see `FrameSource`."""
        return ((index, view.pixels.image()) for index, view in self.views(wanted))

    def views(self, wanted: ArrayLike) -> Iterator[tuple[int, FrameView]]:
        """The same frames; a JPEG is decoded when its pixels are asked for, small at once where that suffices."""
        return self._views(wanted_frames(wanted, self._expected, self.path))

    def _views(self, wanted: NDArray[np.int64]) -> Iterator[tuple[int, FrameView]]:
        for done, index in enumerate(wanted.tolist()):
            if (file := self.file_of(index)) is None:
                raise missing_frame(self.path, wanted, index, done, "it has no image")
            yield index, read_view(file)


def images_in(folder: Path) -> list[str]:
    """Names of the images directly in a folder, in natural order, without hidden ones."""
    try:
        with os.scandir(folder) as entries:
            images = [
                entry
                for entry in entries
                if os.path.splitext(entry.name)[1].lower() in IMAGE_SUFFIXES
                and not entry.name.startswith(".")
                and not entry.is_dir()
            ]
        missing = next((entry.name for entry in images if not entry.is_file()), None)
    except OSError as problem:
        raise FileError(f"{folder} cannot be listed: {first_line(problem)}") from None
    if missing is not None:  # without it, every later frame would have another number
        raise FileError(f"{folder / missing} is a link to nothing, or not a file; put the image there, or remove it")
    return sorted((entry.name for entry in images), key=natural_key)
