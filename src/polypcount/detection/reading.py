"""How the outputs of a detector are read: first what the user sets, then what the file says, then what is usual.

yolo-classes      one output [1, 4 + classes, n]           YOLOv8, v9, 11, 12
yolo-objectness   one output [1, n, 5 + classes]           YOLOv5, v7
yolo-final        one output [1, n, 6]                     YOLOv10, 26, exports with nms=True
detr-logits       boxes [1, n, 4], logits [1, n, classes]  RF-DETR, exports of Hugging Face
detr-classes      one output [1, n, 4 + classes]           RT-DETR of ultralytics
detr-final        labels, boxes, scores                    RT-DETR, D-FINE, DEIM
"""

import itertools
from collections.abc import Mapping
from typing import Literal

from polypcount.detection.facts import IMAGENET, UNIT, ModelFacts
from polypcount.detection.model_file import FRAME_SIZE, OnnxModel
from polypcount.detection.outputs import OutputReading
from polypcount.detection.settings import DetectorSettings, OutputForm
from polypcount.encoder import Preprocessing
from polypcount.errors import DataError, FileError

_Shapes = Mapping[str, tuple[int, ...]]
_FINAL = ("labels", "boxes", "scores")
_BOXES, _LOGITS = ("dets", "pred_boxes", "boxes"), ("labels", "pred_logits", "logits")
_RFDETR_OUTPUTS = ("dets", "labels")  # LW-DETR, its parent, has the same outputs and the same input
_STRIDES = ((8, 16, 32), (8, 16, 32, 64), (4, 8, 16, 32))
# For forms with one output: how many columns come before the classes.
_BEFORE_CLASSES: dict[OutputForm, int] = {"yolo-classes": 4, "yolo-objectness": 5, "yolo-final": 5, "detr-classes": 4}


def resolve(model: OnnxModel, shapes: _Shapes, settings: DetectorSettings) -> tuple[OutputReading, Preprocessing]:
    """Decide how the outputs are read, and the mean and standard deviation of the input.

    Args:
        model: The detector.
        shapes: Shapes of all outputs, by name, for an input of the model's size.
        settings: What the user sets.
    """
    form, outputs = _recognise(model, shapes, settings.family)
    activation = _activation(model, form, outputs, settings)
    boxes: Literal["cxcywh", "xyxy"] = "xyxy" if form.endswith("-final") else "cxcywh"
    if settings.boxes != "auto":
        boxes = settings.boxes
    classes = _kept_classes(model, settings, _class_count(form, shapes[outputs[-1]], activation))
    reading = OutputReading(form, outputs, boxes, _scale(model, form, settings), activation, classes)
    return reading, _images(model, form, outputs, settings)


def _recognise(
    model: OnnxModel, shapes: _Shapes, family: Literal["auto", "yolo", "detr", OutputForm]
) -> tuple[OutputForm, tuple[str, ...]]:
    """The form, and the names of the outputs that it is read from, in the order in which `read` takes them."""
    path, task = model.path, model.facts.task
    if task not in (None, "detect"):
        raise FileError(f"{path} was exported for the task {task!r}; export a detection model, which has 'detect'")
    form, outputs = _with_boxes_apart(shapes, family)
    if form is None:
        # Older exports of YOLOv5 also give the parts that the output was made of, as arrays of five axes.
        single = {name: shape for name, shape in shapes.items() if len(shape) != 5}
        if len(single) != 1 or len(shape := next(iter(single.values()))) != 3 or shape[0] != 1:
            raise FileError(
                f"{path} is not a detector of a known form: expected one output of three axes, or boxes and logits, or"
                f" labels, boxes and scores, found {_shown(shapes)}; docs/detectors.md lists the exports that can be"
                " read"
            )
        form = family if family in _BEFORE_CLASSES else _of_single(shape[1], shape[2], model.facts, model.size)
        if form is None or not _fits(form, shape[1], shape[2]):
            raise DataError(
                f"{path}: the form of its output {_shown(single)} is not clear; it can be yolo-classes for"
                " [1, 4 + classes, n], yolo-objectness for [1, n, 5 + classes], yolo-final for [1, n, 6],"
                " detr-classes for [1, n, 4 + classes]",
                mend="detector.family",
            )
        outputs = tuple(single)
    if family != "auto" and family not in (form, form.partition("-")[0]):
        raise DataError(
            f"{path} gives outputs of the form {form}, {_shown(shapes)}, and the family is set to {family}",
            mend="detector.family",
        )
    return form, outputs


def _with_boxes_apart(shapes: _Shapes, family: str) -> tuple[OutputForm | None, tuple[str, ...]]:
    """The form, and the names of the outputs, if one output holds only boxes; None if there is no such form."""
    labels, boxes, scores = (shapes.get(name, ()) for name in _FINAL)
    if len(labels) == 2 and labels == scores and boxes == (*labels, 4):
        return "detr-final", _FINAL
    pairs = [pair for pair in itertools.product(_BOXES, _LOGITS) if _is_pair(shapes, *pair)][:1]
    if not pairs and family in ("detr", "detr-logits"):
        pairs = [pair for pair in itertools.permutations(shapes, 2) if _is_pair(shapes, *pair)]
    return ("detr-logits", pairs[0]) if len(pairs) == 1 else (None, ())


