"""Frames of a DICOM file: a video stream inside it, or images one after the other. Needs pydicom."""

import bisect
import contextlib
import io
import logging
import math
import warnings
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.errors import FileError, PolypcountError, first_line
from polypcount.video.frames import (
    LONGEST_SECONDS,
    FrameSource,
    Image,
    missing_frame,
    refuse_large,
    uneven,
    wanted_frames,
)
from polypcount.video.video_file import VideoFile

if TYPE_CHECKING:
    from pydicom import Dataset

# MPEG-2, MPEG-4 AVC/H.264 and HEVC/H.265.
_VIDEO_SYNTAXES = frozenset(f"1.2.840.10008.1.2.4.{number}{end}" for number in range(100, 109) for end in ("", ".1"))
_DEFLATED = "1.2.840.10008.1.2.1.99"
_PIXEL_DATA, _ITEM, _UNKNOWN_LENGTH = b"\xe0\x7f\x10\x00", b"\xfe\xff\x00\xe0", b"\xff\xff\xff\xff"


def open_dicom(path: Path, *, expected_frames: int = 0, threads: int = 0) -> FrameSource:
    """Open a DICOM file. Only the header is read here; see `open_source` for the arguments."""
    try:
        import pydicom
    except ImportError:
        raise PolypcountError(
            f"{path} is a DICOM file; to read it, install pydicom: pip install 'polypcount[dicom]'"
        ) from None
    _silence_pydicom()
    try:
        with path.open("rb") as file:
            header = pydicom.dcmread(file, stop_before_pixels=True)
            pixels_at = file.tell()
        syntax = str(header.file_meta.TransferSyntaxUID)
    except OSError as problem:
        raise FileError(f"{path} cannot be read: {first_line(problem)}") from None
    except Exception as problem:  # pydicom raises errors of many kinds, some with text of the header
        raise FileError(f"{path} cannot be read as a DICOM file; it is another kind, or damaged") from problem
    if syntax in _VIDEO_SYNTAXES:
        segments = _stream_segments(path, pixels_at)
        source = VideoFile(
            path,
            expected_frames=expected_frames,
            threads=threads,
            stream=lambda: cast(BinaryIO, io.BufferedReader(_Segments(path, segments), 1 << 18)),
        )
        source.fps = _fps(header) or source.fps
        return source
    if syntax == _DEFLATED:
        raise FileError(f"{path} is a deflated DICOM file, which cannot be read frame by frame; store it uncompressed")
    return DicomImages(path, header, expected_frames)


class DicomImages:
    """Frames of a DICOM file that holds images, uncompressed or as JPEG, read one at a time.

    Args:
        path: The file.
        header: Its data set without the pixels.
        expected_frames: See `open_source`.
    """

    def __init__(self, path: Path, header: "Dataset", expected_frames: int = 0) -> None:
        self.path, self._header = path, header
        try:
            self.width, self.height = int(header.Columns), int(header.Rows)
            self.frame_count = int(header.get("NumberOfFrames") or 1)
            self._bits = int(header.BitsStored)
            self._kind = str(header.PhotometricInterpretation)
            signed = header.get("PixelRepresentation") == 1
        except Exception as problem:  # pydicom reads an element when it is used, and raises errors of many kinds
            raise FileError(
                f"{path} is a DICOM file without images, or damaged: its rows, columns, bits or colours cannot be read"
            ) from problem
        refuse_large(path, self.width, self.height)
        if not 1 <= self._bits <= 16 or self.frame_count < 1 or signed:
            raise FileError(
                f"{path}: pixels of 1 to 16 bits without sign, and at least one frame, were expected; "
                f"found {self._bits} bits and {self.frame_count} frames"
            )
        if self.frame_count > (size := path.stat().st_size):  # memory would be taken for each of them
            raise FileError(
                f"{path} says it has {self.frame_count:,} frames, more than its {size:,} bytes; it is damaged"
            )
        self._expected = max(self.frame_count, expected_frames)
        times = _frame_times(header, self.frame_count)
        self.fps = _fps(header) or (None if times is None else self.frame_count / float(times[-1]))
        self.times = uneven(times, self.fps)

    def frames(self, wanted: ArrayLike) -> Iterator[tuple[int, Image]]:
        """Each wanted frame once, in rising order, as (index, RGB uint8[height, width, 3]); see `FrameSource`."""
        return self._frames(wanted_frames(wanted, self._expected, self.path))

    def _frames(self, wanted: NDArray[np.int64]) -> Iterator[tuple[int, Image]]:
        from pydicom.pixels.utils import iter_pixels

        present = wanted[wanted < self.frame_count].tolist()
        done, reason = 0, f"it has {self.frame_count} frames"
        try:
            for index, pixels in zip(present, iter_pixels(self.path, indices=present) if present else (), strict=True):
                yield index, self._as_rgb(pixels)
                done += 1
        except Exception as problem:  # for a damaged file, pydicom raises errors of many kinds
            reason = first_line(problem)
        if done < len(wanted):
            raise missing_frame(self.path, wanted, int(wanted[done]), done, reason)

    def _as_rgb(self, pixels: NDArray[Any]) -> Image:
        if self._kind == "PALETTE COLOR":
            from pydicom.pixels.processing import apply_color_lut

            pixels = apply_color_lut(pixels, self._header)
            bits = 8 * pixels.dtype.itemsize
        else:
            bits = self._bits
        if self._kind == "MONOCHROME1":  # white is 0
            pixels = (1 << bits) - 1 - pixels
        if bits > 8:
            pixels = pixels >> (bits - 8)
        elif bits < 8:
            pixels = pixels.astype(np.uint16) * 255 // ((1 << bits) - 1)
        image = pixels.astype(np.uint8)
        return image if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)


