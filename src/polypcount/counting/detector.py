"""A detector that others have trained, run on the frames of a recording."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.counting.detector_facts import UNIT, read_facts
from polypcount.counting.detector_input import letterboxed, stretched
from polypcount.counting.detector_model import OnnxModel, inspect, open_file
from polypcount.counting.detector_outputs import Reading, read, without_overlaps
from polypcount.counting.detector_reading import resolve
from polypcount.counting.detector_settings import DetectorSettings
from polypcount.encoder import Preprocessing
from polypcount.errors import DataError
from polypcount.progress import Progress, no_progress
from polypcount.video import FrameSource
from polypcount.video.ahead import ahead
from polypcount.video.frames import Image, refuse_no_image

__all__ = ["Detector", "DetectorSettings", "detections", "load_detector"]

Boxes = NDArray[np.float32]
Scores = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Detector:
    """A detector, ready to detect; `load_detector` makes it.

    Attributes:
        model: the opened file.
        settings: as the user gave them.
        names: of classes, by number; empty where the file does not say them.
        reading: how its outputs are read.
        images: mean and standard deviation of its input.
    """

    model: OnnxModel = field(repr=False)
    settings: DetectorSettings
    names: Mapping[int, str]
    reading: Reading
    images: Preprocessing = field(repr=False)

    @property
    def path(self) -> Path:
        """Its file."""
        return self.model.path

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the file, and of files with weights beside it if it has those, as hexadecimal text."""
        return self.model.fingerprint

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
        """What decides its boxes, as JSON values."""
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
            "confidence": float(self.settings.confidence),
            "iou": float(self.settings.iou),
        }

    def detect(self, frame: Image) -> tuple[Boxes, Scores]:
        """Boxes float32[n, 4] as x1, y1, x2, y2 in pixels of the frame, within it, and scores float32[n], best first.

        frame: RGB uint8[height, width, 3]. A box without area is left out.
        """
        refuse_no_image(frame)
        height, width = frame.shape[:2]
        fit = letterboxed if self.family == "yolo" else stretched
        image, placement = fit(frame, *self.size)
        outputs = self.model.run(image, self.images, (width, height), self.reading.outputs)
        candidates = read(self.reading, list(outputs.values()), self.settings.confidence, self.path)
        xyxy = candidates.xyxy
        if self.reading.scale == "unit":
            xyxy = xyxy * np.array([*self.size, *self.size])
        if self.reading.scale != "frame":
            xyxy = placement.to_frame(xyxy)
        within = np.clip(xyxy, 0, [width, height, width, height]).astype(np.float32)
        seen = np.flatnonzero((within[:, 2] > within[:, 0]) & (within[:, 3] > within[:, 1]))
        kind = candidates.kind[seen] if self.reading.drops_overlaps else None
        kept = seen[without_overlaps(within[seen], self.settings.iou, kind)]
        return within[kept], candidates.score[kept]


def load_detector(path: str | os.PathLike[str], settings: DetectorSettings | None = None) -> Detector:
    """Open an ONNX file and find out, by running it once on grey, how it is read."""
    settings = settings or DetectorSettings()
    place = Path(path)
    session, fingerprint = open_file(place)
    facts = read_facts(session.get_modelmeta().custom_metadata_map, place)
    model = inspect(place, session, fingerprint, facts, settings.size)
    grey = np.full((model.size[1], model.size[0], 3), 114, np.uint8)
    outputs = model.run(grey, UNIT, model.size)
    reading, images = resolve(place, outputs, model, facts, settings)
    read(reading, [outputs[name] for name in reading.outputs], settings.confidence, place)
    return Detector(model, settings, facts.names, reading, images)


def detections(
    source: FrameSource, detector: Detector, *, every: int = 1, progress: Progress = no_progress
) -> Iterator[tuple[int, Image, Boxes, Scores]]:
    """Each `every`-th frame of a recording, from the first on, as (index, frame, boxes, scores); see `detect`.

    The next frames are decoded by a thread meanwhile; up to six frames are in memory. What goes wrong in decoding comes
    out after the frames before. Closing the iterator ends the thread.
    """
    if isinstance(every, bool) or not isinstance(every, int | np.integer) or every < 1:
        raise DataError(f"every must be a whole number from 1 on, found {every!r}")
    return _detections(source, detector, np.arange(0, source.frame_count, every), progress)


def _detections(
    source: FrameSource, detector: Detector, wanted: NDArray[np.int64], progress: Progress
) -> Iterator[tuple[int, Image, Boxes, Scores]]:
    with contextlib.closing(ahead(source.frames(wanted))) as frames:
        for done, (index, image) in enumerate(frames, 1):
            xyxy, score = detector.detect(image)
            yield index, image, xyxy, score
            progress(done, len(wanted))
