"""Counting while the procedure goes on, frame by frame."""

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus import Boxes, Video, refuse_crowded
from polypcount.counting.assemble import assemble, describe
from polypcount.counting.bounded import BoundedEvidence
from polypcount.counting.decide import Decision, decide, group
from polypcount.counting.detected import detector_parameters
from polypcount.counting.evidence import Evidence, EvidenceCollector, together_rows
from polypcount.counting.found import tracker_rules
from polypcount.counting.looks import Looks, SettledFrame, look_step
from polypcount.counting.open_tracklets import OpenTracklet, OpenTracklets
from polypcount.counting.operating_points import operating_point
from polypcount.counting.pictures import DecodedFrame
from polypcount.counting.recording import refuse_outside
from polypcount.counting.remarks import (
    UNKNOWN_RATE,
    UNMET,
    looks_remark,
    mask_remark,
    set_aside_remarks,
    why_nothing_found,
)
from polypcount.counting.result import CountReport, SetAsideTracklet
from polypcount.counting.scope import why_no_interval
from polypcount.counting.settings import CountSettings
from polypcount.counting.tracklets import least_boxes, link_rule
from polypcount.detection import Detector, load_detector
from polypcount.encoder import Encoder, load_encoder
from polypcount.errors import DataError
from polypcount.tracking import OnlineTracker, duration_frames
from polypcount.video import FrameMask, FrameView
from polypcount.video.frames import Image, refuse_no_image
from polypcount.video.view_mask import find_view

MOST_TRACKLETS = 600
MOST_SET_ASIDE = 200  # tracklets that are perhaps no polyp; of a longer stream, the last ones
_LAST_FRAME_FOR_VIEW = 128


