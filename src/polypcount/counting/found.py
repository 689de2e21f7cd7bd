"""Boxes, tracklets and evidence of a recording in one pass over its frames, with a detector."""

import contextlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Boxes
from polypcount.counting.evidence import Evidence, EvidenceCollector, pixels_of
from polypcount.counting.looks import LookFigures, Looks, SettledFrame, look_step
from polypcount.counting.open_tracklets import OpenTracklets
from polypcount.counting.recording import Recording
from polypcount.counting.result import SetAsideTracklet
from polypcount.counting.settings import CountSettings
from polypcount.counting.tracklets import TrackedBoxes, least_boxes, link_rule
from polypcount.detection import Detector
from polypcount.errors import FileError
from polypcount.progress import Progress, no_progress
from polypcount.tracking import TrackRules, link_tracklets
from polypcount.video import FrameMask, FrameView, views
from polypcount.video.ahead import ahead
from polypcount.video.frame_folder import FrameFolder


@dataclass(frozen=True, eq=False)
class FoundTracklets:
    """The tracklets of a recording, and what was seen of them.

    Attributes:
        tracked: The boxes, with tracks, and their tracklets.
        evidence: Of each tracklet that is counted, in time order.
        set_aside: Tracklets that are perhaps no polyp, in time order.
        looks: How a detector looked at the recording; all 0 for boxes from elsewhere.
    """

    tracked: TrackedBoxes
    evidence: list[Evidence]
    set_aside: tuple[SetAsideTracklet, ...] = ()
    looks: LookFigures = field(default_factory=LookFigures)


def find_tracklets(
    recording: Recording,
    detector: Detector,
    collector: EvidenceCollector,
    mask: FrameMask | None,
    settings: CountSettings,
    progress: Progress = no_progress,
) -> FoundTracklets:
    """Find, track and look at the boxes of a recording in one pass over its frames.

    Frames that cannot be read are left out. Memory does not grow with the recording, except for the table of boxes:
    few frames are held, and of each tracklet that goes on at most 32 crops.

    Raises:
        FileError: No frame can be read.
    """
    fps, rules = recording.video.fps, tracker_rules(settings, detector)
    stills = isinstance(recording.source, FrameFolder) and fps is None
    step = 1 if stills else look_step(fps, len(recording.part))
    looks = Looks(detector, fps, rules, step, recording.part.start)
    minimum = settings.min_frames or least_boxes(len(recording.part))
    link = link_rule(True, fps, rules)
    tracklets = OpenTracklets(collector, link, detector.false_alarm_rule)
    columns = _BoxColumns()
    judged: list[list[Evidence] | SetAsideTracklet | None] = []
    for settled in _settled_frames(recording, looks, detector, progress):
        columns.add(settled)
        pixels = pixels_of(recording.source, settled.frame, settled.view, mask)
        _, ended = tracklets.update(settled.frame, settled.xyxy, settled.track, pixels, settled, minimum)
        judged += [tracklets.judge(one, minimum) for one in ended]
    judged += [tracklets.judge(one, minimum) for one in tracklets.finish()]
    boxes, detected = columns.table()
    # Parts of a tracklet that was split may be too short.
    evidence = [part for one in judged if isinstance(one, list) for part in one if part.box_count >= minimum]
    set_aside = [one for one in judged if isinstance(one, SetAsideTracklet)]
    return FoundTracklets(
        TrackedBoxes(boxes, True, link_tracklets(boxes, *link), minimum, detected),
        sorted(evidence, key=lambda one: one.order),
        tuple(sorted(set_aside, key=lambda one: (one.start_frame, one.stop_frame))),
        looks.figures,
    )


def tracker_rules(settings: CountSettings, detector: Detector | None) -> TrackRules:
    """The rules for tracking boxes. If the settings give none, the threshold of the detector begins a track."""
    if detector is None or "tracker" in settings.model_fields_set:
        return settings.tracker
    low = min(settings.tracker.low_confidence, detector.threshold)
    return replace(settings.tracker, confidence=detector.threshold, low_confidence=low)


def _settled_frames(
    recording: Recording, looks: Looks, detector: Detector, progress: Progress
) -> Iterator[SettledFrame]:
    """The frames with their final boxes. A thread decodes ahead."""
    part, problem = recording.part, None
    with contextlib.closing(ahead(_prepared(recording, looks.figures.step, detector))) as frames:
        try:
            for index, view in frames:
                try:
                    final = looks.update(index, view)
                except FileError as unreadable:  # a damaged image; the next ones may be good
                    problem = unreadable
                    continue
                yield from final
                progress(index - part.start + 1, len(part))
        except FileError as unreadable:  # raised after all frames that can be read
            problem = unreadable
    if problem is not None and not looks.figures.frames:
        raise problem
    yield from looks.finish()


def _prepared(recording: Recording, step: int, detector: Detector) -> Iterator[tuple[int, FrameView]]:
    """The frames; those that the detector looks at are already resized for it, in the thread that decodes."""
    for index, view in views(recording.source, np.array(recording.part, np.int64)):
        if (index - recording.part.start) % step == 0:
            with contextlib.suppress(FileError):  # raised again when the detector looks
                view.scaled(*detector.view_size(view.width, view.height))
        yield index, view


class _BoxColumns:
    """A growing table of boxes."""

    def __init__(self) -> None:
        self._frame, self._track, self._detected = array("i"), array("i"), array("b")
        self._boxes = array("f")  # positions and score, five numbers of each box

    def add(self, settled: SettledFrame) -> None:
        self._frame.extend([settled.frame] * len(settled.track))
        self._track.frombytes(settled.track.astype(np.int32).tobytes())
        self._detected.frombytes(settled.detected.astype(np.int8).tobytes())
        self._boxes.frombytes(np.column_stack([settled.xyxy, settled.score]).astype(np.float32).tobytes())

    def table(self) -> tuple[Boxes, NDArray[np.bool_]]:
        """The boxes, by frame, and whether the detector gave each of them."""
        boxes = np.array(self._boxes, np.float32).reshape(-1, 5)
        video = np.zeros(len(boxes), np.int32)
        frame, track = np.array(self._frame, np.int32), np.array(self._track, np.int32)
        return Boxes(video, frame, boxes[:, :4], boxes[:, 4], track=track), np.array(self._detected, bool)
