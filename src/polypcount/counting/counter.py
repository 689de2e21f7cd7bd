"""Counting while the procedure goes on, frame by frame."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus import Boxes, Video, refuse_crowded
from polypcount.counting.assemble import assemble, describe
from polypcount.counting.bounded import BoundedEvidence
from polypcount.counting.decide import Decision, decide, group
from polypcount.counting.evidence import Evidence, EvidenceCollector, together_rows
from polypcount.counting.operating_points import operating_point
from polypcount.counting.pictures import DecodedFrame
from polypcount.counting.recording import refuse_outside
from polypcount.counting.remarks import UNKNOWN_RATE, UNMET, mask_remark
from polypcount.counting.result import CountReport
from polypcount.counting.scope import why_no_interval
from polypcount.counting.settings import CountSettings
from polypcount.counting.tracklets import least_boxes, link_rule
from polypcount.encoder import Encoder, load_encoder
from polypcount.errors import DataError
from polypcount.tracking import OnlineLinker, OnlineTracker, duration_frames
from polypcount.video import FrameMask
from polypcount.video.frames import Image, refuse_no_image
from polypcount.video.view_mask import find_view

MOST_TRACKLETS = 600
_LAST_FRAME_FOR_VIEW = 128


@dataclass
class _OpenSpan:
    """A tracklet that has not ended. counted_boxes: How many boxes it had when it last changed the count."""

    start_frame: int
    stop_frame: int
    box_count: int
    counted_boxes: int = 0


class Counter:
    """Counts the polyps of a recording that is still going on.

    Given the same boxes, it ends with the same polyps as `count` for the whole file. Memory is bounded, however long it
    runs: a tracklet that has ended leaves a few vectors and pictures. Beyond 600 tracklets, the two most similar
    tracklets of one polyp become one.

    Args:
        encoder: A loaded encoder or its folder; the bundled one by default.
        settings: As for `count`; `fps` and `name` are those of the stream. Settings for files have no meaning here.
        follow: Whether `update` returns the count so far. Without it, nothing is grouped before the end.
    """

    def __init__(
        self,
        encoder: Encoder | str | Path | None = None,
        *,
        settings: CountSettings | None = None,
        follow: bool = True,
    ) -> None:
        self._settings = settings or CountSettings()
        self._encoder = encoder if isinstance(encoder, Encoder) else load_encoder(encoder)
        self._point = operating_point(self._encoder, self._settings.method)
        self._collector = EvidenceCollector(self._encoder, pictures=self._settings.pictures, split=True)
        self._tracker = OnlineTracker(self._settings.fps, self._settings.tracker)
        self._linker: OnlineLinker | None = None
        self._tracked = False
        self._ended = BoundedEvidence(MOST_TRACKLETS, self._group)
        self._follow = follow
        self._open: dict[int, _OpenSpan] = {}
        self._left_out = 0
        self._boxes = 0  # of all tracklets, counted or not
        self._frame = -1
        self._frames_seen = 0
        self._frames_for_view: list[Image] = []
        self._mask = FrameMask(self._settings.mask) if self._settings.mask else None
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
        """Take in one frame; returns the count so far.

        Args:
            frame_index: From 0, rising; frames without boxes may be left out.
            frame: RGB uint8[height, width, 3].
            boxes: float[n, 4]: left, top, right, bottom in pixels.
            score: float[n]; 1 by default.
            track: int[n], from a tracker of your own; ours is used by default.
        """
        if frame_index <= self._frame:
            raise DataError(f"frames must come in rising order, found {frame_index} after {self._frame}")
        refuse_no_image(frame)
        xyxy = np.asarray(boxes if len(np.shape(boxes)) == 2 else np.reshape(boxes, (-1, 4)), np.float32)
        table = Boxes(np.zeros(len(xyxy), np.int32), np.full(len(xyxy), frame_index), xyxy, score, track=track)
        name = self._settings.name or "live"
        refuse_crowded(table, [name])
        refuse_outside(table, frame.shape[1], frame.shape[0], name)
        if self._linker is None and len(table):
            self._tracked = track is None
            self._linker = OnlineLinker(*link_rule(self._tracked, self._settings.fps, self._settings.tracker))
        if len(table) and self._tracked != (track is None):
            raise DataError("give the tracks of all boxes, or of none")
        self._frame = frame_index
        self._size = (frame.shape[1], frame.shape[0])
        self._look_for_view(frame)
        if self._linker is None:
            return self._count
        owner = self._tracker.update(frame_index, table.xyxy, table.score) if self._tracked else table.track
        numbers, _, ended = self._linker.update(frame_index, table.xyxy, owner)
        pixels = DecodedFrame(frame, self._mask)
        for box, number in zip(table.xyxy, numbers.tolist(), strict=True):
            if number < 0:
                continue
            span = self._open.setdefault(number, _OpenSpan(frame_index, frame_index + 1, 0))
            self._collector.see(number, span.box_count, frame_index, box, pixels)
            span.box_count += 1
            span.stop_frame = frame_index + 1
            self._boxes += 1
        self._ended.seen_together([number for number in numbers.tolist() if number >= 0])
        changed = self._end(ended)
        if self._follow:
            self._recount(changed)
        return self._count

    def finish(self, frame_count: int | None = None) -> CountReport:
        """End all tracklets and report. frame_count: Length of the recording, if its last frames had no boxes."""
        self._end(self._linker.finish() if self._linker is not None else [])
        frames, settings = max(self._frame + 1, frame_count or 0), self._settings
        minimum = settings.min_frames or least_boxes(frames)
        self._left_out += self._ended.drop_short(minimum)
        evidence = self._ended.evidence
        together = together_rows(evidence, list(self._ended.together))
        duration = duration_frames(frames, settings.fps)
        decision = decide(
            evidence,
            together,
            duration,
            self._point,
            settings.polyp_range,
            fps=settings.fps,
            tracked=self._tracked,
        )
        width, height = self._size or (None, None)
        parameters = {"min_frames": minimum, "tracker": asdict(settings.tracker) if self._tracked else None}
        remarks = [UNKNOWN_RATE] if settings.fps is None else []
        if self._ended.condensed:
            remarks.append(f"{self._ended.condensed} tracklets were joined with others of their polyp to bound memory.")
        if decision.unmet:
            remarks.append(decision.unmet)
        if settings.pictures:
            remarks.append(mask_remark(self._mask, settings.mask_border))
        report = assemble(
            Video(settings.name or "live", frames, settings.fps, width, height),
            evidence,
            together,
            decision,
            self._point,
            describe("live count", self._encoder, self._point, (), parameters),
            no_interval=self._no_interval(evidence, decision, frames),
            retired=self._ended.retired,
            polyp_range=settings.polyp_range,
            left_out=self._left_out,
            seconds=dict(self._collector.seconds),
            remarks=tuple(remarks),
            mask=self._mask,
        )
        self._count = report.count
        return report

    def _no_interval(self, evidence: Sequence[Evidence], decision: Decision, frames: int) -> str:
        """Why no interval can be given; empty if one can."""
        if not evidence and not self._ended.retired:
            return "No tracklet was long enough to be counted." if self._left_out else "There were no boxes."
        if decision.unmet:
            return UNMET
        seconds = None if self._settings.fps is None else frames / self._settings.fps
        short_share = 1 - sum(one.box_count for one in evidence) / self._boxes
        return why_no_interval(self._point, seconds, len(evidence) + self._ended.retired, short_share)

    def _look_for_view(self, frame: Image) -> None:
        """Look for the endoscope's view again after 1, 2, 4, ... 128 frames.

        The view holds every pixel that is bright in one of these frames. So it only grows, and the first pictures show
        too little rather than too much.
        """
        self._frames_seen += 1
        power_of_two = self._frames_seen & (self._frames_seen - 1) == 0
        if self._settings.mask_border and power_of_two and self._frames_seen <= _LAST_FRAME_FOR_VIEW:
            self._frames_for_view.append(frame.copy())
            view = find_view(self._frames_for_view)
            self._mask = FrameMask(self._settings.mask, view) if self._settings.mask or view is not None else None

    def _minimum(self) -> int:
        return self._settings.min_frames or least_boxes(self._frame + 1)

    def _end(self, numbers: Sequence[int]) -> bool:
        """End tracklets; returns whether any of them is counted."""
        minimum, counts, short = self._minimum(), False, set()
        for number in numbers:
            span = self._open.pop(number)
            if span.box_count < minimum:
                self._left_out += 1
                self._collector.forget(number)
                short.add(number)
                continue
            self._ended.add(self._collector.end(number, span.start_frame, span.stop_frame, span.box_count))
            counts = True
        if short:
            self._ended.forget(short)
        return counts

    def _recount(self, changed: bool) -> None:
        """Count anew if a tracklet has ended, or has doubled: it may now be closest to a different polyp."""
        minimum = self._minimum()
        grown = [span for span in self._open.values() if span.box_count >= max(minimum, 2 * span.counted_boxes)]
        if not changed and not grown:
            return
        for span in grown:
            span.counted_boxes = span.box_count
        self._left_out += self._ended.drop_short(minimum)
        open_evidence = [
            Evidence(number, 0, span.start_frame, span.stop_frame, span.box_count, vector[None])
            for number, span in self._open.items()
            if span.box_count >= minimum and (vector := self._collector.so_far(number)) is not None
        ]
        evidence = sorted([*self._ended.evidence, *open_evidence], key=lambda one: one.order)
        self._count = self._ended.retired + len(np.unique(self._group(evidence)))

    def _group(self, evidence: Sequence[Evidence]) -> NDArray[np.int32]:
        """The groups of tracklets so far."""
        if not evidence:
            return np.empty(0, np.int32)
        together = together_rows(evidence, list(self._ended.together))
        duration = duration_frames(self._frame + 1, self._settings.fps)
        return group(evidence, together, duration, self._point, self._settings.polyp_range)
