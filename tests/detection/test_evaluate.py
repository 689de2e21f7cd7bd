"""Figures of detected boxes: small cases by hand, and larger ones by nested loops and by pycocotools."""

import contextlib
import io
import json
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from polypcount.detection import DetectionScores, evaluate_detections
from polypcount.detection.evaluate import FALSE_ALARM_RATES, SIZES
from polypcount.errors import DataError

BOX = [10.0, 10.0, 50.0, 50.0]
OTHER = [60.0, 60.0, 90.0, 90.0]


def judged(
    detected: list[tuple[int, list[float], float]],
    true: list[tuple[int, list[float]]],
    images: int = 1,
    **settings: Any,
) -> DetectionScores:
    """Figures for images of 100 x 100 pixels."""
    image, xyxy, score = zip(*detected, strict=True) if detected else ((), (), ())
    true_image, true_xyxy = zip(*true, strict=True) if true else ((), ())
    size = np.full((images, 2), 100)
    return evaluate_detections(image, xyxy, score, true_image, true_xyxy, image_size=size, repetitions=20, **settings)


def values(scores: DetectionScores) -> list[float]:
    return [figure.value for figure in (scores.precision, scores.recall, scores.false_alarms, scores.ap50)]


def test_a_perfect_detector() -> None:
    scores = judged([(0, BOX, 0.9), (1, BOX, 0.8), (1, OTHER, 0.7)], [(0, BOX), (1, OTHER), (1, BOX)], 2)
    assert values(scores) == [1, 1, 0, 1]
    assert [estimate.value for estimate in scores.recall_at.values()] == [1] * 5
    assert (scores.recall.low, scores.recall.high) == (1, 1)


def test_no_truth() -> None:
    scores = judged([(0, BOX, 0.9), (2, BOX, 0.2)], [], 4)
    assert values(scores) == pytest.approx([0, math.nan, 0.25, math.nan], nan_ok=True)
    assert all(math.isnan(estimate.value) for estimate in scores.recall_at.values())


def test_no_detections() -> None:
    scores = judged([], [(0, BOX)], 2)
    assert values(scores) == pytest.approx([math.nan, 0, 0, 0], nan_ok=True)
    assert [estimate.value for estimate in scores.recall_at.values()] == [0] * 5
    assert values(judged([], [])) == pytest.approx([math.nan, math.nan, 0, math.nan], nan_ok=True)


def test_images_without_polyp_count_for_false_alarms_only() -> None:
    detected = [(0, BOX, 0.9), (1, BOX, 0.6)]
    assert values(judged(detected, [(0, BOX)], 2)) == [0.5, 1, 0.5, 1]
    assert values(judged(detected, [(0, BOX)], 10)) == [0.5, 1, 0.1, 1]


def test_two_boxes_on_one_polyp_are_one_false_alarm() -> None:
    near = [11.0, 10.0, 50.0, 50.0]
    scores = judged([(0, near, 0.9), (0, BOX, 0.8)], [(0, BOX)])
    assert values(scores) == [0.5, 1, 1, 1]
    # The better one of two true boxes is taken, and the second box has the other.
    scores = judged([(0, BOX, 0.9), (0, near, 0.8)], [(0, near), (0, BOX)])
    assert values(scores) == [1, 1, 0, 1]


def test_overlap_of_exactly_half_is_enough() -> None:
    assert values(judged([(0, [0, 0, 10, 10], 0.9)], [(0, [0, 0, 10, 20])]))[:2] == [1, 1]
    assert values(judged([(0, [0, 0, 10, 9.9], 0.9)], [(0, [0, 0, 10, 20])]))[:2] == [0, 0]


def test_equal_scores_are_one_point_of_the_curve() -> None:
    """No threshold separates them, so their order does not matter."""
    boxes = [(0, OTHER, 0.7), (0, BOX, 0.7)]
    for detected in (boxes, boxes[::-1]):
        scores = judged(detected, [(0, BOX)])
        assert (scores.curve.threshold.tolist(), scores.curve.precision.tolist()) == ([0.7], [0.5])
        assert scores.ap50.value == 0.5


def test_the_threshold_is_included() -> None:
    detected = [(0, BOX, 0.5), (0, OTHER, 0.4)]
    assert judged(detected, [(0, BOX)]).false_alarms.value == 0
    assert judged(detected, [(0, BOX)], threshold=0.4).false_alarms.value == 1
    assert judged(detected, [(0, BOX)], threshold=0.51).recall.value == 0


