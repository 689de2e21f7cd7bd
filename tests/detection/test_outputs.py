"""Boxes, scores and classes as a plain reading of each form's definition gives them."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from polypcount.detection import DetectorSettings, load_detector
from polypcount.detection.outputs import without_overlaps
from polypcount.errors import DataError
from tests.detection.onnx_detectors import ULTRALYTICS, cells, constant

Box = tuple[float, float, float, float]
WIDTH, HEIGHT = 200, 120  # of the frame; the input of every model here is 64 x 64
FRAME = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
NAMES = {"names": "{0: 'adenoma', 1: 'serrated', 2: 'other'}"}


def iou(a: Box, b: Box) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


def suppressed(boxes: Sequence[Box], most: float, kinds: Sequence[int] | None = None) -> list[int]:
    """Rows that stay, by two loops; boxes are best first."""
    stay: list[int] = []
    for row, box in enumerate(boxes):
        for other in stay:
            if iou(boxes[other], box) > most and (kinds is None or kinds[row] != kinds[other]):
                break
        else:
            stay.append(row)
    return stay


def corners(numbers: Sequence[float]) -> Box:
    x, y, w, h = numbers
    return x - w / 2, y - h / 2, x + w / 2, y + h / 2


def in_frame(box: Box, *, letterbox: bool) -> Box:
    """From pixels of the input of 64 x 64 to the frame: shown as 64 x 38 with 13 grey rows above, or stretched."""
    across, down = WIDTH / 64, HEIGHT / (38 if letterbox else 64)
    top = 13 if letterbox else 0
    x1, y1, x2, y2 = box[0] * across, (box[1] - top) * down, box[2] * across, (box[3] - top) * down
    return (
        min(max(x1, 0), WIDTH),
        min(max(y1, 0), HEIGHT),
        min(max(x2, 0), WIDTH),
        min(max(y2, 0), HEIGHT),
    )


def expected(
    rows: Sequence[tuple[Box, float, int]], settings: DetectorSettings, *, drops_overlaps: bool
) -> tuple[NDArray[Any], list[float]]:
    """rows: box in the frame, score, class."""
    kept = [row for row in rows if row[1] >= settings.confidence]
    kept = [row for row in kept if row[0][2] > row[0][0] and row[0][3] > row[0][1]]
    kept.sort(key=lambda row: -row[1])
    kinds = [row[2] for row in kept] if drops_overlaps else None
    stay = suppressed([row[0] for row in kept], settings.iou, kinds)
    return np.array([kept[row][0] for row in stay]).reshape(-1, 4), [kept[row][1] for row in stay]


def check(path: Path, settings: DetectorSettings, rows: list[tuple[Box, float, int]], *, drops_overlaps: bool) -> int:
    xyxy, score = load_detector(path, settings).detect(FRAME)
    boxes, scores = expected(rows, settings, drops_overlaps=drops_overlaps)
    assert xyxy.shape == boxes.shape
    assert xyxy == pytest.approx(boxes, abs=1e-3)
    assert score == pytest.approx(scores, abs=1e-5)
    assert (np.diff(score) <= 0).all()
    return len(scores)


def random_boxes(rng: np.random.Generator, n: int, side: float) -> NDArray[np.float32]:
    """Centre and size, some over the edge, several at about the same place."""
    places = rng.uniform(0, side, (6, 2))[rng.integers(0, 6, n)] + rng.normal(0, side / 25, (n, 2))
    return np.hstack([places, rng.uniform(side / 10, side / 3, (n, 2))]).astype(np.float32)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kept", [None, ("adenoma", "2"), ("1",)])
def test_one_output_with_classes(seed: int, kept: tuple[str, ...] | None, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    boxes, scores = random_boxes(rng, 84, 64), rng.uniform(0, 1, (84, 3)).astype(np.float32) ** 2
    settings = DetectorSettings(confidence=0.3, iou=0.4, classes=kept)
    numbers = [0, 1, 2] if kept is None else [0, 2] if "2" in kept else [1]
    rows, shares = [], []
    for box, each in zip(boxes, scores, strict=True):
        best = max(numbers, key=lambda number: each[number])
        rows.append((in_frame(corners(box.tolist()), letterbox=True), float(each[best]), best))
        shares.append((in_frame(corners(box.tolist()), letterbox=False), float(each[best]), best))
    path = constant(tmp_path / "a.onnx", {"o": np.hstack([boxes, scores]).T[None]}, metadata=NAMES)
    assert check(path, settings, rows, drops_overlaps=False) > 3
    described = {**ULTRALYTICS, **NAMES, "description": "Ultralytics rtdetr-x model"}
    path = constant(tmp_path / "b.onnx", {"o": np.hstack([boxes / 64, scores])[None]}, metadata=described)
    assert check(path, settings, shares, drops_overlaps=True) > 3


@pytest.mark.parametrize("seed", range(2))
def test_one_output_with_objectness(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    n = 3 * cells(64, 64)
    boxes, sure = random_boxes(rng, n, 64), rng.uniform(0, 1, n).astype(np.float32)
    scores = rng.uniform(0, 1, (n, 2)).astype(np.float32)
    path = constant(tmp_path / "a.onnx", {"o": np.hstack([boxes, sure[:, None], scores])[None]})
    rows = [
        (in_frame(corners(box.tolist()), letterbox=True), float(a) * float(max(each)), int(each.argmax()))
        for box, a, each in zip(boxes, sure, scores, strict=True)
    ]
    assert check(path, DetectorSettings(confidence=0.2), rows, drops_overlaps=False) > 3


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kept", [None, ("0", "1")])
def test_final_outputs(seed: int, kept: tuple[str, ...] | None, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    boxes, kinds = random_boxes(rng, 50, 64), rng.integers(0, 3, 50)
    scores = np.sort(rng.uniform(0, 1, 50).astype(np.float32))[::-1]
    xyxy = np.array([corners(box.tolist()) for box in boxes], np.float32)
    settings = DetectorSettings(classes=kept)
    pairs = [
        (box, float(score), int(kind))
        for box, score, kind in zip(xyxy.tolist(), scores, kinds, strict=True)
        if kept is None or str(kind) in kept
    ]
    path = constant(tmp_path / "a.onnx", {"o": np.column_stack([xyxy, scores, kinds]).astype(np.float32)[None]})
    rows = [(in_frame(box, letterbox=True), score, kind) for box, score, kind in pairs]
    assert check(path, settings, rows, drops_overlaps=True) > 3
    outputs: dict[str, NDArray[Any]] = {"labels": kinds[None], "boxes": xyxy[None] / 64, "scores": scores[None]}
    path = constant(tmp_path / "b.onnx", outputs)
    with pytest.raises(DataError, match="orig_target_sizes"):
        load_detector(path)
    rows = [(in_frame(box, letterbox=False), score, kind) for box, score, kind in pairs]
    unit = DetectorSettings(classes=kept, scale="unit")
    assert check(path, unit, rows, drops_overlaps=True) > 3


@pytest.mark.parametrize("activation", ["sigmoid", "softmax", "none"])
@pytest.mark.parametrize("names", [("dets", "labels"), ("pred_boxes", "logits"), ("a", "b")])
def test_boxes_and_logits(activation: Any, names: tuple[str, str], tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    boxes, logits = random_boxes(rng, 40, 1), rng.normal(0, 2, (40, 3)).astype(np.float32)
    if activation == "none":
        logits = rng.uniform(0, 1, (40, 3)).astype(np.float32)
    rows = []
    for box, each in zip(boxes, logits.tolist(), strict=True):
        if activation == "softmax":
            scores = [math.exp(value) / sum(map(math.exp, each)) for value in each[:2]]
        else:
            scores = [value if activation == "none" else 1 / (1 + math.exp(-value)) for value in each]
        kind = scores.index(max(scores))
        rows.append((in_frame(corners((box * 64).tolist()), letterbox=False), scores[kind], kind))
    path = constant(tmp_path / "a.onnx", {names[1]: logits[None], names[0]: boxes[None]})
    settings = DetectorSettings(activation=activation, normalise="unit", family="detr")
    assert check(path, settings, rows, drops_overlaps=True) > 3


def test_corners_and_pixels_by_setting(tmp_path: Path) -> None:
    xyxy, logits = np.array([[[8, 16, 32, 48]]], np.float32), np.array([[[3.0]]], np.float32)
    path = constant(tmp_path / "a.onnx", {"dets": xyxy, "labels": logits})
    found, _ = load_detector(path, DetectorSettings(boxes="xyxy", scale="pixels")).detect(FRAME)
    assert found.tolist() == [[25, 30, 100, 90]]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("classes", [1, 3])
def test_overlaps_are_dropped_as_two_loops_do(seed: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = random_boxes(rng, 80, 100)
    boxes = np.array([corners(box.tolist()) for box in numbers])
    kinds = rng.integers(0, classes, 80)
    plain = [tuple(box) for box in boxes.tolist()]
    for most in (0.0, 0.3, 0.7, 1.0):
        assert without_overlaps(boxes, most).tolist() == suppressed(plain, most)
        assert without_overlaps(boxes, most, kinds).tolist() == suppressed(plain, most, kinds.tolist())


def test_none_one_two_and_equal_boxes() -> None:
    box = np.array([[0.0, 0, 10, 10]])
    assert without_overlaps(np.empty((0, 4)), 0.5).tolist() == []
    assert without_overlaps(box, 0.5).tolist() == [0]
    assert without_overlaps(np.vstack([box, box + 100]), 0.5).tolist() == [0, 1]
    assert without_overlaps(np.repeat(box, 5, axis=0), 0.5).tolist() == [0]
    assert without_overlaps(np.repeat(box, 5, axis=0), 1.0).tolist() == [0, 1, 2, 3, 4]
    assert without_overlaps(np.repeat(box, 3, axis=0), 0.5, np.array([0, 0, 1])).tolist() == [0, 1]
    half = np.array([[0.0, 0, 10, 10], [0, 0, 10, 5]])  # overlap exactly one half
    assert without_overlaps(half, 0.5).tolist() == [0, 1]
    assert without_overlaps(half, 0.49).tolist() == [0]


def test_a_model_that_sees_something_everywhere(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    boxes = np.hstack([rng.uniform(0, 640, (8400, 2)), np.full((8400, 2), 0.5)])
    output = np.hstack([boxes, np.linspace(0.5, 1, 8400)[:, None]]).astype(np.float32).T[None]
    inputs: Any = {"images": (1, (1, 3, 640, 640))}
    path = constant(tmp_path / "a.onnx", {"o": output}, inputs=inputs)
    _, score = load_detector(path).detect(np.zeros((640, 640, 3), np.uint8))
    assert 900 < len(score) <= 1000  # the best; nothing else is looked at
    assert score[-1] > 0.93


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none(value: float, tmp_path: Path) -> None:
    good = np.array([[[8, 20, 16, 40, 0.5, 0], [30, 30, 40, 40, 0.05, 0]]], np.float32)
    for column, message in ((4, "scores that are not finite"), (2, "boxes that are not finite")):
        bad = good.copy()
        bad[0, 0, column] = value
        with pytest.raises(DataError, match=message):
            load_detector(constant(tmp_path / "a.onnx", {"o": bad}))
    harmless = good.copy()
    harmless[0, 1, 2] = value  # of a box that is not kept
    assert load_detector(constant(tmp_path / "a.onnx", {"o": harmless})).detect(FRAME)[0].shape == (1, 4)


def test_scores_that_are_no_scores(tmp_path: Path) -> None:
    rows = np.array([[[8, 8, 4, 4, 7.25, 0]]], np.float32)
    with pytest.raises(DataError, match=r"7\.25.*yolo-final"):
        load_detector(constant(tmp_path / "a.onnx", {"o": rows}))
