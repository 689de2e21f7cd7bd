"""The last part of making the bundled detector: scores that are chances, the threshold, and how good it is."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.detector_data import Parts, polyp_free_parts
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from polypcount.corpus import Corpus
from polypcount.detection import Detector, DetectorSettings, evaluate_detections, load_detector
from polypcount.detection.evaluate import DetectionScores
from polypcount.detection.matching import MatchedBoxes, curve_of, matched_boxes
from polypcount.video import open_video
from polypcount.video.frames import Image

LEAST, MOST_FALSE = 0.01, 0.1  # score of a box that is judged; false boxes an image without polyps at the threshold
NEAR_BEST = 0.01  # of F1: less than what the few stills of the tuning part can tell apart
FREE_OF_A_STILL = 2


@dataclass(frozen=True, eq=False)
class Detected:
    """The boxes of a detector in many images, and the true ones.

    Attributes:
        sizes: float64[images, 2], width and height.
        groups: int64[images], stills of one sequence belong together.
        image: int64[n], image of each box.
        xyxy: float64[n, 4].
        score: float64[n].
        true_image: int64[m].
        true_xyxy: float64[m, 4].
    """

    sizes: NDArray[np.float64]
    groups: NDArray[np.int64]
    image: NDArray[np.int64]
    xyxy: NDArray[np.float64]
    score: NDArray[np.float64]
    true_image: NDArray[np.int64]
    true_xyxy: NDArray[np.float64]

    @property
    def matched(self) -> MatchedBoxes:
        """Which of the boxes are true."""
        return matched_boxes(self.image, self.xyxy, self.score, self.true_image, self.true_xyxy, self.sizes)

    def scores(self, threshold: float, repetitions: int = 1000) -> DetectionScores:
        """All figures at a threshold."""
        return evaluate_detections(
            self.image,
            self.xyxy,
            self.score,
            self.true_image,
            self.true_xyxy,
            image_size=self.sizes,
            groups=self.groups,
            threshold=threshold,
            repetitions=repetitions,
        )

    def calibrated(self, slope: float, offset: float) -> "Detected":
        """The same with scores sigmoid(slope * logit + offset)."""
        values = {**vars(self), "score": 1 / (1 + np.exp(-(slope * logit(self.score) + offset)))}
        return Detected(**values)


def detected_in(detector: Detector, corpus: Corpus) -> Detected:
    """The boxes in all frames of a corpus that show a polyp."""
    images, truth, groups = [], [], []
    for row, video in enumerate(corpus.videos):
        own = np.flatnonzero(corpus.boxes.video == row)
        source = open_video(video, corpus.files, row)
        for frame, image in source.frames(np.unique(corpus.boxes.frame[own])):
            images.append(image)
            truth.append(corpus.boxes.xyxy[own[corpus.boxes.frame[own] == frame]])
            groups.append(row)
    return detected_images(detector, images, truth, groups)


def detected_images(
    detector: Detector, images: Sequence[Image], truth: Sequence[NDArray[Any]], groups: Sequence[int]
) -> Detected:
    """The boxes in some images."""
    found = [detector.detect(image) for image in images]
    rows = range(len(images))
    return Detected(
        np.array([(image.shape[1], image.shape[0]) for image in images], float),
        np.array(groups),
        np.concatenate([np.full(len(score), row) for row, (_, score) in zip(rows, found, strict=True)]),
        np.concatenate([xyxy for xyxy, _ in found]).astype(float),
        np.concatenate([score for _, score in found]).astype(float),
        np.concatenate([np.full(len(boxes), row) for row, boxes in zip(rows, truth, strict=True)]),
        np.concatenate([np.reshape(boxes, (-1, 4)) for boxes in truth]).astype(float),
    )


def free_images(detector: Detector, corpus: Corpus, seed: int) -> Detected:
    """The boxes in polyp-free parts of the frames of a corpus, at most two of each."""
    images = polyp_free_parts(corpus, seed, FREE_OF_A_STILL)
    return detected_images(detector, images, [np.empty((0, 4))] * len(images), range(len(images)))


def logit(score: NDArray[np.float64]) -> NDArray[np.float64]:
    """The number whose sigmoid is the score."""
    kept = np.clip(score, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(kept / (1 - kept)))


def calibrate(parts: Sequence[Detected]) -> tuple[float, float]:
    """Slope and offset on the logit, so that a score is the chance that its box shows a polyp; parts weigh equally."""
    scores, labels, weights = [], [], []
    for part in parts:
        matched = part.matched
        scores.append(logit(matched.score))
        labels.append(matched.is_true)
        weights.append(np.full(len(matched.score), 1 / len(part.sizes)))
    fitted = LogisticRegression(C=1e6).fit(
        np.concatenate(scores)[:, None], np.concatenate(labels), sample_weight=np.concatenate(weights)
    )
    return float(fitted.coef_[0, 0]), float(fitted.intercept_[0])


def choose_threshold(shown: Sequence[Detected], free: Detected) -> float:
    """The lowest threshold with nearly the best mean F1 over the parts, and at most 0.1 boxes an image without polyps.

    The lowest, since counting forgives a false box more easily than a polyp that is never seen: only boxes that last
    make a tracklet, and a rule sets doubtful tracklets aside.
    """
    tried = np.arange(0.1, 0.9, 0.01)
    false = (free.score >= tried[:, None]).sum(axis=1) / len(free.sizes)
    values = np.zeros(len(tried))
    for part in shown:
        curve = curve_of(part.matched, np.ones(len(part.sizes)))
        # Of each threshold that is tried: the figures of the lowest score that is not below it.
        place = np.searchsorted(-curve.threshold, -tried, side="right") - 1
        precision, recall = (np.where(place < 0, 0, values[place]) for values in (curve.precision, curve.recall))
        values += 2 * precision * recall / np.maximum(precision + recall, 1e-9) / len(shown)
    values = np.where(false <= MOST_FALSE, values, -1)
    return round(float(tried[np.flatnonzero(values >= values.max() - NEAR_BEST)[0]]), 2)


def opened(path: Path) -> Detector:
    """A detector that gives also the boxes of very low scores."""
    return load_detector(path, DetectorSettings(confidence=LEAST))


def tuned(model: Path, parts: Parts) -> tuple[tuple[float, float], float]:
    """Slope and offset of the scores, and the threshold, from the tuning part."""
    detector = opened(model)
    by_dataset: dict[str, list[str]] = {}
    for video in parts.tuning.videos:
        by_dataset.setdefault(video.dataset, []).append(video.id)
    shown = [detected_in(detector, parts.tuning.select(videos=names)) for names in by_dataset.values()]
    free = free_images(detector, parts.tuning, 7)
    calibration = calibrate([*shown, free])
    for name, part in zip(by_dataset, shown, strict=True):
        value = curve_of(part.matched, np.ones(len(part.sizes))).average_precision
        print(f"tuning part of {name}: AP50 {value:.3f}", flush=True)
    shown, free = [part.calibrated(*calibration) for part in shown], free.calibrated(*calibration)
    return calibration, choose_threshold(shown, free)


def judged(model: Path, parts: Parts, threshold: float) -> dict[str, Any]:
    """The figures on what was held back."""
    detector, figures = opened(model), dict[str, Any]()
    for name, corpus in parts.held_back.items():
        scores = detected_in(detector, corpus).scores(threshold)
        free = free_images(detector, corpus, 8)
        false = (free.score >= threshold).sum() / len(free.sizes)
        figures[name] = {**scores.to_json(), "polyp_free_parts": len(free.sizes), "false_boxes_a_part": float(false)}
        show(name, figures[name])
    return figures


def show(name: str, figures: Mapping[str, Any]) -> None:
    """Print the figures of a dataset."""
    cells = [
        f"{key} {figures[key]['value']:.3f} [{figures[key]['low']:.3f}, {figures[key]['high']:.3f}]"
        for key in ("recall", "precision", "ap50")
    ]
    sizes = ", ".join(f"{size} {of['recall']['value']:.2f} of {of['boxes']}" for size, of in figures["by_size"].items())
    print(
        f"{name}: {figures['images']} images, {figures['boxes']} boxes; {'; '.join(cells)}; recall by size {sizes}; "
        f"{figures['false_boxes_a_part']:.3f} false boxes in each of {figures['polyp_free_parts']} polyp-free parts",
        flush=True,
    )


def digest(corpus: Corpus) -> str:
    """SHA-256 over the names and contents of the images of a corpus."""
    total = hashlib.sha256()
    for row, frame, name in zip(
        corpus.files.video.tolist(), corpus.files.frame.tolist(), corpus.files.name, strict=True
    ):
        path = Path(str(corpus.videos[row].source)) / str(name)
        total.update(f"{corpus.videos[row].id}\0{frame}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
