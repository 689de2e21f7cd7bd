"""Frames of a folder of images."""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus import IMAGE_SUFFIXES
from polypcount.errors import FileError, first_line
from polypcount.natural import natural_key
from polypcount.video.frames import Image, refuse_missing, wanted_frames
from polypcount.video.images import image_size, read_image


class FrameFolder:
    """Frames that are image files, one each; the images may differ in size.

    folder: where they are.
    names: file of frame k below the folder, or of the frames that have one; None for all images directly in the
        folder, in natural order, hidden files passed over.
    frame_count: how many frames there are; None for as many as there are names.
    fps: frames per second, which no folder knows of itself.
    """

    def __init__(
        self,
        folder: Path,
        names: Sequence[str] | Mapping[int, str] | None = None,
        *,
        frame_count: int | None = None,
        fps: float | None = None,
    ) -> None:
        self.path = folder
        self.fps = fps
        found = images_in(folder) if names is None else names
        self._names = found if isinstance(found, Mapping) else dict(enumerate(found))
        self.frame_count = max(self._names, default=-1) + 1
        self._expected = self.frame_count if frame_count is None else max(frame_count, self.frame_count)
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
        return self._frames(wanted_frames(wanted, self._expected, self.path))

    def _frames(self, wanted: NDArray[np.int64]) -> Iterator[tuple[int, Image]]:
        for given, index in enumerate(wanted.tolist()):
            file = self.file_of(index)
            if file is None:
                refuse_missing(self.path, wanted, index, given, "no image belongs to it")
            else:
                yield index, read_image(file)


def images_in(folder: Path) -> list[str]:
    """Names of the images directly in a folder, in natural order; hidden ones are passed over."""
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.name
                for entry in entries
                if os.path.splitext(entry.name)[1].lower() in IMAGE_SUFFIXES
                and not entry.name.startswith(".")
                and entry.is_file()
            ]
    except OSError as problem:
        raise FileError(f"{folder} cannot be listed: {first_line(problem)}") from None
    return sorted(names, key=natural_key)
