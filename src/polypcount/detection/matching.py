"""Which detected boxes are true, and what that says about every threshold at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus.geometry import iou as iou_of
from polypcount.errors import DataError

IOU = 0.5  # a detected box shows a polyp whose true box it overlaps by at least this
_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]
_Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class MatchedBoxes:
    """The boxes of many images, each detected box with whether it is true.

    Attributes:
        image: int64[n], image of each detected box, highest score first.
        score: float64[n], falling.
        is_true: bool[n], whether it was matched to a true box.
        size: float64[n], its size: sqrt(area / area of the image).
        true_image: int64[m], image of each true box.
        true_size: float64[m], its size.
        true_score: float64[m], score of the box that was matched to it; -inf if none was.
        ends: int64[k], index of the last box of each score that occurs.
    """

    image: _Ints
    score: _Floats
    is_true: _Bools
    size: _Floats
    true_image: _Ints
    true_size: _Floats
    true_score: _Floats
    ends: _Ints


@dataclass(frozen=True, eq=False)
class DetectionCurve:
    """What each threshold gives: one value for each score that occurs, highest first.

    Attributes:
        threshold: float64[k], falling; boxes with at least this score count.
        recall: float64[k], true boxes that are found / true boxes; NaN where there are none.
        precision: float64[k], boxes that are true / boxes.
        false_alarms: float64[k], boxes that are not true / images.
    """

    threshold: _Floats
    recall: _Floats
    precision: _Floats
    false_alarms: _Floats

    @property
    def average_precision(self) -> float:
        """Area under the interpolated precision-recall curve, all points; 0 without points.

        sum over i of (recall[i] - recall[i - 1]) * max over j >= i of precision[j], with recall[-1] = 0
        """
        if not len(self.threshold):
            return 0.0
        best = np.maximum.accumulate(np.nan_to_num(self.precision)[::-1])[::-1]
        return float(np.diff(self.recall, prepend=0) @ best)

    def recall_at(self, false_alarms: float) -> float:
        """The highest recall of a threshold with at most so many false alarms per image; 0 where none has."""
        allowed = self.recall[self.false_alarms <= false_alarms]
        return float(allowed.max(initial=0)) if not np.isnan(allowed).any() else float("nan")


def matched_boxes(
    image: ArrayLike,
    xyxy: ArrayLike,
    score: ArrayLike,
    true_image: ArrayLike,
    true_xyxy: ArrayLike,
    image_size: NDArray[np.float64],
) -> MatchedBoxes:
    """Match detected to true boxes, each true box once.

    The boxes of an image are taken by falling score, those of equal score as given. Each takes the true box that it
    overlaps most among those that are free, if by an IoU of at least 0.5. Two boxes on one polyp are one true box and
    one false alarm.

    Args:
        image: int[n], image of each detected box.
        xyxy: float[n, 4], x1, y1, x2, y2 in pixels.
        score: float[n].
        true_image: int[m], image of each true box.
        true_xyxy: float[m, 4].
        image_size: float64[images, 2], width and height of each image.
    """
    images, boxes = _checked(image, xyxy, "a detected box", len(image_size))
    true_images, true_boxes = _checked(true_image, true_xyxy, "a true box", len(image_size))
    scores = np.asarray(score, np.float64).reshape(-1)
    if len(scores) != len(images) or not np.isfinite(scores).all():
        raise DataError(f"scores must be {len(images)} finite numbers, one for each detected box")
    if len(flat := np.flatnonzero((true_boxes[:, 2:] <= true_boxes[:, :2]).any(axis=1))):
        raise DataError(f"true box {flat[0]} must have a width and a height, found {true_boxes[flat[0]].tolist()}")
    order = np.argsort(-scores, kind="stable")
    images, boxes, scores = images[order], boxes[order], scores[order]
    is_true, true_score = np.zeros(len(images), bool), np.full(len(true_images), -np.inf)
    true_rows = _rows_by_image(true_images, len(image_size))
    for number, rows in enumerate(_rows_by_image(images, len(image_size))):
        free = true_rows[number]
        for row in rows if len(free) else ():
            overlap = iou_of(np.broadcast_to(boxes[row], (len(free), 4)), true_boxes[free])
            if len(free) and overlap[best := int(overlap.argmax())] >= IOU:
                is_true[row], true_score[free[best]] = True, scores[row]
                free = np.delete(free, best)
    return MatchedBoxes(
        images,
        scores,
        is_true,
        _sizes(boxes, image_size[images]),
        true_images,
        _sizes(true_boxes, image_size[true_images]),
        true_score,
        np.flatnonzero(np.append(np.diff(scores) != 0, True)) if len(scores) else np.empty(0, np.int64),
    )


def curve_of(matched: MatchedBoxes, weight: _Floats) -> DetectionCurve:
    """The curve, where image i counts `weight[i]` times; weight: float64[images]."""
    weights = weight[matched.image]
    true = np.cumsum(weights * matched.is_true)[matched.ends]
    false = np.cumsum(weights * ~matched.is_true)[matched.ends]
    total = weight[matched.true_image].sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        recall = true / total if total else np.full(len(true), np.nan)
        return DetectionCurve(matched.score[matched.ends], recall, true / (true + false), false / weight.sum())


def _checked(image: ArrayLike, xyxy: ArrayLike, name: str, image_count: int) -> tuple[_Ints, _Floats]:
    images, boxes = np.asarray(image), np.asarray(xyxy, np.float64)
    if not len(images):
        return np.empty(0, np.int64), np.empty((0, 4))
    if images.dtype.kind not in "iu" or images.ndim != 1 or images.min() < 0 or images.max() >= image_count:
        raise DataError(f"the image of {name} must be a whole number from 0 to {image_count - 1}")
    if boxes.shape != (len(images), 4) or not np.isfinite(boxes).all():
        raise DataError(f"{name} must be four finite numbers, found an array {list(boxes.shape)}")
    return images.astype(np.int64), boxes


def _rows_by_image(images: _Ints, image_count: int) -> list[_Ints]:
    """Rows of each image, in their order."""
    order = np.argsort(images, kind="stable")
    return np.split(order, np.searchsorted(images[order], np.arange(1, image_count)))


def _sizes(xyxy: _Floats, image_size: _Floats) -> _Floats:
    sides = np.maximum(xyxy[:, 2:] - xyxy[:, :2], 0)
    return np.asarray(np.sqrt(sides.prod(axis=1) / image_size.prod(axis=1)))
