"""Counting while the procedure goes on, frame by frame."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus import Boxes, Provenance, Video
from polypcount.counting.gather import Gathered, Gatherer
from polypcount.counting.inputs import refuse_outside
from polypcount.counting.looks import FrameLook, Mask
from polypcount.counting.point import CountingPoint
from polypcount.counting.result import CountReport
from polypcount.counting.tally import Tally, least_boxes
from polypcount.encoder import Encoder, load_encoder
from polypcount.errors import DataError
from polypcount.tracking import OnlineLinker, OnlineTracker, TrackRules
from polypcount.video.frames import Image, refuse_no_image

MOST_TRACKLETS = 600
UNKNOWN_RATE = "The frame rate is not known, so times are given in frames; --fps sets it."


@dataclass
class _Span:
    """A tracklet that goes on. told: how many boxes it had when it last changed the count."""

    start_frame: int
    stop_frame: int
    box_count: int
    told: int = 0


@dataclass(frozen=True, eq=False)
class _Kept:
    """The boxes of one frame."""

    frame: int
    xyxy: NDArray[np.float32]
    score: NDArray[np.float32]
    track: NDArray[np.int32]
    number: NDArray[np.int64]


class Counter:
    """Counts the polyps of a recording that is still going on.

    Fed the same boxes, it ends with the same polyps as `count` of the whole file, whose tracklets it finds one by one.
    Memory is bounded, however long it runs: of a tracklet that has ended a few vectors and pictures are kept, and of
    more than 600 tracklets those that are one polyp and look most alike are put together.

    encoder: a loaded one, or its folder; the one that comes with the package, where not given.
    point: the operating point; that of the encoder, where not given.
    fps: frames per second, for the tracker and for times in the report.
    rules: for boxes without tracks; see `TrackRules`.
    min_frames: boxes that a tracklet must have; see `least_boxes`, where not given.
    pictures: whether the report will show any. mask: what of a frame is not to be shown.
    follow: whether `update` tells the count so far; where it need not, nothing is grouped before the end.
    keep_boxes: whether the report has the boxes, for a recording of bounded length; nothing is put together then.
    """

    def __init__(
        self,
        encoder: Encoder | str | Path | None = None,
        *,
        point: CountingPoint | None = None,
        fps: float | None = None,
        rules: TrackRules | None = None,
        min_frames: int | None = None,
        pictures: bool = True,
        mask: Mask | None = None,
        name: str = "live",
        follow: bool = True,
        keep_boxes: bool = False,
    ) -> None:
        self._encoder = encoder if isinstance(encoder, Encoder) else load_encoder(encoder)
        self._point = point or CountingPoint.of(self._encoder)
        self._fps, self._mask, self._min_frames, self._name = fps, mask, min_frames, name
        self._gatherer = Gatherer(self._encoder, pictures=pictures, split=True)
        self._rules = rules
        self._tracker = OnlineTracker(fps, rules or TrackRules())
        self._linker: OnlineLinker | None = None
        self._tracked = False
        self._tally = Tally(self._point, fps, None if keep_boxes else MOST_TRACKLETS)
        self._follow = follow
        self._kept: list[_Kept] | None = [] if keep_boxes else None
        self._going_on: dict[int, _Span] = {}
        self._left_out = 0
        self._frame = -1
        self._size: tuple[int, int] | None = None
        self._count = 0

    @property
    def count(self) -> int:
        """The polyps counted so far."""
        return self._count

    def update(
        self,
        frame_index: int,
        frame: Image,
        boxes: ArrayLike,
        *,
        score: ArrayLike | None = None,
        track: Sequence[int] | NDArray[np.integer] | None = None,
    ) -> int:
        """See one frame; returns the count so far.

        frame_index: from 0, rising; frames without boxes may be left out.
        frame: RGB uint8[height, width, 3].
        boxes: float[n, 4], left, top, right, bottom in pixels; score: float[n], 1 where not given.
        track: int[n], of a tracker of one's own; where not given, ours is used.
        """
        if frame_index <= self._frame:
            raise DataError(f"frames must come in rising order, found {frame_index} after {self._frame}")
        refuse_no_image(frame)
        # The rules are those of a table of boxes: finite, whole numbers, one value each.
        given = np.asarray(boxes if len(np.shape(boxes)) == 2 else np.reshape(boxes, (-1, 4)), np.float32)
        table = Boxes(np.zeros(len(given), np.int32), np.full(len(given), frame_index), given, score, track=track)
        xyxy, scores = table.xyxy, table.score
        refuse_outside(table, frame.shape[1], frame.shape[0], self._name)
        if self._linker is None and len(xyxy):
            self._tracked = track is None
            self._linker = OnlineLinker(*link_rule(self._tracked, self._fps, self._rules))
        if len(xyxy) and self._tracked != (track is None):
            raise DataError("give the tracks of all boxes, or of none")
        self._frame = frame_index
        self._size = (frame.shape[1], frame.shape[0])
        if self._linker is None:
            return self._count
        owner = self._tracker.update(frame_index, xyxy, scores) if self._tracked else table.track
        numbers, _, ended = self._linker.update(frame_index, xyxy, owner)
        look = FrameLook(frame, self._mask)
        for box, number in zip(xyxy, numbers.tolist(), strict=True):
            if number < 0:
                continue
            span = self._going_on.setdefault(number, _Span(frame_index, frame_index + 1, 0))
            self._gatherer.see(number, span.box_count, frame_index, box, look)
            span.box_count += 1
            span.stop_frame = frame_index + 1
        if len(together := [number for number in numbers.tolist() if number >= 0]) > 1:
            self._tally.seen_together(together)
        changed = self._end(ended)  # also of those that began in this frame, where a track has two boxes in it
        if self._kept is not None and len(xyxy):
            self._kept.append(_Kept(frame_index, xyxy, scores, owner, numbers))
        if not self._follow:
            return self._count
        minimum = self._minimum()
        # A tracklet that has doubled may have changed its mind about whom it looks like.
        grown = [span for span in self._going_on.values() if span.box_count >= max(minimum, 2 * span.told)]
        if changed or grown:
            for span in grown:
                span.told = span.box_count
            self._recount(minimum)
        return self._count

    def finish(self, frame_count: int | None = None) -> CountReport:
        """End all tracklets; the report. frame_count: of the whole recording, where the last frames had no boxes."""
        self._end(self._linker.finish() if self._linker is not None else [])
        frames = max(self._frame + 1, frame_count or 0)
        minimum = least_boxes(frames) if self._min_frames is None else self._min_frames
        self._drop_short(minimum)
        width, height = self._size or (None, None)
        video = Video(self._name, frames, self._fps, width, height)
        remarks = [UNKNOWN_RATE] if self._fps is None else []
        if not self._tally.ended:
            remarks.append("No tracklet was long enough to be counted." if self._left_out else "There were no boxes.")
        if self._tally.condensed:
            remarks.append(
                f"{self._tally.condensed} tracklets were put together with others of their polyp to bound memory."
            )
        report = self._tally.report(
            video,
            made_by("live count", self._encoder, self._point, (), **self._settings(minimum)),
            left_out=self._left_out,
            seconds=self._gatherer.seconds,
            remarks=remarks,
        )
        self._count = report.count
        return report if self._kept is None else replace(report, **self._boxes())

    def _boxes(self) -> dict[str, Any]:
        """The boxes of all frames, and the row of each one's tracklet."""
        kept = self._kept or []
        if not kept:
            return {"boxes": Boxes.empty(), "tracklet": np.empty(0, np.int32)}
        frame = np.repeat([one.frame for one in kept], [len(one.xyxy) for one in kept])
        xyxy, score, track, number = (
            np.concatenate([getattr(one, name) for one in kept]) for name in ("xyxy", "score", "track", "number")
        )
        boxes = Boxes(np.zeros(len(frame), np.int32), frame, xyxy, score, track=track)
        return {"boxes": boxes, "tracklet": self._tally.rows_of(number, frame)}

    def _settings(self, minimum: int) -> dict[str, Any]:
        rules = asdict(self._rules or TrackRules()) if self._tracked else None
        return {"min_frames": minimum, "tracker": rules}

    def _minimum(self) -> int:
        return least_boxes(self._frame + 1) if self._min_frames is None else self._min_frames

    def _end(self, numbers: Sequence[int]) -> bool:
        """End tracklets; whether any of them counts."""
        minimum, kept = self._minimum(), False
        for number in numbers:
            span = self._going_on.pop(number)
            if span.box_count < minimum:
                self._left_out += 1
                self._gatherer.forget(number)
                self._tally.forget({number})
                continue
            gathered = self._gatherer.end(number, span.start_frame, span.stop_frame, span.box_count)
            self._tally.add(gathered, self._frame + 1)
            kept = True
        return kept

    def _drop_short(self, minimum: int) -> None:
        """Those that were long enough while the recording was short."""
        self._left_out += self._tally.forget_short(minimum)

    def _recount(self, minimum: int) -> None:
        self._drop_short(minimum)
        going_on = [
            Gathered(number, span.start_frame, span.stop_frame, span.box_count, vector[None])
            for number, span in self._going_on.items()
            if span.box_count >= minimum and (vector := self._gatherer.so_far(number)) is not None
        ]
        self._count = self._tally.count(self._frame + 1, going_on)


def link_rule(tracked: bool, fps: float | None, rules: TrackRules | None) -> tuple[int, float]:
    """(max_gap, min_iou) of linking. tracked: whether the tracks are those of our tracker.

    Tracks and polyps that come with the boxes are cut as in the paper: where a frame is missing, or the IoU with the
    box before is below 0.1. Our tracker has seen to both: it bridges the moments in which a detector misses a polyp,
    and follows by overlap with where a box is expected, so that a quick move of the camera is no break.
    """
    return ((rules or TrackRules()).lost_frames(fps) + 1, 0.0) if tracked else (1, 0.1)


def made_by(verb: str, encoder: Encoder, point: CountingPoint, sources: tuple[str, ...], **more: object) -> Provenance:
    """How a count came to be."""
    return Provenance.now(
        verb,
        sources,
        {
            "encoder": encoder.fingerprint,
            "engine": encoder.engine,
            "method": point.method,
            "parameters": dict(point.parameters),
            "cannot_link": point.cannot_link,
            "selected_on": point.selected_on,
            **more,
        },
    )
