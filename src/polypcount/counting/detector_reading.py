"""How the outputs of a detector are to be read: what the user says, then what the file says, then what is usual."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from polypcount.counting.detector_facts import IMAGENET, UNIT, ModelFacts
from polypcount.counting.detector_forms import recognise
from polypcount.counting.detector_model import OnnxModel
from polypcount.counting.detector_outputs import Reading
from polypcount.counting.detector_settings import DetectorSettings, Form
from polypcount.encoder import Preprocessing
from polypcount.errors import DataError

_RFDETR_OUTPUTS = ("dets", "labels")  # LW-DETR, of which it is made, has them as well, and the same input


def resolve(
    path: Path, outputs: Mapping[str, NDArray[Any]], model: OnnxModel, facts: ModelFacts, settings: DetectorSettings
) -> tuple[Reading, Preprocessing]:
    """How the outputs are read, and mean and standard deviation of the input.

    outputs: what the model gave for some image.
    """
    shapes = {name: value.shape for name, value in outputs.items()}
    form, names = recognise(path, shapes, facts, settings.family, model.size)
    activation = _activation(path, form, names, facts, settings)
    boxes: Literal["cxcywh", "xyxy"] = "xyxy" if form.endswith("-final") else "cxcywh"
    if settings.boxes != "auto":
        boxes = settings.boxes
    classes = _kept_classes(path, facts, settings, _class_count(form, shapes[names[-1]], activation))
    reading = Reading(form, names, boxes, _scale(path, form, model, settings), activation, classes)
    return reading, _images(path, form, names, facts, settings)


def _activation(
    path: Path, form: Form, names: tuple[str, ...], facts: ModelFacts, settings: DetectorSettings
) -> Literal["none", "sigmoid", "softmax"]:
    if settings.activation != "auto":
        if form.endswith("-final") and settings.activation != "none":
            raise DataError(f"{path} gives scores, and activation says {settings.activation}; leave it out")
        return settings.activation
    if form != "detr-logits":
        return "none"
    if facts.activation is None and names != _RFDETR_OUTPUTS:
        raise DataError(
            f"{path} does not say what makes scores of its logits; set activation to sigmoid (RT-DETR, D-FINE, RF-DETR,"
            " Deformable DETR) or softmax (DETR, YOLOS), or put config.json of Hugging Face beside it"
        )
    return facts.activation or "sigmoid"


def _images(
    path: Path, form: Form, names: tuple[str, ...], facts: ModelFacts, settings: DetectorSettings
) -> Preprocessing:
    if settings.normalise != "auto":
        return UNIT if settings.normalise == "unit" else IMAGENET
    if form != "detr-logits":
        return UNIT
    if facts.images is None and names != _RFDETR_OUTPUTS:
        raise DataError(
            f"{path} does not say how its input is normalised; set normalise to unit (RT-DETR, D-FINE) or imagenet"
            " (DETR, YOLOS, RF-DETR), or put preprocessor_config.json of Hugging Face beside it"
        )
    return facts.images or IMAGENET


def _scale(path: Path, form: Form, model: OnnxModel, settings: DetectorSettings) -> Literal["pixels", "unit", "frame"]:
    if form == "detr-final" and model.told_frame_size:
        return "frame"
    if form == "detr-final" and settings.scale == "auto":
        raise DataError(f"{path} has no input orig_target_sizes; set scale to what its boxes are in, pixels or unit")
    if settings.scale != "auto":
        return settings.scale
    return "pixels" if form.startswith("yolo") else "unit"


def _class_count(form: Form, shape: tuple[int, ...], activation: str) -> int | None:
    """How many classes a model tells apart; None where its outputs do not say it."""
    if form.endswith("-final"):
        return None
    if form == "yolo-classes":
        return shape[1] - 4
    columns = shape[2] - {"yolo-objectness": 5, "detr-classes": 4}.get(form, 0)
    return columns - 1 if activation == "softmax" else columns


def _kept_classes(
    path: Path, facts: ModelFacts, settings: DetectorSettings, count: int | None
) -> tuple[int, ...] | None:
    if count is not None and count < 1:
        raise DataError(f"{path} has no class beside no object, which softmax asks for; set activation to sigmoid")
    if settings.classes is None:
        return None
    numbers = {name: number for number, name in facts.names.items()}
    kept = set()
    for asked in settings.classes:
        number = numbers.get(asked, int(asked) if asked.isdecimal() and len(asked) < 6 else -1)
        if number < 0 or (count is not None and number >= count):
            known = ", ".join(f"{key} {name}" for key, name in list(facts.names.items())[:20])
            raise DataError(f"{path} has no class {asked!r}; its classes are {known or f'0 to {(count or 1) - 1}'}")
        kept.add(number)
    return tuple(sorted(kept))
