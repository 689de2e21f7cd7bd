"""Small real ONNX detectors: they find the bright rectangle of an image, by ONNX operators, and say so in each form."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper, parser

SCORE = 0.9  # of what is found; 0 where nothing is bright
LOGIT = float(np.log(SCORE / (1 - SCORE)))
FORMS = ("yolo-classes", "yolo-objectness", "yolo-final", "detr-logits", "detr-classes", "detr-final")
# What exporters write into the file, for one class.
ULTRALYTICS = {"names": "{0: 'polyp'}", "task": "detect", "stride": "32", "description": "Ultralytics YOLO11n model"}
METADATA: dict[str, dict[str, str]] = {
    "yolo-classes": ULTRALYTICS,
    "yolo-objectness": {"names": "{0: 'polyp'}", "stride": "32"},
    "yolo-final": {**ULTRALYTICS, "end2end": "True"},
    "detr-classes": {**ULTRALYTICS, "description": "Ultralytics rtdetr-l model"},
    "detr-logits": {},
    "detr-final": {},
}
# Makes `corners` (x1, y1, x2, y2) and `middle` (centre, width, height), [1, 1, 4], in pixels of the input; the same as
# shares of it; and `found`, 0 or 1, and `score`, [1, 1, 1].
_FIND = """
  grey = ReduceMean<axes = [1], keepdims = 0>(picture)
  level = Constant<value_float = {level}>()
  above = Greater(grey, level)
  bright = Cast<to = 1>(above)
  found = ReduceMax<axes = [1, 2], keepdims = 1>(bright)
  columns = ReduceMax<axes = [1], keepdims = 1>(bright)
  rows = ReduceMax<axes = [2], keepdims = 1>(bright)
  one = Constant<value_float = 1.0>()
  left = ArgMax<axis = 2>(columns)
  top = ArgMax<axis = 1>(rows)
  right = ArgMax<axis = 2, select_last_index = 1>(columns)
  bottom = ArgMax<axis = 1, select_last_index = 1>(rows)
  x1 = Cast<to = 1>(left)
  y1 = Cast<to = 1>(top)
  lastx = Cast<to = 1>(right)
  lasty = Cast<to = 1>(bottom)
  x2 = Add(lastx, one)
  y2 = Add(lasty, one)
  corners = Concat<axis = 2>(x1, y1, x2, y2)
  centre = Constant<value = float[4, 4] {{0.5, 0, -1, 0,  0, 0.5, 0, -1,  0.5, 0, 1, 0,  0, 0.5, 0, 1}}>()
  middle = MatMul(corners, centre)
  shape = Shape<start = 2>(picture)
  sides = Cast<to = 1>(shape)
  reversed = Constant<value = int64[4] {{1, 0, 1, 0}}>()
  all_sides = Gather(sides, reversed)
  unit_corners = Div(corners, all_sides)
  unit_middle = Div(middle, all_sides)
  sure = Constant<value_float = {score}>()
  score = Mul(found, sure)
  zero = Constant<value_float = 0.0>()
"""
_PAD = "  rows_beside = Constant<value = int64[6] {{0, 0, 0, 0, {rows}, 0}}>()\n"
_HEADS = {
    "yolo-classes": """
  column = Concat<axis = 2>(middle, score)
  turned = Transpose<perm = [0, 2, 1]>(column)
  columns_beside = Constant<value = int64[6] {{0, 0, 0, 0, 0, {rows}}}>()
  output0 = Pad(turned, columns_beside)
""",
    "yolo-objectness": """
  certain = Sqrt(score)
  row = Concat<axis = 2>(middle, certain, certain)
  output0 = Pad(row, rows_beside)
""",
    "yolo-final": """
  none = Mul(found, zero)
  row = Concat<axis = 2>(corners, score, none)
  output0 = Pad(row, rows_beside)
""",
    "detr-classes": """
  row = Concat<axis = 2>(unit_middle, score)
  output0 = Pad(row, rows_beside)
""",
    "detr-logits": """
  dets = Pad(unit_middle, rows_beside)
  rise = Constant<value_float = {rise}>()
  low = Constant<value_float = -9.0>()
  raised = Mul(found, rise)
  logit = Add(raised, low)
  logits = Pad(logit, rows_beside, low)
  other = Mul(logits, zero)
  lower = Add(other, low)
  labels = Concat<axis = 2>(logits, lower)
