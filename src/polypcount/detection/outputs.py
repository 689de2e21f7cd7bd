"""From the outputs of a detector to boxes and scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus.geometry import iou as iou_of
from polypcount.detection.settings import OutputForm
from polypcount.errors import DataError

_MOST_CANDIDATES = 1000  # boxes with the highest scores; limits the time for a model that finds something everywhere
_ROUNDING = 1e-3  # by which a score of 16 bits may be above 1


@dataclass(frozen=True)
class OutputReading:
    """How the outputs of one model are read.

    Attributes:
        form: See `reading.py`.
        outputs: Names of the outputs that are read, in the order of the form.
        boxes: The meaning of the four numbers of a box.
        scale: The unit of these numbers: pixels of the input, shares of the input, or pixels of the frame.
        activation: How the numbers of classes become scores.
        classes: Numbers of the classes that are kept; None keeps all.
    """

    form: OutputForm
    outputs: tuple[str, ...]
    boxes: Literal["cxcywh", "xyxy"]
    scale: Literal["pixels", "unit", "frame"]
    activation: Literal["none", "sigmoid", "softmax"]
    classes: tuple[int, ...] | None = None

    @property
    def drops_overlaps(self) -> bool:
        """Whether the model gives one box for each object and class, not several that overlap."""
        return self.form not in ("yolo-classes", "yolo-objectness")


def read(
    reading: OutputReading, outputs: Sequence[NDArray[Any]], confidence: float, source: object
) -> tuple[NDArray[np.float64], NDArray[np.float32], NDArray[np.int64]]:
    """Read the boxes with at least this score, at most the best 1,000.

    Args:
        reading: How to read them.
        outputs: In the order of `reading.outputs`.
        confidence: Lowest score.
        source: The file of the model, for messages.

    Returns:
        Boxes float64[n, 4] as x1, y1, x2, y2 in the unit of the reading, their scores float32[n] from 0 to 1, best
        first, and the numbers of their classes int64[n].
    """
    boxes, score, kind = _columns(reading, outputs, source)
    if not np.isfinite(score).all():
        raise DataError(f"{source} gives scores that are not finite; export it again, with 32 bits if it has 16")
    if len(score) and not -_ROUNDING <= score.min() <= score.max() <= 1 + _ROUNDING:
        raise DataError(
            f"{source} gives scores from {score.min():.3g} to {score.max():.3g}; the form {reading.form} has scores"
            " from 0 to 1, so the family or the activation is a different one",
            mend=("detector.family", "detector.activation"),
        )
    chosen = np.flatnonzero(score >= confidence)
    chosen = chosen[np.argsort(-score[chosen], kind="stable")[:_MOST_CANDIDATES]]
    xyxy = boxes[chosen].astype(np.float64)
    if not np.isfinite(xyxy).all():
        raise DataError(f"{source} gives boxes that are not finite; export it again, with 32 bits if it has 16")
    if reading.boxes == "cxcywh":
        centre, half = xyxy[:, :2], xyxy[:, 2:] / 2
        xyxy = np.concatenate([centre - half, centre + half], axis=1)
    return xyxy, np.clip(score[chosen], 0, 1).astype(np.float32), kind[chosen]


def _columns(
    reading: OutputReading, outputs: Sequence[NDArray[Any]], source: object
) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.int64]]:
    """Boxes [n, 4], score [n] and class [n] of all rows of a kept class."""
    try:
        first = outputs[0][0]
        if reading.form == "detr-final":
            return _final(reading, outputs[1][0], outputs[2][0], first)
        if reading.form == "yolo-final":
            return _final(reading, first[:, :4], first[:, 4], first[:, 5])
        if reading.form == "detr-logits":
            return first, *_best_class(reading, outputs[1][0])
        if reading.form == "yolo-objectness":
            score, kind = _best_class(reading, first[:, 5:])
            return first[:, :4], score * first[:, 4].astype(np.float32), kind
        rows = first.T if reading.form == "yolo-classes" else first
        return rows[:, :4], *_best_class(reading, rows[:, 4:])
    except (IndexError, ValueError):
        shapes = [output.shape for output in outputs]
        raise DataError(
            f"{source} gives outputs of the shapes {shapes}, not those of the form {reading.form}"
        ) from None


def _final(
    reading: OutputReading, boxes: NDArray[Any], score: NDArray[Any], kind: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.int64]]:
    rows = np.isin(kind, reading.classes) if reading.classes is not None else slice(None)
    numbers = np.nan_to_num(kind[rows], nan=-1, posinf=-1, neginf=-1).astype(np.int64)
    return boxes[rows], score[rows].astype(np.float32), numbers


def _best_class(reading: OutputReading, values: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Highest score among the kept classes, and its class, from values [n, classes]."""
    scores: NDArray[np.float32] = values.astype(np.float32)
    if reading.activation == "sigmoid":
        scores = (1 / (1 + np.exp(-np.clip(scores, -80, 80)))).astype(np.float32)
    if reading.activation == "softmax":
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        scores = (powers / powers.sum(axis=1, keepdims=True))[:, :-1]
    classes = np.arange(scores.shape[1]) if reading.classes is None else np.array(reading.classes)
    scores = scores[:, classes]
    best = scores.argmax(axis=1)
    return scores[np.arange(len(scores)), best], classes[best]


def without_overlaps(
    xyxy: NDArray[np.floating], iou: float, kind: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Rows that remain when each row, starting with the first, drops the later rows that overlap it by more than `iou`.

    Args:
        xyxy: float[n, 4], best first, none without area.
        iou: Largest overlap that is allowed.
        kind: int64[n]; if given, only rows of another class are dropped.
    """
    rows, remaining = np.arange(len(xyxy)), []
    while len(rows):
        best, rows = rows[0], rows[1:]
        remaining.append(best)
        dropped = iou_of(xyxy[best][None], xyxy[rows]) > iou
        if kind is not None:
            dropped &= kind[rows] != kind[best]
        rows = rows[~dropped]
    return np.array(remaining, np.int64)
