"""Writing frames as an mp4 file that browsers and players show."""

import os
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path

from polypcount.errors import DataError, FileError, first_line
from polypcount.storage.files import whole_file
from polypcount.video.frames import Image, refuse_large, refuse_no_image

_BT709 = 1  # the number of ITU-R BT.709 among primaries, transfer functions and matrices of H.264
_LIMITED_RANGE = 1
_THREADS = 4  # fixed, since the bytes depend on the number of threads


def write_video(path: str | os.PathLike[str], frames: Iterable[Image], fps: float, *, quality: int = 23) -> int:
    """Write an H.264 video in an mp4 file, whole or not at all.

    The same frames and settings give the same bytes. Errors of the iterator `frames` are passed on.

    Args:
        path: The file; missing folders are made.
        frames: RGB uint8[height, width, 3], all of one size, with even width and height; one is in memory at a time.
        fps: Frames per second, 0.01 to 1000, kept as the nearest fraction with a denominator of up to 1001.
        quality: Rate factor of x264, from 1 (large, hardly changed) to 51 (small, coarse); six more halves the size.

    Returns:
        The number of frames.
    """
    import av

    if not 0.01 <= fps <= 1000:
        raise DataError(f"fps must be a number from 0.01 to 1000, found {fps}")
    if quality not in range(1, 52):
        raise DataError(f"quality must be a whole number from 1 (best) to 51 (smallest), found {quality}")
    path = Path(path)
    if path.is_dir():
        raise FileError(f"{path} is a folder; give the name of a file to write, such as {path / 'video.mp4'}")
    images = _checked(frames, path)
    image = first = next(images, None)
    if first is None:
        raise DataError(f"{path}: a video needs at least one frame, found none")
    rate = Fraction(fps).limit_denominator(1001)
    count, writing = 0, True  # if not writing, an error comes from the iterator
    try:
        with (
            whole_file(path) as unfinished,
            av.open(str(unfinished), "w", format="mp4", container_options={"movflags": "+faststart"}) as file,
        ):
            # Looking ahead, x264 decides by what its threads happen to have finished.
            options = {"preset": "veryfast", "crf": str(int(quality)), "x264-params": "rc-lookahead=0"}
            stream = file.add_stream("libx264", rate, options=options)
            stream.height, stream.width = first.shape[:2]
            stream.pix_fmt = "yuv420p"
            stream.thread_type, stream.thread_count = "FRAME", _THREADS
            # Without these, players guess the colours differently.
            stream.color_primaries = stream.color_trc = stream.colorspace = _BT709
            stream.color_range = _LIMITED_RANGE
            while image is not None:
                frame = av.VideoFrame.from_ndarray(image, format="rgb24")
                frame = frame.reformat(format="yuv420p", dst_colorspace="ITU709", dst_color_range=_LIMITED_RANGE)
                frame.pts, frame.time_base = count, 1 / rate
                file.mux(stream.encode(frame))
                count += 1
                writing = False
                image = next(images, None)
                writing = True
            file.mux(stream.encode())
    except (av.FFmpegError, OSError) as problem:
        if not writing:
            raise
        raise FileError(f"{path}: the video cannot be written: {first_line(problem)}") from problem
    return count


def _checked(frames: Iterable[Image], path: Path) -> Iterator[Image]:
    first = None
    for number, frame in enumerate(frames):
        refuse_no_image(frame, name := f"{path}: frame {number}")
        size = f"{frame.shape[1]} x {frame.shape[0]} pixels"
        refuse_large(name, frame.shape[1], frame.shape[0])
        if frame.shape[1] % 2 or frame.shape[0] % 2:
            raise DataError(
                f"{name} has {size}, and the video needs an even width and height; "
                "leave out, or repeat, the last column or row"
            )
        first = first or size
        if size != first:
            raise DataError(f"{name} has {size}, and the first has {first}; resize it")
        yield frame
