"""Which of the known forms the outputs of a detector have, told by their names, shapes and what the file says.

yolo-classes      one output [1, 4 + classes, n]           YOLOv8, v9, 11, 12
yolo-objectness   one output [1, n, 5 + classes]           YOLOv5, v7
yolo-final        one output [1, n, 6]                     YOLOv10, 26, exports with nms=True
detr-logits       boxes [1, n, 4], logits [1, n, classes]  RF-DETR, exports of Hugging Face
detr-classes      one output [1, n, 4 + classes]           RT-DETR of ultralytics
detr-final        labels, boxes, scores                    RT-DETR, D-FINE, DEIM
"""

from collections.abc import Mapping

from polypcount.counting.detector_facts import ModelFacts
from polypcount.counting.detector_settings import Family, Form
from polypcount.errors import DataError, FileError

Shapes = Mapping[str, tuple[int, ...]]
_FINAL = ("labels", "boxes", "scores")
_BOXES, _LOGITS = ("dets", "pred_boxes", "boxes"), ("labels", "pred_logits", "logits")
_STRIDES = ((8, 16, 32), (8, 16, 32, 64), (4, 8, 16, 32))
_SINGLE: tuple[Form, ...] = ("yolo-classes", "yolo-objectness", "yolo-final", "detr-classes")


def recognise(
    source: object, shapes: Shapes, facts: ModelFacts, family: Family, size: tuple[int, int]
) -> tuple[Form, tuple[str, ...]]:
    """The form, and the names of the outputs that it is read from, in the order in which `read` takes them.

    shapes: of the outputs that the model gave for an input of this size (width, height).
    """
    if facts.task not in (None, "detect"):
        raise FileError(
            f"{source} was exported for the task {facts.task!r}, and a detector has the task 'detect';"
            " export a detection model"
        )
    form, names = _by_names(shapes)
    if form is None:
        form, names = _by_shapes(source, shapes, facts, family, size)
    if family != "auto" and family not in (form, form.partition("-")[0]):
        raise DataError(f"{source} gives outputs of the form {form}, {_shown(shapes)}, and family says {family}")
    return form, names


def _by_names(shapes: Shapes) -> tuple[Form | None, tuple[str, ...]]:
    if all(name in shapes for name in _FINAL) and _is_final(shapes):
        return "detr-final", _FINAL
    boxes = [name for name in _BOXES if name in shapes]
    logits = [name for name in _LOGITS if name in shapes]
    if boxes and logits and _is_pair(shapes[boxes[0]], shapes[logits[0]]):
        return "detr-logits", (boxes[0], logits[0])
    return None, ()


def _is_final(shapes: Shapes) -> bool:
    labels, boxes, scores = (shapes[name] for name in _FINAL)
    return len(labels) == 2 and labels == scores and boxes == (*labels, 4)


def _is_pair(boxes: tuple[int, ...], logits: tuple[int, ...]) -> bool:
    return len(boxes) == len(logits) == 3 and boxes[2] == 4 and boxes[:2] == logits[:2] and logits[2] >= 1


def _by_shapes(
    source: object, shapes: Shapes, facts: ModelFacts, family: Family, size: tuple[int, int]
) -> tuple[Form, tuple[str, ...]]:
    if family in ("detr", "detr-logits") and len(shapes) == 2:
        pairs = [(a, b) for a in shapes for b in shapes if a != b and _is_pair(shapes[a], shapes[b])]
        if len(pairs) == 1:
            return "detr-logits", pairs[0]
    # Older exports of YOLOv5 give what the output was made of as well, as arrays of five axes.
    single = {name: shape for name, shape in shapes.items() if len(shape) != 5}
    if len(single) != 1 or len(shape := next(iter(single.values()))) != 3 or shape[0] != 1:
        raise FileError(
            f"{source} is not a detector of a known form: expected one output of three axes, or boxes and logits, or"
            f" labels, boxes and scores, found {_shown(shapes)}; docs/detectors.md has the exports that can be read"
        )
    form = family if family in _SINGLE else _single(shape[1], shape[2], facts, size)
    if form is None or not _fits(form, shape[1], shape[2]):
        raise DataError(
            f"{source}: it is not clear how its output {_shown(single)} is to be read; family can say it: yolo-classes"
            " for [1, 4 + classes, n], yolo-objectness for [1, n, 5 + classes], yolo-final for [1, n, 6], detr-classes"
            " for [1, n, 4 + classes]"
        )
    return form, tuple(single)


def _fits(form: Form, rows: int, columns: int) -> bool:
    if form == "yolo-final":
        return columns == 6
    return {"yolo-classes": rows > 4, "yolo-objectness": columns > 5, "detr-classes": columns > 4}[form]


def _single(rows: int, columns: int, facts: ModelFacts, size: tuple[int, int]) -> Form | None:
    """The form of one output [1, rows, columns]; None where it may be several."""
    classes = len(facts.names)
    cells = {sum(-(-size[0] // s) * -(-size[1] // s) for s in strides) for strides in _STRIDES}
    anchors = {3 * count for count in cells}
    if facts.rtdetr:
        return "detr-classes" if columns == 4 + classes else None
    if columns == 6 and facts.drops_overlaps:
        return "yolo-final"
    if classes and rows == 4 + classes:
        return "yolo-classes"
    if facts.task is not None:  # the exporter of ultralytics, which has no other form than these
        return "yolo-final" if columns == 6 else None
    if columns > 5 and rows in anchors and classes in (0, columns - 5):
        return "yolo-objectness"
    # Not one row for each cell: that is how YOLOX has it, whose boxes are not in pixels.
    if columns == 6 and rows < min(cells):
        return "yolo-final"
    if rows > 4 and columns in cells and not classes:
        return "yolo-classes"
    return None


def _shown(shapes: Shapes) -> str:
    return ", ".join(f"{name} {list(shape)}" for name, shape in list(shapes.items())[:6]) or "none"