""",
    "detr-final": """
  frame = Cast<to = 1>(orig_target_sizes)
  twice = Concat<axis = 1>(frame, frame)
  scaled = Mul(unit_corners, twice)
  boxes = Pad(scaled, rows_beside)
  padded_score = Pad(score, rows_beside)
  last = Constant<value = int64[1] {{2}}>()
  scores = Squeeze(padded_score, last)
  nothing = Mul(scores, zero)
  labels = Cast<to = 7>(nothing)
""",
}


def cells(width: int, height: int) -> int:
    """Boxes that a YOLO without anchors gives for an input of this size."""
    return sum((width // stride) * (height // stride) for stride in (8, 16, 32))


def finder(
    path: Path,
    form: str,
    size: tuple[int, int] = (128, 128),
    *,
    metadata: Mapping[str, str] | None = None,
    dynamic: bool = False,
    half: bool = False,
    level: float | None = None,
    rows: int | None = None,
) -> Path:
    """Write a detector of this form for inputs of size (width, height).

    metadata: what is written into the file; what exporters of the form write, where not given.
    dynamic: whether its file leaves the size open. half: whether it takes and gives 16 bits.
    level: what is bright, in what the model is given; half way from black to white where not given.
    rows: how many boxes it gives.
    """
    many = {"yolo-classes": cells(*size), "yolo-objectness": 3 * cells(*size)}
    total = rows or many.get(form, 20)
    if level is None:
        level = 0.2 if form == "detr-logits" else 0.5  # given 0 to 1, or with mean 0
    kind = "float16" if half else "float"
    axes = "n, 3, h, w" if dynamic else f"1, 3, {size[1]}, {size[0]}"
    inputs = f"{kind}[{axes}] images"
    outputs, cast = f"{kind}[1, a, b] output0", ["output0"]
    if form == "detr-logits":
        outputs, cast = f"{kind}[1, a, 4] dets, {kind}[1, a, b] labels", ["dets", "labels"]
    if form == "detr-final":
        inputs += ", int64[n, 2] orig_target_sizes" if dynamic else ", int64[1, 2] orig_target_sizes"
        outputs, cast = f"int64[1, a] labels, {kind}[1, a, 4] boxes, {kind}[1, a] scores", ["boxes", "scores"]
    values = {"level": level, "score": SCORE, "rise": LOGIT + 9, "rows": total - 1}
    body = "  picture = Cast<to = 1>(images)\n" + (_FIND + _PAD + _HEADS[form]).format(**values)
    for name in cast:
        body = body.replace(f"  {name} = ", f"  {name}_32 = ")
        body = body.replace(f"({name})", f"({name}_32)").replace(f"({name}, ", f"({name}_32, ")
        body += f"  {name} = Cast<to = {10 if half else 1}>({name}_32)\n"
    text = f'<ir_version: 9, opset_import: ["" : 17]> finder ({inputs}) => ({outputs}) {{{body}}}'
    return save(path, parser.parse_model(text), METADATA[form] if metadata is None else metadata)


def constant(
    path: Path,
    outputs: Mapping[str, NDArray[Any]],
    *,
    metadata: Mapping[str, str] | None = None,
    inputs: Mapping[str, tuple[int, Sequence[int | str]]] | None = None,
) -> Path:
    """Write a model that gives these outputs, whatever it is given. inputs: type and shape of each."""
    given = inputs or {"images": (TensorProto.FLOAT, (1, 3, 64, 64))}
    nodes = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.ascontiguousarray(value), name))
        for name, value in outputs.items()
    ]
    graph = helper.make_graph(
        nodes,
        "constant",
        [helper.make_tensor_value_info(name, kind, list(shape)) for name, (kind, shape) in given.items()],
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), list(value.shape))
            for name, value in outputs.items()
        ],
    )
    return save(path, helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), metadata)


def save(path: Path, model: onnx.ModelProto, metadata: Mapping[str, str] | None) -> Path:
    """Write a model with these properties."""
    helper.set_model_props(model, dict(metadata or {}))
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
    return path


def with_square(width: int, height: int, box: tuple[int, int, int, int], colour: int = 255) -> NDArray[np.uint8]:
    """A black frame with a bright rectangle x1, y1, x2, y2."""
    frame = np.zeros((height, width, 3), np.uint8)
    frame[box[1] : box[3], box[0] : box[2]] = colour
    return frame
