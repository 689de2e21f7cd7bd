"""What a video file, a folder of images and a DICOM file have in common: a source of frames."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.errors import DataError, FileError, first_line

LARGEST_PIXELS = 1 << 26  # of one frame, 200 MB as RGB; ten times those of any endoscope
LONGEST_SECONDS = 1e7  # of a recording, 116 days; times beyond are damage

Image = NDArray[np.uint8]


class FrameSource(Protocol):
    """Frames of one recording, numbered from 0 in the order in which they are shown.

    Attributes:
        frame_count: How many there are.
        width: Pixels of the first frame.
        height: Pixels of the first frame.
        fps: Frames per second; None where it is unknown.
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

        Only one frame is in memory at a time.

        Raises:
            DataError: The recording has no frame of this index.
            FileError: A frame should be there but cannot be read; raised after the readable frames before it.
        """
        ...


@runtime_checkable
class TimedSource(Protocol):
    """A frame source that knows when each frame is shown.

    Attributes:
        times: float64[frame_count + 1], when each frame is shown, in seconds from the first one, and when the last one
            ends. None where the frame rate is constant, so that frame k is shown at k / fps.
    """

    @property
    def times(self) -> NDArray[np.float64] | None: ...  # noqa: D102 - described above


def uneven(times: NDArray[np.float64] | None, fps: float | None) -> NDArray[np.float64] | None:
    """The times, float64[frame_count + 1], if one is more than half a frame away from its index / fps; else None."""
    if times is None or fps is None:
        return None
    return times if np.abs(times * fps - np.arange(len(times))).max() > 0.5 else None


def wanted_frames(wanted: ArrayLike, frame_count: int, name: object) -> NDArray[np.int64]:
    """The indices sorted, each once.

    Raises:
        DataError: One is not a whole number from 0 to frame_count - 1.
    """
    indices = np.unique(np.asarray(wanted))
    if indices.size and indices.dtype.kind not in "iu":
        raise DataError(f"{name}: wanted frames must be whole numbers, found {indices.dtype}")
    outside = indices[(indices < 0) | (indices >= frame_count)]
    if outside.size:
        raise DataError(f"{name}: there is no frame {outside[0]}; its frames are 0 to {frame_count - 1}")
    return indices.astype(np.int64)


def missing_frame(name: object, wanted: NDArray[np.int64], first_missing: int, done: int, reason: str) -> FileError:
    """The error for a source that ended, or was damaged, before all wanted frames were read."""
    return FileError(
        f"{name}: frame {first_missing} cannot be read; {done} of the {len(wanted)} wanted frames could be "
        f"({reason}). If it was cut off, copy it again; otherwise leave out the boxes of the frames it does not have"
    )


def refuse_large(name: object, width: int, height: int) -> None:
    """Raise where a frame has no pixels or far too many, before memory is taken for it."""
    if width < 1 or height < 1:
        raise FileError(f"{name}: a frame must have a width and a height, found {width} x {height} pixels")
    if width * height > LARGEST_PIXELS:
        raise FileError(f"{name}: a frame may have up to {LARGEST_PIXELS:,} pixels, found {width} x {height}")


def refuse_no_image(frame: object, name: str = "a frame") -> None:
    """Raise where a value is not an image, RGB uint8[height, width, 3]."""
    if not isinstance(frame, np.ndarray) or frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
        kind = f"{frame.dtype}{list(frame.shape)}" if isinstance(frame, np.ndarray) else type(frame).__name__
        raise DataError(f"{name} must be RGB uint8[height, width, 3], found {kind}")
    if not frame.size:
        raise DataError(f"{name} must have a width and a height, found {frame.shape[1]} x {frame.shape[0]} pixels")


def refuse_no_file(path: Path) -> None:
    """Raise where a path does not exist, or is neither a file nor a folder, such as a pipe."""
    try:
        exists, usable = path.exists(), path.is_file() or path.is_dir()
    except (OSError, ValueError) as problem:
        raise FileError(f"{path} cannot be read: {first_line(problem)}") from None
    if not usable:
        what = "is neither file nor folder" if exists else "does not exist"
        raise FileError(f"{path} {what}; a video file, a folder of images or a DICOM file was expected")
