"""A trained detector: loading it, and finding the boxes in one frame."""

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.detection.detector_file import FORMAT, DetectorFile, find_model, read_detector_file
from polypcount.detection.facts import UNIT
from polypcount.detection.false_alarms import FalseAlarmRule
from polypcount.detection.model_file import OnnxModel, open_model
from polypcount.detection.model_input import GREY, ModelInput, placement
from polypcount.detection.outputs import OutputReading, read, without_overlaps
from polypcount.detection.reading import resolve
from polypcount.detection.settings import DetectorSettings
from polypcount.encoder import Preprocessing
from polypcount.video import FrameView
from polypcount.video.frames import Image

_Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Detector:
    """A detector that is ready to detect; `load_detector` makes it. Any number of threads may use it.

    Attributes:
        model: The opened file.
        settings: As the user gave them.
        reading: How its outputs are read.
        images: Mean and standard deviation of its input.
        name: "bundled", or the name of its file.
        threshold: Boxes with at least this score are taken for polyps; boxes from `settings.confidence` on are given.
        false_alarm_rule: Which of its tracklets are perhaps no polyp; None where it comes without such a rule.
        end_to_end: How counts from its boxes come out, as `detector.json` says; None where it does not.
        padding: The value of pixels beside a letterboxed frame, 0 to 255.
    """

    model: OnnxModel = field(repr=False)
    settings: DetectorSettings
    reading: OutputReading
    images: Preprocessing = field(repr=False)
    name: str = ""
    threshold: float = 0.5
    false_alarm_rule: FalseAlarmRule | None = None
    end_to_end: Mapping[str, Any] | None = field(default=None, repr=False)
    padding: int = GREY
    _input: ModelInput = field(init=False, repr=False)
    _one_at_a_time: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_input", ModelInput(self.size, self.images, self.model.dtype, self.padding))

    @property
    def path(self) -> Path:
        """Its file."""
        return self.model.path

    @property
    def engine(self) -> str:
        """What computes it: `onnx` or `openvino`."""
        return self.model.engine

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
            "name": self.name,
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
            "threshold": self.threshold,
            "padding": self.padding,
            "engine": self.engine,
        }

    def view_size(self, width: int, height: int) -> tuple[int, int]:
        """Width and height at which it looks at a frame of this width and height; see `polypcount.video.views`."""
        at = placement((width, height), self.size, letterbox=self.family == "yolo")
        return at.width, at.height

    def detect(self, frame: Image | FrameView) -> tuple[_Floats, _Floats]:
        """Find the boxes in one frame.

        Args:
            frame: RGB uint8[height, width, 3], or a view, which is read at the size of the model's input.

        Returns:
            Boxes float32[n, 4] as x1, y1, x2, y2 in pixels of the frame, cut at its edges, and scores float32[n],
            best first. Boxes without area are left out.
        """
        view = frame if isinstance(frame, FrameView) else FrameView.of(frame)
        width, height = view.width, view.height
        at = placement((width, height), self.size, letterbox=self.family == "yolo")
        image = view.scaled(at.width, at.height)
        with self._one_at_a_time:  # the numbers of the input are overwritten by the next frame
            outputs = self.model.run(self._input.fill(image, at), (width, height), self.reading.outputs)
        xyxy, score, kind = read(self.reading, list(outputs.values()), self.settings.confidence, self.path)
        if self.reading.scale == "unit":
            xyxy = xyxy * np.array([*self.size, *self.size])
        if self.reading.scale != "frame":
            xyxy = (xyxy - [at.left, at.top, at.left, at.top]) * np.array([width / at.width, height / at.height] * 2)
        inside = np.clip(xyxy, 0, [width, height, width, height]).astype(np.float32)
        rows = np.flatnonzero((inside[:, 2] > inside[:, 0]) & (inside[:, 3] > inside[:, 1]))
        compared = kind[rows] if self.reading.drops_overlaps else None
        rows = rows[without_overlaps(inside[rows], self.settings.iou, compared)]
        return inside[rows], score[rows]


def load_detector(path: str | os.PathLike[str], settings: DetectorSettings | None = None) -> Detector:
    """Open a detector, and run it once on grey to find out how its outputs are read.

    Args:
        path: "bundled" for the bundled detector, an ONNX file, or a folder that holds `detector.onnx`. What
            `detector.json` beside a `detector.onnx` says is used, see `DetectorFile`.
        settings: How it is run and read.

    Raises:
        FileError: The file is missing or damaged, or is not a detector of a known form.
        DataError: The settings do not fit the file, or the file leaves open what they must say.
    """
    settings = settings or DetectorSettings()
    name, file = find_model(path)
    described = read_detector_file(file)
    model = open_model(file, settings.size)
    blank = ModelInput(model.size, UNIT, model.dtype).blank()
    outputs = model.run(blank, model.size)
    reading, images = resolve(model, {key: value.shape for key, value in outputs.items()}, settings)
    read(reading, [outputs[key] for key in reading.outputs], settings.confidence, file)
    if settings.engine == "openvino":
        model = model.with_openvino(reading.outputs)
    elif settings.engine == "auto" and described is not None:
        model = model.with_best_engine(reading.outputs)
    described = described or DetectorFile(format=FORMAT)
    return Detector(
        model,
        settings,
        reading,
        images,
        name,
        described.threshold,
        described.false_alarms,
        described.end_to_end,
        described.padding,
    )
