"""Small recordings whose frames carry their own number, so that a test can read which frame it was given."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT, BIT = 96, 64, 8


def numbered(number: int) -> NDArray[np.uint8]:
    """A picture with the number in its top row as 12 black or white squares, over a moving gradient."""
    columns, rows = np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT))
    picture = np.stack([columns * 2 + number, rows * 3, columns + rows], axis=2).astype(np.uint8)
    for bit in range(12):
        picture[: 2 * BIT, BIT * bit : BIT * (bit + 1)] = 255 * (number >> bit & 1)
    return picture


def number_of(picture: NDArray[np.uint8]) -> int:
    """The number that a picture shows."""
    assert picture.shape == (HEIGHT, WIDTH, 3)
    assert picture.dtype == np.uint8
    return sum(int(picture[BIT, BIT * bit + BIT // 2].mean() > 127) << bit for bit in range(12))


def write_movie(
    path: Path,
    frames: int = 60,
    *,
    codec: str = "libx264",
    gop: int = 12,
    b_frames: int = 3,
    times_ms: Sequence[int] | None = None,
    options: dict[str, str] | None = None,
    container: dict[str, str] | None = None,
) -> Path:
    """Write frames 0 .. frames - 1 at 25 a second, or at the given times."""
    with av.open(str(path), "w", options=container or {}) as file:
        stream = file.add_stream(codec, rate=25, options={**(options or {})})
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height = WIDTH, HEIGHT
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        stream.codec_context.gop_size = gop
        if codec != "mjpeg":
            stream.codec_context.max_b_frames = b_frames
        if times_ms is not None:
            stream.codec_context.time_base = Fraction(1, 1000)
        for number in range(frames):
            frame = av.VideoFrame.from_ndarray(numbered(number), format="rgb24")
            frame.pts = number if times_ms is None else times_ms[number]
            frame.time_base = Fraction(1, 25) if times_ms is None else Fraction(1, 1000)
            file.mux(stream.encode(frame))
        file.mux(stream.encode())
    return path
