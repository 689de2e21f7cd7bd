"""What the file of a detector, and files beside it, say about it; all of it is checked before it is believed."""

import ast
import json
import logging
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from polypcount.counting.detector_settings import refuse_size
from polypcount.encoder import Preprocessing
from polypcount.errors import DataError

_LOG = logging.getLogger(__name__)
_LONGEST_LITERAL, _LONGEST_JSON = 1 << 16, 1 << 20  # characters
_MOST_CLASSES, _LONGEST_NAME = 4096, 100
_RFDETR = "rfdetr_inference"
UNIT = Preprocessing(mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
IMAGENET = Preprocessing()
# By `model_type` in a config.json of Hugging Face: how their own code makes scores.
_SOFTMAX = {"detr", "yolos", "table-transformer"}
_SIGMOID = {"rt_detr", "rt_detr_v2", "d_fine", "rf_detr", "lw_detr", "dab-detr", "conditional_detr", "deformable_detr"}


@dataclass(frozen=True)
class ModelFacts:
    """What is known of a detector beside the shapes of its inputs and outputs; None or empty where nothing says it.

    names: of classes, by number.
    task: as the exporter of ultralytics calls it; a detector has "detect".
    size: width and height of its input in pixels.
    stride: both of them must be multiples of it.
    drops_overlaps: whether it is said to drop overlapping boxes itself.
    rtdetr: whether it is said to be an RT-DETR of ultralytics.
    images: mean and standard deviation of its input.
    activation: what makes scores of what it gives.
    """

    names: Mapping[int, str] = field(default_factory=dict)
    task: str | None = None
    size: tuple[int, int] | None = None
    stride: int = 1
    drops_overlaps: bool = False
    rtdetr: bool = False
    images: Preprocessing | None = None
    activation: Literal["sigmoid", "softmax"] | None = None


def read_facts(metadata: Mapping[str, str], path: Path) -> ModelFacts:
    """From the properties that an ONNX file carries and, for exports of Hugging Face, the JSON files beside it."""
    if _RFDETR in metadata:
        return _of_rfdetr(metadata[_RFDETR], path)
    if "names" in metadata or "task" in metadata:
        return _of_ultralytics(metadata, path)
    return _of_hugging_face(path)


def _of_ultralytics(metadata: Mapping[str, str], path: Path) -> ModelFacts:
    said = {name: _literal(metadata.get(name, "")) for name in ("names", "imgsz", "stride", "end2end", "args")}
    names, stride, arguments = said["names"], said["stride"], said["args"]
    sides = said["imgsz"] if isinstance(said["imgsz"], list | tuple) else [said["imgsz"]] * 2
    return ModelFacts(
        names=_names(dict(enumerate(names)) if isinstance(names, list) else names, path),
        task=metadata["task"].strip()[:_LONGEST_NAME] if "task" in metadata else None,
        size=_size(list(reversed(sides))),
        stride=stride if isinstance(stride, int) and 1 <= stride <= 1024 else 1,
        drops_overlaps=said["end2end"] is True or (isinstance(arguments, dict) and arguments.get("nms") is True),
        rtdetr="rtdetr" in metadata.get("description", "").lower().replace("-", ""),
    )


def _of_rfdetr(text: str, path: Path) -> ModelFacts:
    said = _json(text)
    listed = said.get("class_names")
    names = said.get("class_id_to_name") or (dict(enumerate(listed)) if isinstance(listed, list) else None)
    return ModelFacts(
        names=_names(names, path), images=_images(said.get("means"), said.get("stds")), activation="sigmoid"
    )


def _of_hugging_face(path: Path) -> ModelFacts:
    # Their folders have model.onnx beside these files, or in a folder "onnx" below them.
    folder = path.parent.parent if path.parent.name == "onnx" else path.parent
    model, images = _json_file(folder / "config.json"), _json_file(folder / "preprocessor_config.json")
    kind = model.get("model_type")
    if not isinstance(kind, str):
        return ModelFacts()
    normalised = images.get("do_normalize")
    mean = _images(images.get("image_mean"), images.get("image_std")) if normalised is True else None
    size = images.get("size")
    return ModelFacts(
        names=_names(model.get("id2label"), path),
        size=_size([size.get("width"), size.get("height")]) if isinstance(size, dict) else None,
        images=UNIT if normalised is False else mean,
        activation="softmax" if kind in _SOFTMAX else "sigmoid" if kind in _SIGMOID else None,
    )


def _literal(text: str) -> Any:
    """The value of a Python literal, as some exporters write their properties; None where it is none."""
    if len(text) > _LONGEST_LITERAL:
        return None
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if len(text) <= _LONGEST_JSON else None
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def _json_file(path: Path) -> dict[str, Any]:
    try:
        with path.open(encoding="utf-8") as file:
            return _json(file.read(_LONGEST_JSON + 1))
    except (OSError, UnicodeDecodeError):
        return {}


def _names(given: object, path: Path) -> dict[int, str]:
    """Class names by number; none, and a word in the log, where they are not that."""
    if given is None or given == {}:
        return {}
    if isinstance(given, dict) and len(given) <= _MOST_CLASSES:
        numbers = [int(key) if str(key).isdecimal() and len(str(key)) < 6 else -1 for key in given]
        texts = list(given.values())
        fine = all(isinstance(text, str) and text.isprintable() and len(text) <= _LONGEST_NAME for text in texts)
        if fine and len(set(numbers)) == len(numbers) and min(numbers) >= 0 and max(numbers) < _MOST_CLASSES:
            return dict(sorted(zip(numbers, texts, strict=True)))
    _LOG.warning("%s: its class names cannot be read, so classes are known by number only", path)
    return {}


def _images(mean: object, std: object) -> Preprocessing | None:
    try:
        return Preprocessing(mean=mean, std=std)  # type: ignore[arg-type]
    except DataError:
        return None


def _size(sides: list[Any]) -> tuple[int, int] | None:
    try:
        refuse_size("size", sides)
    except DataError:
        return None
    return sides[0], sides[1]
