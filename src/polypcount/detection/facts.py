"""What the file of a detector, and the files beside it, say about it; nothing is used unchecked."""

import ast
import json
import logging
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from polypcount.detection.settings import LARGEST_SIDE
from polypcount.encoder import Preprocessing
from polypcount.errors import FileError
from polypcount.storage import read_json

_LOG = logging.getLogger(__name__)
_LONGEST_LITERAL, _LONGEST_JSON = 1 << 16, 1 << 20  # characters
_MOST_CLASSES, _LONGEST_NAME = 4096, 100
_RFDETR = "rfdetr_inference"
UNIT = Preprocessing(mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
IMAGENET = Preprocessing()
# By `model_type` in a config.json of Hugging Face: how their own code makes scores.
_ACTIVATIONS: dict[str, Literal["sigmoid", "softmax"]] = {
    **dict.fromkeys(["detr", "yolos", "table-transformer"], "softmax"),
    **dict.fromkeys(["rt_detr", "rt_detr_v2", "d_fine", "rf_detr", "lw_detr"], "sigmoid"),
    **dict.fromkeys(["dab-detr", "conditional_detr", "deformable_detr"], "sigmoid"),
}


@dataclass(frozen=True)
class ModelFacts:
    """What is known about a detector besides the shapes of its inputs and outputs; None or empty where nothing says it.

    Attributes:
        names: Names of the classes, by number.
        task: The task in the words of the ultralytics exporter; a detector has "detect".
        size: Width and height of the input in pixels.
        stride: Width and height must be multiples of it.
        drops_overlaps: Whether the model drops overlapping boxes itself.
        rtdetr: Whether it is an RT-DETR of ultralytics.
        images: Mean and standard deviation of the input.
        activation: How the model's numbers become scores.
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
    """Read the metadata of an ONNX file or, for exports of Hugging Face, the JSON files beside it."""
    if _RFDETR in metadata:
        return _from_rfdetr(metadata[_RFDETR], path)
    if "names" in metadata or "task" in metadata:
        return _from_ultralytics(metadata, path)
    return _from_hugging_face(path)


def _from_ultralytics(metadata: Mapping[str, str], path: Path) -> ModelFacts:
    values = {name: _literal(metadata.get(name, "")) for name in ("names", "imgsz", "stride", "end2end", "args")}
    names, sides, stride, arguments = values["names"], values["imgsz"], values["stride"], values["args"]
    return ModelFacts(
        names=_names(dict(enumerate(names)) if isinstance(names, list) else names, path),
        task=metadata["task"].strip()[:_LONGEST_NAME] if "task" in metadata else None,
        size=_size(*(reversed(sides) if isinstance(sides, list | tuple) else (sides, sides))),
        stride=stride if isinstance(stride, int) and 1 <= stride <= 1024 else 1,
        drops_overlaps=values["end2end"] is True or (isinstance(arguments, dict) and arguments.get("nms") is True),
        rtdetr="rtdetr" in metadata.get("description", "").lower().replace("-", ""),
    )


def _from_rfdetr(text: str, path: Path) -> ModelFacts:
    values = _json_object(lambda: json.loads(text[:_LONGEST_JSON]))
    listed = values.get("class_names")
    names = values.get("class_id_to_name") or (dict(enumerate(listed)) if isinstance(listed, list) else None)
    images = _images(values.get("means"), values.get("stds"))
    return ModelFacts(names=_names(names, path), images=images, activation="sigmoid")


def _from_hugging_face(path: Path) -> ModelFacts:
    # Their folders have model.onnx beside these files, or in a folder "onnx" below them.
    folder = path.parent.parent if path.parent.name == "onnx" else path.parent
    model = _json_object(lambda: read_json(folder / "config.json", _LONGEST_JSON))
    images = _json_object(lambda: read_json(folder / "preprocessor_config.json", _LONGEST_JSON))
    kind, size, normalised = model.get("model_type"), images.get("size"), images.get("do_normalize")
    if not isinstance(kind, str):
        return ModelFacts()
    normal = _images(images.get("image_mean"), images.get("image_std")) if normalised is True else None
    return ModelFacts(
        names=_names(model.get("id2label"), path),
        size=_size(size.get("width"), size.get("height")) if isinstance(size, dict) else None,
        images=UNIT if normalised is False else normal,
        activation=_ACTIVATIONS.get(kind),
    )


def _literal(text: str) -> Any:
    """The value of a Python literal, as some exporters write their metadata; None if it is not one."""
    if len(text) > _LONGEST_LITERAL:
        return None
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _json_object(read: Callable[[], Any]) -> dict[str, Any]:
    """The object that a reader of JSON gives; empty if it fails or gives anything else."""
    try:
        values = read()
    except (FileError, ValueError, RecursionError):
        values = None
    return values if isinstance(values, dict) else {}


def _names(values: object, path: Path) -> dict[int, str]:
    """Class names by number; empty, with a warning, if the file has anything else."""
    if values is None or values == {}:
        return {}
    if isinstance(values, dict) and len(values) <= _MOST_CLASSES:
        numbers = [int(key) if str(key).isdecimal() and len(str(key)) < 6 else -1 for key in values]
        texts = list(values.values())
        fine = all(isinstance(text, str) and text.isprintable() and len(text) <= _LONGEST_NAME for text in texts)
        if fine and len(set(numbers)) == len(numbers) and min(numbers) >= 0 and max(numbers) < _MOST_CLASSES:
            return dict(sorted(zip(numbers, texts, strict=True)))
    _LOG.warning("%s: its class names cannot be read, so classes have numbers only", path)
    return {}


def _images(mean: Any, std: Any) -> Preprocessing | None:
    try:
        return Preprocessing(mean=tuple(mean), std=tuple(std))
    except (TypeError, ValueError):
        return None


def _size(*sides: Any) -> tuple[int, int] | None:
    if len(sides) == 2 and all(type(side) is int and 1 <= side <= LARGEST_SIDE for side in sides):
        return sides
    return None
