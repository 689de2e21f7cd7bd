"""From the outputs of a detector to boxes and scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus.geometry import iou as iou_of
from polypcount.counting.detector_settings import Form
from polypcount.errors import DataError

_MOST_CANDIDATES = 1000  # of the highest scores; bounds the time for a model that sees something everywhere
_ROUNDING = 1e-3  # by which a score of 16 bits may be above 1


@dataclass(frozen=True)
class Reading:
    """How the outputs of one model are read.

    form: see `detector_forms.py`.
    outputs: names of the outputs that are read, in the order of the form.
    boxes: what the four numbers of a box are.
    scale: of what they are: pixels of the input, shares of it, or pixels of the frame.
    activation: what makes scores of the numbers of classes.
    classes: numbers of those that are kept; None keeps all.
    """

    form: Form
    outputs: tuple[str, ...]
    boxes: Literal["cxcywh", "xyxy"]
    scale: Literal["pixels", "unit", "frame"]
    activation: Literal["none", "sigmoid", "softmax"]
    classes: tuple[int, ...] | None = None

    @property
    def drops_overlaps(self) -> bool:
        """Whether the model gives one box for one object and class; the others give several, which overlap."""
        return self.form not in ("yolo-classes", "yolo-objectness")


@dataclass(frozen=True)
class Candidates:
    """Boxes of one frame, in rows of falling score.

    xyxy: float64[n, 4], in what the reading says.
    score: float32[n], 0 to 1. kind: int64[n], number of the class.
    """

    xyxy: NDArray[np.float64]
    score: NDArray[np.float32]
    kind: NDArray[np.int64]


def read(reading: Reading, outputs: Sequence[NDArray[Any]], confidence: float, source: object) -> Candidates:
    """Boxes with at least this score, the best 1,000 of them.

    outputs: in the order of the reading. source: the file's name, for messages.
    """
    boxes, score, kind = _columns(reading, outputs, source)
    if not np.isfinite(score).all():
        raise DataError(f"{source} gives scores that are not finite; export it again, in 32 bits if it has 16")
    if len(score) and not -_ROUNDING <= score.min() <= score.max() <= 1 + _ROUNDING:
        raise DataError(
            f"{source} gives scores from {score.min():.3g} to {score.max():.3g}, and 0 to 1 was expected of the form"
            f" {reading.form}; its family or activation is another one"
        )
    chosen = np.flatnonzero(score >= confidence)
    chosen = chosen[np.argsort(-score[chosen], kind="stable")[:_MOST_CANDIDATES]]
    numbers = boxes[chosen].astype(np.float64)
    if not np.isfinite(numbers).all():
        raise DataError(f"{source} gives boxes that are not finite; export it again, in 32 bits if it has 16")
    if reading.boxes == "cxcywh":
        centre, half = numbers[:, :2], numbers[:, 2:] / 2
        numbers = np.concatenate([centre - half, centre + half], axis=1)
    return Candidates(numbers, np.clip(score[chosen], 0, 1).astype(np.float32), kind[chosen])


def _columns(
    reading: Reading, outputs: Sequence[NDArray[Any]], source: object
) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.int64]]:
    """Boxes [n, 4], score [n] and class [n] of all rows of a kept class."""
    shapes = [each.shape for each in outputs]
    try:
        first = outputs[0][0]
        if reading.form == "detr-final":
            return _of_kept(reading, outputs[1][0], outputs[2][0], first)
        if reading.form == "yolo-final":
            return _of_kept(reading, first[:, :4], first[:, 4], first[:, 5])
        if reading.form == "detr-logits":
            return first, *_best_class(reading, outputs[1][0])
        if reading.form == "yolo-objectness":
            score, kind = _best_class(reading, first[:, 5:])
            return first[:, :4], score * first[:, 4].astype(np.float32), kind
        rows = first.T if reading.form == "yolo-classes" else first
        return rows[:, :4], *_best_class(reading, rows[:, 4:])
    except (IndexError, ValueError):
        raise DataError(
            f"{source} gives outputs of the shapes {shapes}, which the form {reading.form} has not"
        ) from None


def _of_kept(
    reading: Reading, boxes: NDArray[Any], score: NDArray[Any], kind: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.int64]]:
    kept = np.isin(kind, reading.classes) if reading.classes is not None else slice(None)
    numbers = np.nan_to_num(kind[kept], nan=-1, posinf=-1, neginf=-1).astype(np.int64)
    return boxes[kept], score[kept].astype(np.float32), numbers


def _best_class(reading: Reading, given: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Highest score among the kept classes, and whose it is, of numbers [n, classes]."""
    numbers: NDArray[np.float32] = given.astype(np.float32)
    if reading.activation == "sigmoid":
        numbers = (1 / (1 + np.exp(-np.clip(numbers, -80, 80)))).astype(np.float32)
    if reading.activation == "softmax":
        powers = np.exp(numbers - numbers.max(axis=1, keepdims=True))
        numbers = (powers / powers.sum(axis=1, keepdims=True))[:, :-1]
    kept = np.arange(numbers.shape[1]) if reading.classes is None else np.array(reading.classes)
    numbers = numbers[:, kept]
    best = numbers.argmax(axis=1)
    return numbers[np.arange(len(numbers)), best], kept[best]


def without_overlaps(
    xyxy: NDArray[np.floating], iou: float, kind: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Rows that stay when, from the first on, each drops later ones that overlap it by more than `iou`.

    xyxy: float[n, 4], none without area, best first. kind: where given, only rows of another class are dropped.
    """
    left, kept = np.arange(len(xyxy)), []
    while len(left):
        best, left = left[0], left[1:]
        kept.append(best)
        dropped = iou_of(xyxy[best][None], xyxy[left]) > iou
        if kind is not None:
            dropped &= kind[left] != kind[best]
        left = left[~dropped]
    return np.array(kept, np.int64)
