"""Which form a model has, and what is known of it, for what the exporters write."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser

from polypcount.detection import DetectorSettings, load_detector
from polypcount.errors import FileError
from tests.detection.onnx_detectors import ULTRALYTICS, cells, constant, save

SMALL: Any = {"images": (1, (1, 3, 96, 160))}
CELLS = cells(160, 96)
TWO = {**ULTRALYTICS, "names": "{0: 'adenoma', 1: 'other'}"}
LARGE = CELLS + 2 * 3  # and one more scale, with strides of 64


@pytest.mark.parametrize(
    ("shape", "metadata", "form"),
    [
        ((5, CELLS), ULTRALYTICS, "yolo-classes"),
        ((6, CELLS), TWO, "yolo-classes"),
        ((6, 77), TWO, "yolo-classes"),
        ((5, CELLS), {}, "yolo-classes"),
        ((84, LARGE), {}, "yolo-classes"),
        ((3 * CELLS, 6), {"names": "['polyp']", "stride": "32"}, "yolo-objectness"),
        ((3 * CELLS, 6), {}, "yolo-objectness"),
        ((3 * CELLS, 85), {}, "yolo-objectness"),
        ((3 * LARGE, 7), {"names": "{0: 'a', 1: 'b'}"}, "yolo-objectness"),
        ((300, 6), ULTRALYTICS, "yolo-final"),
        ((300, 6), TWO, "yolo-final"),
        ((300, 6), {**TWO, "end2end": "True"}, "yolo-final"),
        ((300, 6), {**TWO, "args": "{'batch': 1, 'nms': True}"}, "yolo-final"),
        ((300, 6), {}, "yolo-final"),
        ((300, 6), {**TWO, "description": "Ultralytics rtdetr-l model trained on x"}, "detr-classes"),
        ((300, 5), {**ULTRALYTICS, "description": "Ultralytics RT-DETR model"}, "detr-classes"),
    ],
)
def test_one_output(shape: tuple[int, int], metadata: dict[str, str], form: str, tmp_path: Path) -> None:
    path = constant(tmp_path / "a.onnx", {"o": np.zeros((1, *shape), np.float32)}, metadata=metadata, inputs=SMALL)
    assert load_detector(path).reading.form == form


def test_older_yolov5_gives_its_heads_as_well(tmp_path: Path) -> None:
    outputs = {"output": np.zeros((1, 3 * CELLS, 6), np.float32), "345": np.zeros((1, 3, 20, 12, 6), np.float32)}
    detector = load_detector(constant(tmp_path / "a.onnx", outputs, inputs=SMALL))
    assert detector.reading.form == "yolo-objectness"
    assert detector.reading.outputs == ("output",)


def test_rfdetr_by_its_names(tmp_path: Path) -> None:
    """Three classes and background are four numbers, as a box has; masks are passed over."""
    boxes, logits = np.full((1, 9, 4), 0.5, np.float32), np.full((1, 9, 4), -9, np.float32)
    logits[0, 0, 2] = 3
    outputs = {"labels": logits, "dets": boxes, "masks": np.zeros((1, 9, 8, 8), np.float32)}
    said = {
        "task": "segment",
        "means": [0.5, 0.4, 0.3],
        "stds": [0.2, 0.2, 0.2],
        "class_names": ["a", "b", "c"],
        "class_id_to_name": {"0": "a", "1": "b", "2": "c"},
    }
    plain = load_detector(constant(tmp_path / "a.onnx", outputs, inputs=SMALL))
    assert plain.reading.activation == "sigmoid"
    assert plain.images.mean == (0.485, 0.456, 0.406)
    path = constant(tmp_path / "b.onnx", outputs, inputs=SMALL, metadata={"rfdetr_inference": json.dumps(said)})
    detector = load_detector(path, DetectorSettings(classes=("c",)))
    assert detector.names == {0: "a", 1: "b", 2: "c"}
    assert (detector.images.mean, detector.images.std) == ((0.5, 0.4, 0.3), (0.2, 0.2, 0.2))
    xyxy, score = detector.detect(np.zeros((100, 200, 3), np.uint8))
    assert xyxy.tolist() == [[50, 25, 150, 75]]
    assert score[0] == pytest.approx(1 / (1 + np.exp(-3)))
    assert len(load_detector(path, DetectorSettings(classes=("a",))).detect(np.zeros((9, 9, 3), np.uint8))[0]) == 0


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "5", '{"means": [1], "class_names": 5}', '{"stds": [0, 0, 0]}', "[" * 9999]
)
def test_rfdetr_that_says_nothing(text: str, tmp_path: Path) -> None:
    outputs = {"labels": np.zeros((1, 9, 2), np.float32), "dets": np.zeros((1, 9, 4), np.float32)}
    path = constant(tmp_path / "a.onnx", outputs, metadata={"rfdetr_inference": text})
    assert load_detector(path).images.mean == (0.485, 0.456, 0.406)
    assert load_detector(path).names == {}


@pytest.mark.parametrize("text", ["", "[]", "5", '{"model_type": 5}', '{"model_type": "resnet"}', "\x00", "{" * 9999])
def test_files_beside_that_say_nothing(text: str, tmp_path: Path) -> None:
    outputs = {"logits": np.zeros((1, 9, 2), np.float32), "pred_boxes": np.zeros((1, 9, 4), np.float32)}
    for name in ("config.json", "preprocessor_config.json"):
        (tmp_path / name).write_text(text)
    path = constant(tmp_path / "a.onnx", outputs)
    settings = DetectorSettings(activation="sigmoid", normalise="imagenet")
    assert load_detector(path, settings).reading.form == "detr-logits"


def test_outputs_that_are_no_arrays(tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["" : 17]> g (float[1, 3, 64, 64] images) => (seq(float[1, 3, 1, 64]) o) {
      o = SplitToSequence<axis = 2>(images)
    }"""
    path = save(tmp_path / "a.onnx", parser.parse_model(text), {})
    with pytest.raises(FileError, match="expected arrays as outputs, found o seq"):
        load_detector(path)