def test_recall_at_false_alarms_and_the_curve_by_hand() -> None:
    # 10 images, one polyp in each of the first four; true, false, true, false, false, true by falling score.
    detected = [(0, BOX, 0.9), (5, BOX, 0.8), (1, BOX, 0.7), (6, BOX, 0.6), (7, BOX, 0.5), (2, BOX, 0.4)]
    scores = judged(detected, [(k, BOX) for k in range(4)], 10, threshold=0.65)
    assert scores.curve.recall.tolist() == [0.25, 0.25, 0.5, 0.5, 0.5, 0.75]
    assert scores.curve.precision == pytest.approx([1, 1 / 2, 2 / 3, 2 / 4, 2 / 5, 3 / 6])
    assert scores.curve.false_alarms == pytest.approx([0, 0.1, 0.1, 0.2, 0.3, 0.3])
    at = {rate: estimate.value for rate, estimate in scores.recall_at.items()}
    assert at == {0.05: 0.25, 0.1: 0.5, 0.2: 0.5, 0.5: 0.75, 1.0: 0.75}
    assert scores.ap50.value == pytest.approx(0.25 * 1 + 0.25 * 2 / 3 + 0.25 * 0.5)
    assert values(scores)[:3] == pytest.approx([2 / 3, 0.5, 0.1])


def test_figures_by_size() -> None:
    side = {name: 100 * (low + min(high, 0.6)) / 2 for name, (low, high) in SIZES.items()}
    true = [(k, [0, 0, side[name], side[name]]) for k, name in enumerate(SIZES)]
    detected = [(0, true[0][1], 0.9), (1, [99 - side["large"]] * 2 + [99.0, 99.0], 0.9), (2, true[2][1], 0.1)]
    scores = judged(detected, true, 3)
    assert {name: found.boxes for name, found in scores.by_size.items()} == dict.fromkeys(SIZES, 1)
    assert [scores.by_size[name].recall.value for name in SIZES] == [1, 0, 0]
    assert [scores.by_size[name].false_alarms.value for name in SIZES] == pytest.approx([0, 0, 1 / 3])


def some_boxes(seed: int, images: int = 40) -> tuple[NDArray[Any], ...]:
    """True boxes, and boxes near some of them and elsewhere; no two scores are equal."""
    rng = np.random.default_rng(seed)

    def boxes(count: int) -> NDArray[np.float64]:
        corner = rng.uniform(0, 60, (count, 2))
        return np.concatenate([corner, corner + rng.uniform(5, 40, (count, 2))], axis=1)

    true_image, true_xyxy = np.sort(rng.integers(0, images, 70)), boxes(70)
    near = rng.integers(0, 70, 60)
    image = np.concatenate([true_image[near], rng.integers(0, images, 60)])
    xyxy = np.concatenate([true_xyxy[near] + rng.normal(0, 3, (60, 4)), boxes(60)])
    xyxy[:, 2:] = np.maximum(xyxy[:, 2:], xyxy[:, :2] + 1)
    score = rng.permutation(120) / 120 + np.repeat([0.2, 0], 60)
    return image, xyxy, score + np.arange(120) * 1e-6, true_image, true_xyxy


def overlap(a: NDArray[Any], b: NDArray[Any]) -> float:
    width, height = (min(a[k + 2], b[k + 2]) - max(a[k], b[k]) for k in (0, 1))
    shared = max(0.0, width) * max(0.0, height)
    return float(shared / (sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)) - shared))


@pytest.mark.parametrize("seed", range(2))
def test_the_same_by_nested_loops(seed: int) -> None:
    image, xyxy, score, true_image, true_xyxy = some_boxes(seed)
    points: list[tuple[float, float, float]] = []  # recall, precision and false alarms per image of each threshold
    for threshold in sorted(score, reverse=True):
        taken: set[int] = set()
        true = false = 0
        for row in sorted(range(len(score)), key=lambda row: -score[row]):
            if score[row] < threshold:
                continue
            pairs = [(overlap(xyxy[row], true_xyxy[k]), k) for k in range(70) if true_image[k] == image[row]]
            best = max([pair for pair in pairs if pair[1] not in taken], default=(0.0, -1))
            if best[0] >= 0.5:
                taken.add(best[1])
                true += 1
            else:
                false += 1
        points.append((true / 70, true / (true + false), false / 40))
    area = sum(
        (points[i][0] - (points[i - 1][0] if i else 0)) * max(point[1] for point in points[i:])
        for i in range(len(points))
    )
    scores = evaluate_detections(
        image, xyxy, score, true_image, true_xyxy, image_size=np.full((40, 2), 100), threshold=0.6, repetitions=2
    )
    curve = scores.curve
    assert np.stack([curve.recall, curve.precision, curve.false_alarms], 1) == pytest.approx(np.array(points))
    assert scores.ap50.value == pytest.approx(area)
    at = [max([recall for recall, _, alarms in points if alarms <= rate], default=0.0) for rate in FALSE_ALARM_RATES]
    assert [estimate.value for estimate in scores.recall_at.values()] == pytest.approx(at)
    last = [point for point, threshold in zip(points, sorted(score, reverse=True), strict=True) if threshold >= 0.6][-1]
    assert values(scores)[:3] == pytest.approx([last[1], last[0], last[2]])


