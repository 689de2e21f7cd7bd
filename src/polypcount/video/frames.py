"""What gives frames: the protocol that a video file, a folder of images and a DICOM file have in common."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.errors import DataError, FileError, first_line

LARGEST_PIXELS = 1 << 26  # of one frame, as RGB 200 MB; ten times what any endoscope gives

Image = NDArray[np.uint8]


class FrameSource(Protocol):
    """Frames of one recording, numbered from 0 in the order in which they are shown.

    frame_count: how many there are.
    width, height: pixels of the first one.
    fps: frames per second; None where nothing says it.
    """

    @property
    def frame_count(self) -> int: ...  # noqa: D102 - described above, with the three below
    @property
    def width(self) -> int: ...  # noqa: D102
    @property
    def height(self) -> int: ...  # noqa: D102
    @property
    def fps(self) -> float | None: ...  # noqa: D102

    def frames(self, wanted: ArrayLike) -> Iterator[tuple[int, Image]]:
        """Each wanted frame once, in rising order, as (index, RGB uint8[height, width, 3]).

        Only one frame is in memory at a time. An index that no frame has is a `DataError`; a frame that should be
        there and cannot be read is a `FileError`, raised after the readable ones before it were given.
        """
        ...


def wanted_frames(wanted: ArrayLike, frame_count: int, name: object) -> NDArray[np.int64]:
    """The indices sorted, each once; a `DataError` where one is not a whole number from 0 to frame_count - 1."""
    given = np.asarray(wanted)
    if given.size == 0:
        return np.empty(0, np.int64)
    if given.dtype.kind not in "iu":
        raise DataError(f"{name}: wanted frames must be whole numbers, found {given.dtype}")
    indices = np.unique(given)
    for index in (int(indices[0]), int(indices[-1])):
        if not 0 <= index < frame_count:
            numbers = f"frames are 0 to {frame_count - 1}" if frame_count else "there are no frames"
            raise DataError(f"{name}: there is no frame {index}; its {numbers}")
    return indices.astype(np.int64)


def refuse_missing(name: object, wanted: NDArray[np.int64], first_missing: int, given: int, holds: str) -> None:
    """Raise the one error for a source that ended, or was damaged, before all wanted frames were given."""
    raise FileError(
        f"{name}: frame {first_missing} cannot be read; {given} of the {len(wanted)} wanted frames could be, "
        f"and {holds}. If it was cut off, copy it again; otherwise leave out the boxes of the frames it does not have"
    )


def refuse_large(name: object, width: int, height: int) -> None:
    """Raise where a frame has more pixels than any that would be meant seriously, before memory is taken for it."""
    if width < 1 or height < 1:
        raise FileError(f"{name}: a frame must have a width and a height, found {width} x {height} pixels")
    if width * height > LARGEST_PIXELS:
        raise FileError(f"{name}: a frame may have up to {LARGEST_PIXELS:,} pixels, found {width} x {height}")


def refuse_no_image(frame: object) -> None:
    """Raise where a value is not a picture, RGB uint8[height, width, 3]."""
    if not isinstance(frame, np.ndarray) or frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
        found = f"{frame.dtype}{list(frame.shape)}" if isinstance(frame, np.ndarray) else type(frame).__name__
        raise DataError(f"a frame must be RGB uint8[height, width, 3], found {found}")
    if not frame.size:
        raise DataError(f"a frame must have a width and a height, found {frame.shape[1]} x {frame.shape[0]} pixels")


def refuse_no_file(path: Path) -> None:
    """Raise where there is no such file or folder, or something that is neither, such as a pipe."""
    try:
        there, usable = path.exists(), path.is_file() or path.is_dir()
    except (OSError, ValueError) as problem:
        raise FileError(f"{path} cannot be read: {first_line(problem)}") from None
    if not usable:
        found = "is neither file nor folder" if there else "does not exist"
        raise FileError(f"{path} {found}; a video file, a folder of images or a DICOM file was expected")
