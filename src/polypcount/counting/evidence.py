"""What counting knows about each tracklet: vectors and pictures of its looked-at boxes."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus.together import sorted_pairs
from polypcount.counting.jumps import jumps
from polypcount.counting.pictures import DecodedFrame, DrawnFrame, FramePixels, best_views, view_picture, whole_picture
from polypcount.counting.recording import Recording
from polypcount.counting.result import LookScores, Picture
from polypcount.counting.tracklets import TrackedBoxes
from polypcount.encoder import Encoder
from polypcount.progress import Progress, no_progress
from polypcount.tracking import MOST_LOOKED_AT, looked_at_step
from polypcount.video import FrameMask, FrameSource, FrameView
from polypcount.video.ahead import ahead
from polypcount.video.frames import Image
from polypcount.video.opening import CropSource

RESAMPLES = 20


@dataclass(frozen=True, eq=False)
class Evidence:
    """A tracklet, as far as counting needs it.

    Attributes:
        number: Row of the tracklet, or its running number in live counting.
        part: 0, or higher for a later part of a tracklet that was split.
        start_frame: First frame.
        stop_frame: The frame after the last one.
        box_count: How many boxes it has.
        vectors: float32[1 + RESAMPLES, d]. The first is computed from all looked-at frames. Each other one is computed
            from as many frames, drawn from these with replacement.
        frames: int32[t], the looked-at frames.
        frame_vectors: float32[t, d], the frame vector of each of them.
        views: Pictures over time.
        whole: The best frame as a whole.
        scores: What a detector that ran here gave it; None for boxes from elsewhere.
    """

    number: int
    part: int
    start_frame: int
    stop_frame: int
    box_count: int
    vectors: NDArray[np.float32]
    frames: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    frame_vectors: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0), np.float32))
    views: tuple[Picture, ...] = ()
    whole: Picture | None = None
    scores: LookScores | None = None

    @property
    def order(self) -> tuple[int, int, int, int]:
        """What evidence is sorted by: time first."""
        return self.start_frame, self.stop_frame, self.number, self.part


@dataclass(frozen=True)
class _LookedAt:
    """A looked-at box. index: Index of the box in its tracklet."""

    index: int
    frame: int
    crop: Image
    view: Picture | None


@dataclass
class _OpenTracklet:
    """A tracklet that may go on."""

    boxes: list[_LookedAt] = field(default_factory=list)
    whole: Picture | None = None


class EvidenceCollector:
    """Looks at boxes of several tracklets as frames come by, and computes the vectors of tracklets that have ended.

    It holds up to 32 small crops of each tracklet that has not ended, and nothing of the others.

    Args:
        encoder: Computes the vectors.
        pictures: Whether the report shows pictures.
        split: Whether a tracklet is split where its appearance changes suddenly; see `jumps`.

    Attributes:
        seconds: Time spent, by step.
    """

    def __init__(self, encoder: Encoder, *, pictures: bool = True, split: bool = False) -> None:
        self.encoder = encoder
        self.seconds = {"crop": 0.0, "pictures": 0.0, "embed": 0.0}
        self._pictures = pictures
        self._split = split
        self._open: dict[int, _OpenTracklet] = {}

    def see(self, number: int, index: int, frame: int, xyxy: NDArray[np.float32], pixels: FramePixels) -> None:
        """Cut the crop of a box and keep it, if it is one of the looked-at boxes.

        Args:
            number: Number of its tracklet.
            index: Index of the box in its tracklet, rising; boxes that are not looked at may be left out.
            frame: Frame of the box.
            xyxy: The box, float32[4].
            pixels: Pixels of the frame.
        """
        step = looked_at_step(index + 1)
        if index % step:
            return
        tracklet = self._open.setdefault(number, _OpenTracklet())
        if len(tracklet.boxes) == MOST_LOOKED_AT:
            tracklet.boxes = [box for box in tracklet.boxes if box.index % step == 0]
        with self._timed("crop"):
            crop = pixels.crop(xyxy, self.encoder.spec.preprocessing.crop)
        view = None
        if self._pictures:
            with self._timed("pictures"):
                view = view_picture(frame, xyxy, pixels)
                if tracklet.whole is None or view.quality > tracklet.whole.quality:
                    tracklet.whole = whole_picture(frame, xyxy, pixels, view.quality)
        tracklet.boxes.append(_LookedAt(index, frame, crop, view))

    def so_far(self, number: int) -> NDArray[np.float32] | None:
        """The vector of a tracklet that has not ended, float32[d]; None if none of its boxes was looked at."""
        if number not in self._open:
            return None
        with self._timed("embed"):
            features = self._features(self._open[number].boxes)
            return np.asarray(self._encode(features[None])[0])

    def forget(self, number: int) -> None:
        """Drop a tracklet that is not counted."""
        self._open.pop(number, None)

    def pictures(self, number: int) -> tuple[tuple[Picture, ...], Picture | None]:
        """Drop a tracklet, and give its views over time and its best frame as a whole."""
        tracklet = self._open.pop(number, _OpenTracklet())
        return best_views([box.view for box in tracklet.boxes if box.view is not None]), tracklet.whole

    def end(self, number: int, start_frame: int, stop_frame: int, box_count: int) -> list[Evidence]:
        """The evidence of a tracklet that has ended: one item, or one for each part if it is split."""
        tracklet = self._open.pop(number)
        boxes = tracklet.boxes
        with self._timed("embed"):
            features = self._features(boxes)
            cuts = jumps(features, self.encoder) if self._split else []
        parts = []
        for part, (first, last) in enumerate(zip([0, *cuts], [*cuts, len(boxes)], strict=True)):
            start = boxes[first].frame if first else start_frame
            stop = boxes[last].frame if last < len(boxes) else stop_frame
            count = (boxes[last].index if last < len(boxes) else box_count) - boxes[first].index
            with self._timed("embed"):
                vectors = self._resampled(features[first:last], np.random.default_rng([0, start, stop, count]))
                frame_vectors = self._encode(features[first:last, None])
            views = best_views([box.view for box in boxes[first:last] if box.view is not None])
            whole = tracklet.whole if tracklet.whole is not None and start <= tracklet.whole.frame < stop else None
            frames = np.array([box.frame for box in boxes[first:last]], np.int32)
            parts.append(Evidence(number, part, start, stop, count, vectors, frames, frame_vectors, views, whole))
        return parts

    def _features(self, boxes: Sequence[_LookedAt]) -> NDArray[np.float32]:
        return self.encoder.encode_frames(np.stack([box.crop for box in boxes]))

    def _encode(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Vectors float32[b, d] of sequences float32[b, t, f]."""
        return self.encoder.encode_sequences(features, np.ones(features.shape[:2], bool))

    def _resampled(self, features: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
        drawn = rng.integers(0, len(features), (RESAMPLES, len(features)))
        return self._encode(features[np.vstack([np.arange(len(features)), drawn])])

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[step] += time.perf_counter() - started


def look_at(
    recording: Recording,
    tracked: TrackedBoxes,
    collector: EvidenceCollector,
    mask: FrameMask | None,
    progress: Progress = no_progress,
) -> list[Evidence]:
    """The evidence of all tracklets that are counted, in time order; only frames that are looked at are decoded."""
    boxes, tracklets = tracked.boxes, tracked.tracklets
    boxes_in: dict[int, list[tuple[int, int, int]]] = {}  # by frame: row of the box, its tracklet, its index in there
    left: dict[int, int] = {}  # by tracklet: boxes that are still to be looked at
    for number in tracked.counted.tolist():
        rows = tracklets.rows(number)
        indices = range(0, len(rows), looked_at_step(len(rows)))
        left[number] = len(indices)
        for index in indices:
            boxes_in.setdefault(int(boxes.frame[rows[index]]), []).append((int(rows[index]), number, index))
    evidence: list[Evidence] = []
    for done, (frame, pixels) in enumerate(_pixels(recording.source, sorted(boxes_in), mask), 1):
        for row, number, index in sorted(boxes_in[frame]):
            collector.see(number, index, frame, boxes.xyxy[row], pixels)
            left[number] -= 1
            if not left[number]:
                span = int(tracklets.start_frame[number]), int(tracklets.stop_frame[number])
                evidence += collector.end(number, *span, int(tracklets.box_count[number]))
        progress(done, len(boxes_in))
    # Parts of a tracklet that was split may be too short.
    return sorted((one for one in evidence if one.box_count >= tracked.min_frames), key=lambda one: one.order)


def together_rows(evidence: Sequence[Evidence], pairs: ArrayLike) -> NDArray[np.int64]:
    """Pairs of rows in the evidence with boxes in one frame, int64[m, 2]: first < second, sorted, each pair once.

    Args:
        evidence: Evidence of tracklets. One that was split has several rows.
        pairs: int[k, 2], numbers of tracklets with boxes in one frame; those without evidence are left out.
    """
    numbers = np.array([one.number for one in evidence], np.int64)
    start = np.array([one.start_frame for one in evidence], np.int64)
    stop = np.array([one.stop_frame for one in evidence], np.int64)
    order = np.argsort(numbers, kind="stable")
    wanted = np.asarray(pairs, np.int64).reshape(-1, 2)
    begin = np.searchsorted(numbers[order], wanted)
    rows = np.searchsorted(numbers[order], wanted, side="right") - begin  # of both tracklets of a pair
    many = rows.prod(axis=1)
    pair = np.repeat(np.arange(len(wanted)), many)
    turn = np.arange(len(pair)) - np.repeat(np.cumsum(many) - many, many)
    first = order[begin[pair, 0] + turn // rows[pair, 1]]
    second = order[begin[pair, 1] + turn % rows[pair, 1]]
    # When a tracklet was split, only some of its parts were seen with the other.
    overlap = (start[first] < stop[second]) & (start[second] < stop[first])
    return sorted_pairs(np.column_stack([first, second])[overlap], len(evidence)).astype(np.int64)


def rows_of_boxes(
    evidence: Sequence[Evidence], number: NDArray[np.integer], frame: NDArray[np.integer]
) -> NDArray[np.int32]:
    """Row in the evidence of each box, int32[boxes]; -1 for a box that was not counted.

    Args:
        evidence: Evidence of the tracklets that were counted.
        number: int[boxes], number of each box's tracklet, -1 for none.
        frame: int[boxes].
    """
    rows = np.full(len(number), -1, np.int32)
    order = np.argsort(number, kind="stable")
    ranked = number[order]
    for row, one in enumerate(evidence):
        own = order[np.searchsorted(ranked, one.number) : np.searchsorted(ranked, one.number, side="right")]
        rows[own[(frame[own] >= one.start_frame) & (frame[own] < one.stop_frame)]] = row
    return rows


def pixels_of(source: FrameSource, frame: int, view: FrameView, mask: FrameMask | None) -> FramePixels:
    """The pixels of a frame, for crops and pictures. view: The frame; a source that can draws crops alone instead."""
    return DrawnFrame(source, frame, mask) if isinstance(source, CropSource) else DecodedFrame(view, mask)


def _pixels(source: FrameSource, frames: list[int], mask: FrameMask | None) -> Iterator[tuple[int, FramePixels]]:
    if isinstance(source, CropSource):
        for frame in frames:
            yield frame, DrawnFrame(source, frame, mask)
        return
    for frame, image in ahead(source.frames(np.array(frames, np.int64))):
        yield frame, DecodedFrame(image, mask)
