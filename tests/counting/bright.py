"""A recording of bright patterned squares that come and go, and detectors that find them."""

import functools
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from polypcount.detection import Detector, load_detector
from polypcount.video.write import write_video
from tests.detection.onnx_detectors import finder

WIDTH, HEIGHT, FRAMES, FPS = 160, 128, 200, 25.0
# Of each visit: first frame, frame after the last, left and top of the square, period of its stripes in pixels.
VISITS: tuple[tuple[int, int, int, int, int], ...] = ((10, 61, 20, 20, 6), (90, 130, 80, 50, 16), (150, 162, 30, 60, 6))
UNSEEN = (33, 34, 35, 100)  # frames in which the square is too dark for the detector
SIDE = 48
SCORE = 0.9  # of every box
# A rule by the number of looks alone: tracklets with a box in fewer than exp(2.3) = 10 looks are perhaps no polyp.
BY_LOOKS = {"weights": [0, 0, 10, 0], "intercept": -23.0, "threshold": 0.5}


def frame_at(frame: int) -> np.ndarray:
    """RGB uint8[128, 160, 3]: a dark wall, and the square if there is one."""
    image = np.full((HEIGHT, WIDTH, 3), (60, 30, 30), np.uint8)
    for start, stop, x, y, period in VISITS:
        if start <= frame < stop:
            left, top = place(frame, start, x, y)
            stripes = np.where(np.arange(SIDE) % period < period / 2, 255, 200).astype(np.uint8)
            square = np.repeat(stripes[None, :, None], SIDE, axis=0) * np.ones(3, np.uint8)
            image[top : top + SIDE, left : left + SIDE] = square // (3 if frame in UNSEEN else 1)
    return image


def place(frame: int, start: int, left: int, top: int) -> tuple[int, int]:
    """Where a square is: it moves right by a pixel every second frame, and down every fourth."""
    return left + (frame - start) // 2, top + (frame - start) // 4


@functools.cache
def bright() -> Path:
    """The recording, nearly without loss."""
    path = Path(tempfile.mkdtemp(prefix="polypcount-test-")) / "bright.mp4"
    write_video(path, [frame_at(frame) for frame in range(FRAMES)], FPS, quality=4)
    return path


@functools.cache
def finder_folder(**described: Any) -> Path:
    """The folder of a detector that finds the squares. described: Further keys of its detector.json, as JSON texts."""
    folder = Path(tempfile.mkdtemp(prefix="polypcount-test-"))
    finder(folder / "detector.onnx", "yolo-classes", (WIDTH, HEIGHT))
    values = {"format": "polypcount-detector 1", "threshold": 0.6}
    values |= {name: json.loads(text) for name, text in described.items()}
    (folder / "detector.json").write_text(json.dumps(values))
    return folder


@functools.cache
def detector(**described: Any) -> Detector:
    """That detector, loaded; arguments as for `finder_folder`."""
    return load_detector(finder_folder(**described))
