"""Writing frames as an mp4 file that browsers and players show."""

import os
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

from polypcount.errors import DataError, FileError, first_line
from polypcount.video.frames import Image, refuse_large
from polypcount.whole import whole_file

_BT709 = 1  # the number of ITU-R BT.709 among primaries, transfer functions and matrices of H.264
_LIMITED_RANGE = 1
_THREADS = 4  # their number changes what is written, so it does not follow the machine


def write_video(path: str | os.PathLike[str], frames: Iterable[Image], fps: float, *, quality: int = 23) -> int:
    """Write an H.264 video in an mp4 file, whole or not at all; returns the number of frames.

    frames: RGB uint8[height, width, 3], all of one size, with even width and height; one is in memory at a time.
    fps: frames a second, 0.01 to 1000, kept as the nearest fraction with a denominator of up to 1001.
    quality: the rate factor of x264, 1 (large, hardly changed) to 51 (small, coarse); six more is about half the size.
    The same frames and settings give the same bytes. Whatever the iterator of frames raises is passed on.
    """
    import av

    if not 0.01 <= fps <= 1000:
        raise DataError(f"fps must be a number from 0.01 to 1000, found {fps}")
    if quality not in range(1, 52):
        raise DataError(f"quality must be a whole number from 1 (best) to 51 (smallest), found {quality}")
    place = Path(path)
    if place.is_dir():
        raise FileError(f"{place} is a folder; give the name of a file to write, such as {place / 'video.mp4'}")
    images = _checked(frames, place)
    given = first = next(images, None)
    if first is None:
        raise DataError(f"{place}: a video needs at least one frame, found none")
    rate = Fraction(fps).limit_denominator(1001)
    count, ours = 0, True  # ours: an error that comes up now is one of writing, not of the iterator
    try:
        with (
            whole_file(place) as unfinished,
            av.open(str(unfinished), "w", format="mp4", container_options={"movflags": "+faststart"}) as file,
        ):
            stream = file.add_stream("libx264", rate, options={"preset": "veryfast", "crf": str(int(quality))})
            stream.height, stream.width = first.shape[:2]
            stream.pix_fmt = "yuv420p"
            stream.thread_type, stream.thread_count = "FRAME", _THREADS
            # Without these a player guesses the colours, each in its own way.
            stream.color_primaries = stream.color_trc = stream.colorspace = _BT709
            stream.color_range = _LIMITED_RANGE
            while given is not None:
                frame = av.VideoFrame.from_ndarray(given, format="rgb24")
                frame = frame.reformat(format="yuv420p", dst_colorspace="ITU709", dst_color_range=_LIMITED_RANGE)
                frame.pts, frame.time_base = count, 1 / rate
                file.mux(stream.encode(frame))
                count += 1
                ours = False
                given = next(images, None)
                ours = True
            file.mux(stream.encode())
    except (av.FFmpegError, OSError) as problem:
        if not ours:
            raise
        raise FileError(f"{place}: the video cannot be written: {first_line(problem)}") from problem
    return count


def _checked(frames: Iterable[Image], place: Path) -> Iterator[Image]:
    size: tuple[int, int] | None = None
    for number, frame in enumerate(frames):
        name = f"{place}: frame {number}"
        if not isinstance(frame, np.ndarray) or frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
            found = f"{frame.dtype}{list(frame.shape)}" if isinstance(frame, np.ndarray) else type(frame).__name__
            raise DataError(f"{name} must be RGB uint8[height, width, 3], found {found}")
        height, width = frame.shape[:2]
        if size is None:
            refuse_large(name, width, height)
            if width % 2 or height % 2:
                raise DataError(
                    f"{name} has {width} x {height} pixels, and the video needs an even width and height; "
                    "leave out, or repeat, the last column or row"
                )
            size = width, height
        if (width, height) != size:
            raise DataError(f"{name} has {width} x {height} pixels, and the first has {size[0]} x {size[1]}; resize it")
        yield frame
