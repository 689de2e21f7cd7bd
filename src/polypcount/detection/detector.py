"""A trained detector, run on the frames of a recording."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Boxes
from polypcount.detection.facts import UNIT
from polypcount.detection.model_file import OnnxModel, open_model
from polypcount.detection.outputs import OutputReading, read, without_overlaps
from polypcount.detection.reading import resolve
from polypcount.detection.settings import DetectorSettings
from polypcount.encoder import Preprocessing
from polypcount.errors import FileError
from polypcount.progress import Progress, no_progress
from polypcount.video import FrameSource, resize
from polypcount.video.ahead import ahead
from polypcount.video.frames import Image, refuse_no_image

_GREY = 114  # beside a letterboxed frame, as the exporters of the YOLO family have it
_Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Detector:
    """A detector that is ready to detect; `load_detector` makes it.

    Attributes:
        model: The opened file.
        settings: As the user gave them.
        reading: How its outputs are read.
        images: Mean and standard deviation of its input.
    """

    model: OnnxModel = field(repr=False)
    settings: DetectorSettings
    reading: OutputReading
    images: Preprocessing = field(repr=False)

    @property
    def path(self) -> Path:
        """Its file."""
        return self.model.path

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the file, and of the files with weights beside it if it has those, as hexadecimal text."""
        return self.model.fingerprint

    @property
    def names(self) -> Mapping[int, str]:
        """Names of the classes, by number; empty if the file does not say them."""
        return self.model.facts.names

    @property
    def family(self) -> str:
        """Either "yolo" or "detr"."""
        return self.reading.form.partition("-")[0]

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of its input in pixels."""
        return self.model.size

    @property
    def description(self) -> dict[str, Any]:
        """Everything that decides its boxes, as JSON values."""
        return {
            "file": self.path.name,
            "sha256": self.fingerprint,
            "input": list(self.size),
            "mean": list(self.images.mean),
            "std": list(self.images.std),
            "form": self.reading.form,
            "boxes": self.reading.boxes,
            "scale": self.reading.scale,
            "activation": self.reading.activation,
            "classes": None if self.reading.classes is None else list(self.reading.classes),
            "class_names": {str(number): name for number, name in self.names.items()},
            "confidence": self.settings.confidence,
            "iou": self.settings.iou,
        }

    def detect(self, frame: Image) -> tuple[_Floats, _Floats]:
        """Find the boxes in one frame.

        Args:
            frame: RGB uint8[height, width, 3].

        Returns:
            Boxes float32[n, 4] as x1, y1, x2, y2 in pixels of the frame, cut at its edges, and scores float32[n],
            best first. Boxes without area are left out.
        """
        refuse_no_image(frame)
        height, width = frame.shape[:2]
        image, (left, top, shown_width, shown_height) = _fitted(frame, self.size, letterbox=self.family == "yolo")
        outputs = self.model.run(image, self.images, (width, height), self.reading.outputs)
        xyxy, score, kind = read(self.reading, list(outputs.values()), self.settings.confidence, self.path)
        if self.reading.scale == "unit":
            xyxy = xyxy * np.array([*self.size, *self.size])
        if self.reading.scale != "frame":
            xyxy = (xyxy - [left, top, left, top]) * np.array([width / shown_width, height / shown_height] * 2)
        inside = np.clip(xyxy, 0, [width, height, width, height]).astype(np.float32)
        rows = np.flatnonzero((inside[:, 2] > inside[:, 0]) & (inside[:, 3] > inside[:, 1]))
        compared = kind[rows] if self.reading.drops_overlaps else None
        rows = rows[without_overlaps(inside[rows], self.settings.iou, compared)]
        return inside[rows], score[rows]


def load_detector(path: str | os.PathLike[str], settings: DetectorSettings | None = None) -> Detector:
    """Open an ONNX file, and run it once on grey to find out how its outputs are read.

    Raises:
        FileError: The file is missing or damaged, or is not a detector of a known form.
        DataError: The settings do not fit the file, or the file leaves open what they must say.
    """
    settings = settings or DetectorSettings()
    model = open_model(Path(path), settings.size)
    grey = np.full((model.size[1], model.size[0], 3), _GREY, np.uint8)
    outputs = model.run(grey, UNIT, model.size)
    reading, images = resolve(model, {name: value.shape for name, value in outputs.items()}, settings)
    read(reading, [outputs[name] for name in reading.outputs], settings.confidence, path)
    return Detector(model, settings, reading, images)


def detect_boxes(
    source: FrameSource, detector: Detector, frames: range | None = None, *, progress: Progress = no_progress
) -> tuple[Boxes, int]:
    """Find the boxes in frames of a recording.

    Frames that cannot be read are left out.

    Args:
        source: Gives the frames.
        detector: Finds the boxes.
        frames: The frames that are looked at; all by default.
        progress: Counts frames.

    Returns:
        The boxes with their scores, of video row 0, and the number of frames that were read.

    Raises:
        FileError: No frame can be read.
    """
    numbers, boxes, scores = [], [], []
    try:
        for frame, _, xyxy, score in detections(source, detector, frames, progress=progress):
            numbers.append(np.full(len(xyxy), frame))
            boxes.append(xyxy)
            scores.append(score)
    except FileError:  # raised after all frames that can be read
        if not numbers:
            raise
    if not numbers:
        return Boxes.empty(), 0
    rows = np.concatenate(numbers)
    return Boxes(np.zeros_like(rows), rows, np.concatenate(boxes), np.concatenate(scores)), len(numbers)


def detections(
    source: FrameSource, detector: Detector, frames: range | None = None, *, progress: Progress = no_progress
) -> Iterator[tuple[int, Image, _Floats, _Floats]]:
    """Run a detector on frames of a recording, by default on all of them.

    A thread decodes the next frames meanwhile; up to six frames are in memory. An error in decoding is raised after the
    frames before it. Closing the iterator ends the thread.

    Yields:
        The index of a frame, the frame, its boxes and their scores, as `Detector.detect` gives them.
    """
    wanted = range(source.frame_count) if frames is None else frames
    with contextlib.closing(ahead(source.frames(np.array(wanted, np.int64)))) as images:
        for done, (index, image) in enumerate(images, 1):
            yield index, image, *detector.detect(image)
            progress(done, len(wanted))


def _fitted(frame: Image, size: tuple[int, int], *, letterbox: bool) -> tuple[Image, tuple[int, int, int, int]]:
    """Resize a frame to the size (width, height) of the input.

    Args:
        frame: uint8[h, w, 3].
        size: Width and height of the input.
        letterbox: Keep the proportions and fill with grey, instead of stretching.

    Returns:
        uint8[height, width, 3], and where the frame is in it: left, top, width and height in pixels.
    """
    width, height = size
    if not letterbox:
        return resize(frame, width, height), (0, 0, width, height)
    scale = min(width / frame.shape[1], height / frame.shape[0])
    shown_width = min(width, max(1, round(frame.shape[1] * scale)))
    shown_height = min(height, max(1, round(frame.shape[0] * scale)))
    # Of an odd number of grey rows the smaller half is above; exporters round in the same way.
    left, top = (width - shown_width) // 2, (height - shown_height) // 2
    image: Image = np.full((height, width, 3), _GREY, np.uint8)
    image[top : top + shown_height, left : left + shown_width] = resize(frame, shown_width, shown_height)
    return image, (left, top, shown_width, shown_height)