@pytest.mark.parametrize("seed", range(4))
def test_ap50_of_pycocotools(seed: int) -> None:
    image, xyxy, score, true_image, true_xyxy = some_boxes(seed)
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        wide = np.concatenate([true_xyxy[:, :2], true_xyxy[:, 2:] - true_xyxy[:, :2]], axis=1)
        truth.dataset = {
            "images": [{"id": k + 1} for k in range(40)],
            "categories": [{"id": 1}],
            "annotations": [
                {
                    "id": k + 1,
                    "image_id": int(i) + 1,
                    "category_id": 1,
                    "bbox": box,
                    "area": box[2] * box[3],
                    "iscrowd": 0,
                }
                for k, (i, box) in enumerate(zip(true_image, wide.tolist(), strict=True))
            ],
        }
        truth.createIndex()
        rows = np.column_stack([image + 1, xyxy[:, :2], xyxy[:, 2:] - xyxy[:, :2], score, np.ones(len(score))])
        judge = COCOeval(truth, truth.loadRes(rows), "bbox")
        judge.params.iouThrs = np.array([0.5])
        expected = []
        for points in (101, 20_001):  # theirs has 101 points of recall; more of them come close to all points
            judge.params.recThrs = np.linspace(0, 1, points)
            judge.evaluate()
            judge.accumulate()
            expected.append(float(judge.eval["precision"][0, :, 0, 0, -1].mean()))
    size = np.full((40, 2), 100)
    ours = evaluate_detections(image, xyxy, score, true_image, true_xyxy, image_size=size, repetitions=1).ap50.value
    assert ours == pytest.approx(expected[1], abs=1e-4)
    assert ours == pytest.approx(expected[0], abs=0.01)


def test_intervals_are_seeded_and_by_group() -> None:
    image, xyxy, score, true_image, true_xyxy = some_boxes(0)
    size = np.full((40, 2), 100)

    def spread(**settings: Any) -> tuple[float, float, float]:
        recall = evaluate_detections(
            image, xyxy, score, true_image, true_xyxy, image_size=size, repetitions=200, **settings
        ).recall
        assert recall.low <= recall.value <= recall.high
        return recall.low, recall.value, recall.high

    assert spread() == spread()
    assert spread() != spread(seed=1)
    low, value, high = spread()
    deviation = math.sqrt(value * (1 - value) / 70)  # of 70 polyps that are alone
    assert 2 * deviation < high - low < 6 * deviation
    # Images of one group stand or fall together: with two groups, the ends are what one of them alone gives.
    halves = spread(groups=np.arange(40) < 20)
    parts = []
    for first in (0, 20):
        here, there = ((k >= first) & (k < first + 20) for k in (image, true_image))
        found = evaluate_detections(
            image[here], xyxy[here], score[here], true_image[there], true_xyxy[there], image_size=size, repetitions=0
        )
        parts.append(found.recall.value)
    assert [halves[0], halves[2]] == pytest.approx(sorted(parts))
    assert math.isnan(judged([(0, BOX, 0.9)], [(0, BOX)]).recall.low), "one image says nothing about others"


def test_as_json() -> None:
    image, xyxy, score, true_image, true_xyxy = some_boxes(1)
    scores = evaluate_detections(
        image, xyxy, score, true_image, true_xyxy, image_size=np.full((40, 2), 100), repetitions=5
    )
    said = json.loads(json.dumps(scores.to_json(), allow_nan=False))
    assert said["recall_at"]["0.1"]["value"] == scores.recall_at[0.1].value
    assert said["curve"]["recall"] == scores.curve.recall.tolist()
    assert said["curve"]["threshold"][0] == score.max()
    assert said["by_size"]["large"]["below"] is None
    many = [(0, OTHER, k / 1000) for k in range(1000)]
    thinned = judged(many, []).to_json()["curve"]["threshold"]
    assert (len(thinned), thinned[0], thinned[-1]) == (200, 0.999, 0)
    empty = json.loads(json.dumps(judged([], []).to_json(), allow_nan=False))
    assert (empty["ap50"]["value"], empty["curve"]["threshold"]) == (None, [])


def test_what_cannot_be_judged() -> None:
    size = np.full((2, 2), 100)
    cases: list[tuple[Any, Any, str]] = [
        (([2], [BOX], [0.5]), ([], []), "from 0 to 1"),
        (([0.5], [BOX], [0.5]), ([], []), "whole number"),
        (([0], [BOX[:3]], [0.5]), ([], []), "four finite numbers"),
        (([0], [BOX], []), ([], []), "1 finite numbers"),
        (([0], [BOX], [math.nan]), ([], []), "finite"),
        (([], [], []), ([0], [[5, 5, 5, 9]]), "true box 0 must have a width"),
    ]
    for detected, true, message in cases:
        with pytest.raises(DataError, match=message):
            evaluate_detections(*detected, *true, image_size=size)
    with pytest.raises(DataError, match="image_size"):
        evaluate_detections([], [], [], [], [], image_size=np.empty((0, 2)))
    with pytest.raises(DataError, match="groups must be one for each of the 2 images"):
        evaluate_detections([], [], [], [], [], image_size=size, groups=[1])