class Counter:
    """Counts the polyps of a recording that is still going on.

    Given the same boxes or detector, it ends with the same polyps as `count` for the whole file. Memory is bounded,
    however long it runs: a tracklet that has ended leaves a few vectors and pictures. Beyond 600 tracklets, the two
    most similar tracklets of one polyp become one. Of tracklets that are perhaps no polyp, the last 200 are kept.

    Args:
        encoder: A loaded encoder or its folder; the bundled one by default.
        detector: Finds the boxes, as for `count`: a loaded detector, its file, or "bundled". It looks at frames 0, k,
            2k, ...; see `look_step`. Boxes in the frames between are interpolated, so the count is up to
            `lost_seconds` behind the frames. None if every frame comes with its boxes.
        settings: As for `count`; `fps` and `name` are those of the stream. Settings for files have no meaning here.
        follow: Whether `update` returns the count so far. Without it, nothing is grouped before the end.
    """

    def __init__(
        self,
        encoder: Encoder | str | Path | None = None,
        *,
        detector: Detector | str | Path | None = None,
        settings: CountSettings | None = None,
        follow: bool = True,
    ) -> None:
        self._settings = settings or CountSettings()
        self._encoder = encoder if isinstance(encoder, Encoder) else load_encoder(encoder)
        self._point = operating_point(self._encoder, self._settings.method)
        self._collector = EvidenceCollector(self._encoder, pictures=self._settings.pictures, split=True)
        self._detector = detector if isinstance(detector, Detector | None) else load_detector(detector)
        self._rules = tracker_rules(self._settings, self._detector)
        self._looks: Looks | None = None
        self._tracker = OnlineTracker(self._settings.fps, self._rules)
        self._tracklets: OpenTracklets | None = None
        self._tracked = False
        if self._detector is not None:
            fps = self._settings.fps
            self._looks = Looks(self._detector, fps, self._rules, look_step(fps))
            self._begin(tracked=True)
        self._ended = BoundedEvidence(MOST_TRACKLETS, self._group)
        self._set_aside: deque[SetAsideTracklet] = deque(maxlen=MOST_SET_ASIDE)
        self._follow = follow
        self._left_out = 0
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
        boxes: ArrayLike | None = None,
        *,
        score: ArrayLike | None = None,
        track: Sequence[int] | NDArray[np.integer] | None = None,
    ) -> int:
        """Take in one frame; returns the count so far.

        Args:
            frame_index: From 0, rising; frames without boxes may be left out.
            frame: RGB uint8[height, width, 3].
            boxes: float[n, 4]: left, top, right, bottom in pixels. None if the detector finds them.
            score: float[n]; 1 by default.
            track: int[n], from a tracker of your own; ours is used by default.
        """
        if frame_index <= self._frame:
            raise DataError(f"frames must come in rising order, found {frame_index} after {self._frame}")
        refuse_no_image(frame)
        if self._looks is not None:
            if boxes is not None or score is not None or track is not None:
                raise DataError("give boxes or a detector, not both", mend=("boxes", "detector"))
            self._note(frame_index, frame)
            # A frame may be held until the detector has looked again, and the caller may write into it before that.
            for settled in self._looks.update(frame_index, FrameView.of(frame.copy())):
                self._see(settled.frame, settled.xyxy, settled.track, settled.view, settled)
            return self._count
        if boxes is None:
            raise DataError("give the boxes of each frame, or a detector", mend=("boxes", "detector"))
        xyxy = np.asarray(boxes if len(np.shape(boxes)) == 2 else np.reshape(boxes, (-1, 4)), np.float32)
        table = Boxes(np.zeros(len(xyxy), np.int32), np.full(len(xyxy), frame_index), xyxy, score, track=track)
        name = self._settings.name or "live"
        refuse_crowded(table, [name])
        refuse_outside(table, frame.shape[1], frame.shape[0], name)
        if self._tracklets is None and len(table):
            self._begin(tracked=track is None)
        if len(table) and self._tracked != (track is None):
            raise DataError("give the tracks of all boxes, or of none")
        self._note(frame_index, frame)
        if self._tracklets is not None:
            owner = self._tracker.update(frame_index, table.xyxy, table.score) if self._tracked else table.track
            self._see(frame_index, table.xyxy, owner, FrameView.of(frame))
        return self._count

    def finish(self, frame_count: int | None = None) -> CountReport:
        """End all tracklets and report. frame_count: Length of the recording, if its last frames had no boxes."""
        for settled in self._looks.finish() if self._looks is not None else []:
            self._see(settled.frame, settled.xyxy, settled.track, settled.view, settled)
        self._end(self._tracklets.finish() if self._tracklets is not None else [])
        frames, settings = max(self._frame + 1, frame_count or 0), self._settings
        minimum = settings.min_frames or least_boxes(frames)
        set_aside = sorted(
            (one for one in self._set_aside if one.box_count >= minimum),
            key=lambda one: (one.start_frame, one.stop_frame),
        )
        self._left_out += self._ended.drop_short(minimum) + len(self._set_aside) - len(set_aside)
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
        parameters = {"min_frames": minimum, "tracker": asdict(self._rules) if self._tracked else None}
        remarks = set_aside_remarks(len(set_aside))
        if self._detector is not None and self._looks is not None:
            parameters |= detector_parameters(self._detector, self._looks.figures.step)
            remarks.append(looks_remark(self._looks.figures))
        if settings.fps is None:
            remarks.append(UNKNOWN_RATE)
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
            detector=self._detector,
            looks=None if self._looks is None else self._looks.figures,
            no_interval=self._no_interval(evidence, set_aside, decision, frames, minimum),
            set_aside=tuple(set_aside),
            retired=self._ended.retired,
            polyp_range=settings.polyp_range,
            left_out=self._left_out,
            seconds=self._seconds(),
            remarks=tuple(remarks),
            mask=self._mask,
        )
        self._count = report.count
        return report

    def _begin(self, *, tracked: bool) -> None:
        """Begin to link boxes. tracked: Whether our tracker makes their tracks."""
        self._tracked = tracked
        rule = None if self._detector is None else self._detector.false_alarm_rule
        self._tracklets = OpenTracklets(self._collector, link_rule(tracked, self._settings.fps, self._rules), rule)

    def _note(self, frame_index: int, frame: Image) -> None:
        self._frame = frame_index
        self._size = (frame.shape[1], frame.shape[0])
        self._look_for_view(frame)

    def _see(
        self,
        frame: int,
        xyxy: NDArray[np.float32],
        track: NDArray[np.int32],
        view: FrameView,
        settled: SettledFrame | None = None,
    ) -> None:
        """Take in the boxes of a frame and their tracks."""
        assert self._tracklets is not None
        seen, ended = self._tracklets.update(
            frame, xyxy, track, DecodedFrame(view, self._mask), settled, self._minimum()
        )
        self._ended.seen_together(seen)
        changed = self._end(ended)
        if self._follow:
            self._recount(changed)

    def _seconds(self) -> dict[str, float]:
        detecting = {} if self._looks is None else {"detect": self._looks.figures.seconds}
        return {**detecting, **self._collector.seconds}

    def _no_interval(
        self,
        evidence: Sequence[Evidence],
        set_aside: Sequence[SetAsideTracklet],
        decision: Decision,
        frames: int,
        minimum: int,
    ) -> str:
        """Why no interval can be given; empty if one can."""
        seconds = None if self._settings.fps is None else frames / self._settings.fps
        if not evidence and not self._ended.retired:
            if self._looks is not None and self._tracklets is not None:
                begun, longest = self._tracklets.begun, self._tracklets.longest
                return why_nothing_found(self._looks.figures, begun, longest, minimum, seconds)
            return "No tracklet was long enough to be counted." if self._left_out else "There were no boxes."
        if decision.unmet:
            return UNMET
        all_boxes = self._tracklets.box_count if self._tracklets is not None else 0
        long_enough = sum(one.box_count for one in evidence) + sum(one.box_count for one in set_aside)
        short_share = 1 - long_enough / max(all_boxes, 1)
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

    def _end(self, ended: Sequence[OpenTracklet]) -> bool:
        """End tracklets; returns whether any of them is counted."""
        minimum, counts, dropped = self._minimum(), False, set()
        for one in ended:
            assert self._tracklets is not None
            judged = self._tracklets.judge(one, minimum)
            if isinstance(judged, list):
                self._ended.add(judged)
                counts = True
                continue
            dropped.add(one.number)
            if judged is None:
                self._left_out += 1
            else:
                self._set_aside.append(judged)
        if dropped:
            self._ended.forget(dropped)
        return counts

    def _recount(self, changed: bool) -> None:
        """Count anew if a tracklet has ended, or has doubled: it may now be closest to a different polyp."""
        assert self._tracklets is not None
        minimum, tracklets = self._minimum(), self._tracklets.open.values()
        grown = [one for one in tracklets if one.box_count >= max(minimum, 2 * one.counted_boxes)]
        if not changed and not grown:
            return
        for one in grown:
            one.counted_boxes = one.box_count
        self._left_out += self._ended.drop_short(minimum)
        open_evidence = [
            Evidence(one.number, 0, one.start_frame, one.stop_frame, one.box_count, vector[None])
            for one in tracklets
            if one.box_count >= minimum
            and self._tracklets.is_likely(one)
            and (vector := self._collector.so_far(one.number)) is not None
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
