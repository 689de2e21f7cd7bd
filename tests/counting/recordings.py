"""A short recording with polyps that come and go, drawn once for all tests of a process."""

import functools
import tempfile
from pathlib import Path

import numpy as np

from polypcount.corpus import Boxes, Corpus
from polypcount.video.write import write_video

WIDTH, HEIGHT, FRAMES, FPS = 160, 128, 220, 25.0
# Of each tracklet: first frame, frame after the last, polyp, left and top of its box.
TRACKLETS: tuple[tuple[int, int, int, int, int], ...] = (
    (5, 45, 0, 20, 20),
    (60, 100, 1, 90, 60),
    (80, 120, 0, 15, 30),
    (140, 180, 1, 80, 50),
    (190, 200, 2, 60, 20),
)
SIDE = 48


@functools.cache
def recording() -> Path:
    """An mp4 file of textured discs on a plain wall."""
    path = Path(tempfile.mkdtemp(prefix="polypcount-test-")) / "case.mp4"
    write_video(path, [frame_at(frame) for frame in range(FRAMES)], FPS, quality=12)
    return path


def frame_at(frame: int) -> np.ndarray:
    """RGB uint8[128, 160, 3]."""
    image = np.full((HEIGHT, WIDTH, 3), (150, 90, 80), np.uint8)
    for start, stop, polyp, x, y in TRACKLETS:
        if start <= frame < stop:
            left, top = place(frame, start, x, y)
            image[top : top + SIDE, left : left + SIDE] = looks(polyp)
    return image


def place(frame: int, start: int, left: int, top: int) -> tuple[int, int]:
    """Where a disc is: it moves by a pixel every four frames."""
    return left + (frame - start) // 4 % 8, top + (frame - start) // 8 % 8


@functools.cache
def looks(polyp: int) -> np.ndarray:
    """A texture of its own for each polyp: stripes, spots or rings in another colour."""
    y, x = np.mgrid[:SIDE, :SIDE].astype(np.float64)
    pattern = (np.sin(x / 1.5), np.sin(x / 3) * np.sin(y / 3), np.sin(np.hypot(x - 24, y - 24)))[polyp]
    colour = np.array(((230, 190, 60), (90, 30, 120), (40, 160, 150))[polyp], np.float64)
    return np.asarray(np.clip(colour + 60 * pattern[:, :, None], 0, 255), np.uint8)


def boxes(*, polyps: bool = False, tracks: bool = False, only: slice = slice(None)) -> Boxes:
    """All boxes, by frame; with the polyp or with the number of the tracklet."""
    rows = [
        (frame, *place(frame, start, x, y), polyp, number)
        for number, (start, stop, polyp, x, y) in enumerate(TRACKLETS[only])
        for frame in range(start, stop)
    ]
    table = np.array(sorted(rows), np.int64).reshape(-1, 5)
    frame, left, top, polyp, number = table.T
    return Boxes(
        np.zeros(len(table), np.int32),
        frame,
        np.stack([left, top, left + SIDE, top + SIDE], axis=1).astype(np.float32),
        polyp=polyp if polyps else None,
        track=number if tracks else None,
    )


def corpus(*, polyps: bool = False) -> Corpus:
    """The recording as a corpus of its own."""
    from polypcount.corpus import Polyp, Video

    video = Video("case", FRAMES, FPS, WIDTH, HEIGHT, str(recording()))
    known = tuple(Polyp(f"p{number}", "case") for number in range(3)) if polyps else ()
    return Corpus((video,), boxes(polyps=polyps), known)
