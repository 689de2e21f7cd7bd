"""Boxes as a detector gives them: with misses, jitter, false alarms and scores, which last for a while as real ones do.

Counting can then be measured twice on the same procedures, with perfect boxes and with a detector's.
"""

from dataclasses import asdict, dataclass, replace

import numpy as np

from polypcount.corpus import Boxes, Corpus, Video
from polypcount.errors import DataError
from polypcount.simulate.noise import Drifts
from polypcount.simulate.projection import Values

_PERIODS = (0.15, 1.0, 8.0)  # seconds
_LEAST_SCORE = 0.1  # boxes with a lower score are not given
_SHARPNESS = 4.0  # how fast the score rises with how well a polyp is found
_SMALL = 0.7  # how much harder a polyp of a third of the size is, in standard deviations
_ALARM_SIZE, _ALARM_SIZE_SPREAD = 0.14, 0.5  # median in heights of the frame; standard deviation of the log
_LONGEST_ALARM_SECONDS = 5.0
_RANGES = {"recall": (0.01, 0.99), "alarms_per_minute": (0, 1000), "alarm_seconds": (0.03, 5), "jitter": (0, 0.3)}


@dataclass(frozen=True)
class DetectorRates:
    """How a detector does.

    Attributes:
        recall: Share of the boxes that it finds with a score of at least 0.5. Small polyps are missed more often.
        alarms_per_minute: How often it begins to see a polyp where there is none.
        alarm_seconds: Median time for which it goes on seeing it.
        jitter: Standard deviation of the place and of the log of width and height of a box, in sizes of the box.
    """

    recall: float = 0.8
    alarms_per_minute: float = 6.0
    alarm_seconds: float = 0.25
    jitter: float = 0.06

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            if not least <= getattr(self, name) <= most:
                raise DataError(f"{name} must be from {least} to {most}, found {getattr(self, name)}")


def as_detected(corpus: Corpus, seed: int, rates: DetectorRates | None = None) -> Corpus:
    """The corpus with the boxes of a detector, without polyps and tracks.

    Args:
        corpus: Its videos have a size and a frame rate.
        seed: The same seed gives the same boxes.
        rates: How the detector does.
    """
    rates = rates or DetectorRates()
    parts = [_of_video(corpus, row, rates, np.random.default_rng([seed, row, 11])) for row in range(len(corpus.videos))]
    parts.append((np.empty(0), np.empty((0, 4)), np.empty(0)))
    frame, xyxy, score = (np.concatenate(column) for column in zip(*parts, strict=True))
    video = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    provenance = corpus.provenance
    if provenance is not None:
        provenance = replace(provenance, parameters={**provenance.parameters, "detector": asdict(rates)})
    boxes = Boxes(video, frame.astype(int), xyxy, score).ordered()
    return Corpus(corpus.videos, boxes, corpus.polyps, provenance=provenance)


def _of_video(
    corpus: Corpus, row: int, rates: DetectorRates, rng: np.random.Generator
) -> tuple[Values, Values, Values]:
    """Frames, boxes and scores of one video."""
    video = corpus.videos[row]
    rows = np.arange(len(corpus.boxes))[corpus.boxes.of_video(row)]
    found = _found(corpus.boxes.take(rows), video, rates, rng)
    alarms = _alarms(video, rates, rng)
    frame, xyxy, score = (np.concatenate(column) for column in zip(found, alarms, strict=True))
    sides = np.array([video.width, video.height] * 2, float)
    xyxy = np.clip(xyxy, 0, sides)
    kept = (score >= _LEAST_SCORE) & ((xyxy[:, 2:] - xyxy[:, :2]) >= 2).all(axis=1)
    return frame[kept], xyxy[kept], score[kept]


def _found(boxes: Boxes, video: Video, rates: DetectorRates, rng: np.random.Generator) -> tuple[Values, Values, Values]:
    """What is found of the true boxes, of any score."""
    seconds = boxes.frame / float(video.fps or 25)
    xyxy = boxes.xyxy.astype(np.float64)
    size = xyxy[:, 2:] - xyxy[:, :2]
    drift = {name: np.zeros(len(boxes)) for name in ("found", "x", "y", "width", "height")}
    for polyp in np.unique(boxes.polyp):
        mine = boxes.polyp == polyp
        strengths = {"found": (0.7, 1.0, 0.8), **dict.fromkeys(("x", "y", "width", "height"), (1.0, 0.6, 0.2))}
        drawn = Drifts(float(seconds.max()) + 1, _PERIODS, strengths, rng).at(seconds[mine])
        for name, values in drawn.items():
            drift[name][mine] = values
    log_size = np.log(np.maximum(size.prod(axis=1), 1)) / 2
    well = drift["found"] + _SMALL * (log_size - log_size.mean() if len(boxes) else log_size) / np.log(3)
    # Exactly this share has a score of 0.5.
    score = 1 / (1 + np.exp(-_SHARPNESS * (well - np.quantile(well, 1 - rates.recall)))) if len(boxes) else well
    middle = (xyxy[:, :2] + xyxy[:, 2:]) / 2 + rates.jitter * size * np.column_stack([drift["x"], drift["y"]])
    half = size / 2 * np.exp(rates.jitter * np.column_stack([drift["width"], drift["height"]]))
    return boxes.frame.astype(np.float64), np.hstack([middle - half, middle + half]), score


def _alarms(video: Video, rates: DetectorRates, rng: np.random.Generator) -> tuple[Values, Values, Values]:
    """False alarms: at random times and places; each wanders, and its score rises and falls."""
    fps, height = float(video.fps or 25), float(video.height or 1)
    count = rng.poisson(rates.alarms_per_minute * video.frame_count / fps / 60)
    lasts = np.minimum(rng.lognormal(np.log(rates.alarm_seconds), 1.0, count), _LONGEST_ALARM_SECONDS)
    frames, boxes, scores = [np.empty(0)], [np.empty((0, 4))], [np.empty(0)]
    for length in np.maximum((lasts * fps).astype(int), 1).tolist():
        first = int(rng.integers(max(1, video.frame_count - length)))
        frame = np.arange(first, min(first + length, video.frame_count))
        strengths = {"x": (0.3, 1, 0), "y": (0.3, 1, 0), "size": (0.3, 1, 0), "score": (1.0, 0.5, 0)}
        drift = Drifts(length / fps + 1, _PERIODS, strengths, rng).at((frame - first) / fps)
        side = _ALARM_SIZE * height * np.exp(_ALARM_SIZE_SPREAD * rng.standard_normal() + 0.15 * drift["size"])
        middle = rng.uniform(0.05, 0.95, 2) * [float(video.width or 1), height]
        middle = middle + 0.08 * height * np.column_stack([drift["x"] - drift["x"][0], drift["y"] - drift["y"][0]])
        half = side[:, None] / 2 * np.exp(0.15 * rng.standard_normal() * np.array([1, -1]))
        peak = np.log(rng.uniform(0.3, 0.9))
        rise = np.sin(np.pi * (np.arange(len(frame)) + 0.5) / len(frame)) ** 0.3
        frames.append(frame.astype(float))
        boxes.append(np.hstack([middle - half, middle + half]))
        scores.append(np.clip(np.exp(peak + 0.15 * drift["score"]) * rise, 0, 0.99))
    return np.concatenate(frames), np.concatenate(boxes), np.concatenate(scores)