def _is_pair(shapes: _Shapes, boxes: str, logits: str) -> bool:
    box, logit = shapes.get(boxes, ()), shapes.get(logits, ())
    return len(box) == len(logit) == 3 and box[2] == 4 and box[:2] == logit[:2] and logit[2] >= 1


def _fits(form: OutputForm, rows: int, columns: int) -> bool:
    if form == "yolo-final":
        return columns == 6
    return (rows if form == "yolo-classes" else columns) > _BEFORE_CLASSES[form]


def _of_single(rows: int, columns: int, facts: ModelFacts, size: tuple[int, int]) -> OutputForm | None:
    """The form of one output [1, rows, columns]; None if more than one is possible."""
    classes = len(facts.names)
    cells = {sum(-(-size[0] // s) * -(-size[1] // s) for s in strides) for strides in _STRIDES}
    if facts.rtdetr:
        return "detr-classes" if columns == 4 + classes else None
    if columns == 6 and facts.drops_overlaps:
        return "yolo-final"
    if classes and rows == 4 + classes:
        return "yolo-classes"
    if facts.task is not None:  # the exporter of ultralytics, which has no other form than these
        return "yolo-final" if columns == 6 else None
    if columns > 5 and rows in {3 * count for count in cells} and classes in (0, columns - 5):
        return "yolo-objectness"
    # One row for each cell would be YOLOX, whose boxes are not in pixels.
    if columns == 6 and rows < min(cells):
        return "yolo-final"
    return "yolo-classes" if rows > 4 and columns in cells and not classes else None


def _shown(shapes: _Shapes) -> str:
    return ", ".join(f"{name} {list(shape)}" for name, shape in list(shapes.items())[:6]) or "none"


def _activation(
    model: OnnxModel, form: OutputForm, outputs: tuple[str, ...], settings: DetectorSettings
) -> Literal["none", "sigmoid", "softmax"]:
    if settings.activation != "auto":
        if form.endswith("-final") and settings.activation != "none":
            raise DataError(f"{model.path} gives scores, so there is no activation to set", mend="detector.activation")
        return settings.activation
    if form != "detr-logits":
        return "none"
    if model.facts.activation is None and outputs != _RFDETR_OUTPUTS:
        raise DataError(
            f"{model.path} does not say how its logits become scores: by sigmoid (RT-DETR, D-FINE, RF-DETR, Deformable"
            " DETR) or by softmax (DETR, YOLOS); a config.json of Hugging Face beside it would say it",
            mend="detector.activation",
        )
    return model.facts.activation or "sigmoid"


def _images(model: OnnxModel, form: OutputForm, outputs: tuple[str, ...], settings: DetectorSettings) -> Preprocessing:
    if settings.normalise != "auto" or form != "detr-logits":
        return IMAGENET if settings.normalise == "imagenet" else UNIT
    if model.facts.images is None and outputs != _RFDETR_OUTPUTS:
        raise DataError(
            f"{model.path} does not say how its input is normalised: unit (RT-DETR, D-FINE) or imagenet (DETR, YOLOS,"
            " RF-DETR); a preprocessor_config.json of Hugging Face beside it would say it",
            mend="detector.normalise",
        )
    return model.facts.images or IMAGENET


def _scale(model: OnnxModel, form: OutputForm, settings: DetectorSettings) -> Literal["pixels", "unit", "frame"]:
    if form == "detr-final" and FRAME_SIZE in model.others:
        return "frame"
    if settings.scale != "auto":
        return settings.scale
    if form == "detr-final":
        raise DataError(
            f"{model.path} has no input orig_target_sizes, so the scale of its boxes is not clear: pixels or unit",
            mend="detector.scale",
        )
    return "pixels" if form.startswith("yolo") else "unit"


def _class_count(form: OutputForm, shape: tuple[int, ...], activation: str) -> int | None:
    """How many classes a model has; None if its outputs do not say it."""
    if form.endswith("-final"):
        return None
    count = shape[1 if form == "yolo-classes" else 2] - _BEFORE_CLASSES.get(form, 0)
    return count - 1 if activation == "softmax" else count


def _kept_classes(model: OnnxModel, settings: DetectorSettings, count: int | None) -> tuple[int, ...] | None:
    if count is not None and count < 1:
        raise DataError(
            f"{model.path} has one class only, and softmax takes the last class for no object",
            mend="detector.activation",
        )
    if settings.classes is None:
        return None
    names = model.facts.names
    numbers = {name: number for number, name in names.items()}
    classes = set()
    for text in settings.classes:
        number = numbers.get(text, int(text) if text.isdecimal() and len(text) < 6 else -1)
        if number < 0 or (count is not None and number >= count):
            listed = ", ".join(f"{key} {name}" for key, name in list(names.items())[:20])
            raise DataError(
                f"{model.path} has no class {text!r}; its classes are {listed or f'0 to {(count or 1) - 1}'}",
                mend="detector.classes",
            )
        classes.add(number)
    return tuple(sorted(classes))