def _silence_pydicom() -> None:
    """Keep pydicom from printing what it finds in a damaged header: it may be the name of a patient."""
    warnings.filterwarnings("ignore", module=r"pydicom|polypcount\.video")
    logging.getLogger("pydicom").setLevel(logging.CRITICAL + 1)


def _fps(header: "Dataset") -> float | None:
    """Frames per second, by the first of three elements that is a positive number."""
    for name in ("RecommendedDisplayFrameRate", "CineRate", "FrameTime"):
        with contextlib.suppress(Exception):  # pydicom reads the element here, and raises errors of many kinds
            value = float(header.get(name))
            if math.isfinite(value) and value > 0:
                return 1000 / value if name == "FrameTime" else value  # milliseconds between frames
    return None


def _frame_times(header: "Dataset", frame_count: int) -> NDArray[np.float64] | None:
    """When each frame is shown and when the last one ends, float64[frame_count + 1], by the vector of frame times.

    The vector holds the milliseconds since the frame before, 0 for the first. The last frame is as long as the others
    on average. None where there is no such vector for these frames, or it is too long for a recording.
    """
    try:
        steps = np.asarray(header.get("FrameTimeVector"), np.float64).reshape(-1) / 1000
    except (TypeError, ValueError):
        return None
    if len(steps) != frame_count or frame_count < 2 or not (np.isfinite(steps).all() and (steps[1:] > 0).all()):
        return None
    times = np.cumsum([0.0, *steps[1:], steps[1:].mean()])
    return times if times[-1] < LONGEST_SECONDS else None


def _stream_segments(path: Path, pixels_at: int) -> list[tuple[int, int]]:
    """The bytes of the video stream: (offset, length) of each fragment of the pixel data."""
    segments: list[tuple[int, int]] = []
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(pixels_at)
        element = file.read(12)
        if element[:4] != _PIXEL_DATA or element[8:] != _UNKNOWN_LENGTH:
            raise FileError(
                f"{path} has no video stream where its header ends; it is cut off or damaged, copy it again"
            )
        while file.read(4) == _ITEM and len(length := file.read(4)) == 4:
            segments.append((file.tell(), min(int.from_bytes(length, "little"), size - file.tell())))
            file.seek(sum(segments[-1]))
    return segments[1:]  # the first item is a table of offsets


class _Segments(io.RawIOBase):
    """Segments of a file, (offset, length) each, read as if they were one file."""

    def __init__(self, path: Path, segments: list[tuple[int, int]]) -> None:
        super().__init__()
        self._file = path.open("rb")
        self._segments = segments
        self._ends = [0, *accumulate(length for _, length in segments)]
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._ends[-1]}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        """Fill the buffer up to the end of the segment; 0 at the very end."""
        number = bisect.bisect_right(self._ends, self._position)
        if number == len(self._ends):
            return 0
        offset, length = self._segments[number - 1]
        left = self._ends[number] - self._position
        self._file.seek(offset + length - left)
        count = self._file.readinto(memoryview(buffer)[:left])
        self._position += count
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
