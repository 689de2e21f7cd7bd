"""How good the boxes of a detector are, by true boxes: precision and recall, AP50, curves, figures by size."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.detection.matching import IOU, DetectionCurve, MatchedBoxes, curve_of, matched_boxes
from polypcount.errors import DataError

FALSE_ALARM_RATES = (0.05, 0.1, 0.2, 0.5, 1.0)  # per image
# Sizes of boxes as sqrt(area of the box / area of the image): from, and below.
SIZES: Mapping[str, tuple[float, float]] = {"small": (0.0, 0.2), "medium": (0.2, 0.4), "large": (0.4, math.inf)}
LEVEL = 0.95
_MOST_POINTS = 200  # of a curve in JSON


@dataclass(frozen=True)
class Estimate:
    """A figure, with a 95 % interval: bootstrap percentiles over images, or over groups of images.

    Attributes:
        value: The figure; NaN where it is undefined.
        low: Lower end; NaN where there is one group only, or the figure is undefined in every repetition.
        high: Upper end.
    """

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, float | None]:
        """The three numbers, None for NaN."""
        return {name: _known(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class SizeScores:
    """The figures for boxes of one range of sizes; see `SIZES`.

    Attributes:
        boxes: Number of true boxes of these sizes.
        recall: Share of them that is found, at the threshold.
        false_alarms: False boxes of these sizes / images, at the threshold.
    """

    boxes: int
    recall: Estimate
    false_alarms: Estimate


@dataclass(frozen=True, eq=False)
class DetectionScores:
    """How good the boxes of a detector are.

    Attributes:
        images: Number of images, with and without polyp.
        boxes: Number of true boxes.
        threshold: Boxes with at least this score count for the next three figures.
        precision: Boxes that are true / boxes; NaN without boxes.
        recall: True boxes that are found / true boxes; NaN without true boxes.
        false_alarms: Boxes that are not true / images.
        ap50: See `DetectionCurve.average_precision`; NaN without true boxes.
        recall_at: By false alarms per image, the highest recall of a threshold that gives at most so many.
        by_size: By the name of a range of sizes.
        curve: Every threshold.
        repetitions: Of the bootstrap.
        seed: Of the bootstrap.
    """

    images: int
    boxes: int
    threshold: float
    precision: Estimate
    recall: Estimate
    false_alarms: Estimate
    ap50: Estimate
    recall_at: Mapping[float, Estimate]
    by_size: Mapping[str, SizeScores]
    curve: DetectionCurve
    repetitions: int
    seed: int

    def to_json(self) -> dict[str, Any]:
        """All figures, None for NaN; of the curve at most 200 points, evenly chosen."""
        points = len(self.curve.threshold)
        rows = np.linspace(0, points - 1, min(points, _MOST_POINTS)).round().astype(int)
        sizes = {
            name: {
                "from": SIZES[name][0],
                "below": _known(SIZES[name][1]),
                "boxes": scores.boxes,
                "recall": scores.recall.to_json(),
                "false_alarms": scores.false_alarms.to_json(),
            }
            for name, scores in self.by_size.items()
        }
        return {
            "iou": IOU,
            **{name: getattr(self, name) for name in ("images", "boxes", "threshold")},
            **{name: getattr(self, name).to_json() for name in ("precision", "recall", "false_alarms", "ap50")},
            "recall_at": {f"{rate:g}": estimate.to_json() for rate, estimate in self.recall_at.items()},
            "by_size": sizes,
            "curve": {name: [_known(x) for x in values[rows].tolist()] for name, values in vars(self.curve).items()},
            "interval": {"level": LEVEL, "repetitions": self.repetitions, "seed": self.seed},
        }


def evaluate_detections(
    image: ArrayLike,
    xyxy: ArrayLike,
    score: ArrayLike,
    true_image: ArrayLike,
    true_xyxy: ArrayLike,
    *,
    image_size: ArrayLike,
    threshold: float = 0.5,
    groups: ArrayLike | None = None,
    repetitions: int = 1000,
    seed: int = 0,
) -> DetectionScores:
    """Judge detected boxes by true boxes; see `matched_boxes` for which are true.

    Args:
        image: int[n], image of each detected box. Give all boxes from a low score on, for the curve.
        xyxy: float[n, 4], x1, y1, x2, y2 in pixels.
        score: float[n].
        true_image: int[m], image of each true box.
        true_xyxy: float[m, 4], boxes with an area.
        image_size: float[images, 2], width and height of each image. It says how many images there are.
        threshold: Boxes with at least this score count.
        groups: int[images], images that belong together, such as those of a patient: the bootstrap draws groups. Each
            image is a group of its own by default.
        repetitions: Of the bootstrap.
        seed: Of the bootstrap.
    """
    sizes = np.asarray(image_size, np.float64)
    if sizes.ndim != 2 or sizes.shape[1] != 2 or not len(sizes) or not (np.isfinite(sizes).all() and sizes.min() > 0):
        raise DataError("image_size must be the width and height of at least one image, [images, 2], above 0")
    group = np.arange(len(sizes)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    if group.shape != (len(sizes),):
        raise DataError(f"groups must be one for each of the {len(sizes)} images, found {list(group.shape)}")
    matched = matched_boxes(image, xyxy, score, true_image, true_xyxy, sizes)
    figures = _figures(matched, np.ones(len(sizes)), threshold)
    rng, count = np.random.default_rng(seed), int(group.max()) + 1
    drawn = [
        _figures(matched, rng.multinomial(count, np.full(count, 1 / count))[group].astype(np.float64), threshold)
        for _ in range(repetitions if count > 1 else 0)
    ]
    low, high = _ends(np.array(drawn).reshape(len(drawn), len(figures)))
    estimates = [Estimate(*map(float, ends)) for ends in zip(figures, low, high, strict=True)]
    take = iter(estimates).__next__
    return DetectionScores(
        images=len(sizes),
        boxes=len(matched.true_image),
        threshold=float(threshold),
        precision=take(),
        recall=take(),
        false_alarms=take(),
        ap50=take(),
        recall_at={rate: take() for rate in FALSE_ALARM_RATES},
        by_size={name: _by_size(matched, name, take) for name in SIZES},
        curve=curve_of(matched, np.ones(len(sizes))),
        repetitions=repetitions,
        seed=seed,
    )


def _figures(matched: MatchedBoxes, weight: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    """All figures in the order of `DetectionScores`, where image i counts `weight[i]` times."""
    curve = curve_of(matched, weight)
    box, truth = weight[matched.image] * (matched.score >= threshold), weight[matched.true_image]
    false, found = box * ~matched.is_true, truth * (matched.true_score >= threshold)
    images = weight.sum()
    figures = [_ratio((box * matched.is_true).sum(), box.sum()), _ratio(found.sum(), truth.sum()), false.sum() / images]
    figures.append(curve.average_precision if truth.sum() else math.nan)
    figures += [curve.recall_at(rate) if truth.sum() else math.nan for rate in FALSE_ALARM_RATES]
    for low, high in SIZES.values():
        true_rows = (matched.true_size >= low) & (matched.true_size < high)
        rows = (matched.size >= low) & (matched.size < high)
        figures += [_ratio(found[true_rows].sum(), truth[true_rows].sum()), false[rows].sum() / images]
    return np.array(figures)


def _by_size(matched: MatchedBoxes, name: str, take: Callable[[], Estimate]) -> SizeScores:
    low, high = SIZES[name]
    boxes = int(((matched.true_size >= low) & (matched.true_size < high)).sum())
    return SizeScores(boxes, recall=take(), false_alarms=take())


def _ends(drawn: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both ends of the interval of each column; repetitions in which a figure is undefined are left out."""
    ends = np.full((2, drawn.shape[1]), np.nan)
    for column, values in enumerate(drawn.T):
        known = values[~np.isnan(values)]
        if len(known):
            ends[:, column] = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return ends[0], ends[1]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
