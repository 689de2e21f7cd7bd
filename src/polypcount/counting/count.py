"""From a recording to a report: the pipeline that counts."""

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from polypcount.corpus import Boxes, Corpus
from polypcount.counting.assemble import assemble, describe
from polypcount.counting.decide import Decision, decide
from polypcount.counting.evidence import EvidenceCollector, look_at, rows_of_boxes, together_rows
from polypcount.counting.operating_points import operating_point
from polypcount.counting.recording import Recording, find_mask, open_recording
from polypcount.counting.result import CountReport
from polypcount.counting.settings import CountSettings
from polypcount.counting.tracklets import TrackedBoxes, track
from polypcount.detection import Detector, detect_boxes, load_detector
from polypcount.encoder import Encoder, load_encoder
from polypcount.errors import DataError
from polypcount.progress import Progress, no_progress
from polypcount.tracking import duration_frames
from polypcount.video import FrameMask

_MUCH = 1 / 3  # share of the boxes that is worth a warning
UNKNOWN_RATE = "The frame rate is not known, so times are given in frames."


def count(
    source: str | os.PathLike[str],
    boxes: str | os.PathLike[str] | Corpus | Boxes | None = None,
    *,
    encoder: Encoder | str | Path | None = None,
    detector: Detector | str | Path | None = None,
    settings: CountSettings | None = None,
    progress: Progress = no_progress,
) -> CountReport:
    """Count the distinct polyps of a recording.

    Args:
        source: A video file, a folder of images, a DICOM file, or a corpus folder.
        boxes: Boxes in any form that `open_recording` takes; a corpus folder has its own.
        encoder: A loaded encoder or its folder; the bundled one by default.
        detector: A loaded detector or its ONNX file, which finds the boxes.
        settings: Everything else.
        progress: Counts frames.
    """
    settings, clock = settings or CountSettings(), Stopwatch()
    encoder = encoder if isinstance(encoder, Encoder) else load_encoder(encoder)
    point = operating_point(encoder, settings.method)  # OperatingPoint: how tracklets are grouped
    recording = open_recording(source, boxes, settings)  # Recording: frames, and boxes if there are any
    clock.lap("open")
    if detector is not None:
        recording, detector = _with_detector(recording, detector, boxes, progress)
        clock.lap("detect")
    if recording.boxes is None:
        raise DataError(f"{source} comes without boxes: give boxes or a detector", mend=("boxes", "detector"))
    mask = find_mask(recording, settings)  # FrameMask | None: what pictures do not show
    clock.lap("mask")
    tracked = track(recording.boxes, recording.video, settings)  # TrackedBoxes: boxes and their tracklets
    clock.lap("track")
    collector = EvidenceCollector(encoder, pictures=settings.pictures, split=not tracked.named)
    evidence = look_at(recording, tracked, collector, mask, progress)  # list[Evidence]: one for each counted tracklet
    clock.lap("decode", apart=collector.seconds)
    together = together_rows(evidence, tracked.together())  # int64[m, 2]: tracklets that cannot be one polyp
    duration = duration_frames(recording.video.frame_count, recording.video.fps)  # frames
    decision = decide(evidence, together, duration, point, settings.polyp_range)  # Decision: groups, interval, doubts
    clock.lap("group")
    return assemble(
        recording.video,
        evidence,
        together,
        decision,
        point,
        describe("count", encoder, point, recording.sources, _parameters(tracked, settings, detector)),
        polyp_range=settings.polyp_range,
        boxes=tracked.boxes,
        tracklet=rows_of_boxes(evidence, tracked.tracklets.label, tracked.boxes.frame),
        left_out=len(tracked.tracklets) - len({one.number for one in evidence}),
        seconds=clock.seconds,
        remarks=_remarks(recording, tracked, decision, mask, settings),
        mask=mask,
        times=recording.times,
    )


class Stopwatch:
    """Time spent in each step.

    Attributes:
        seconds: By name of the step.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, step: str, apart: Mapping[str, float] | None = None) -> None:
        """Note the time of a step that has ended. apart: Parts of it that are shown as separate steps."""
        now, parts = time.perf_counter(), apart or {}
        self.seconds |= {step: now - self._last - sum(parts.values()), **parts}
        self._last = now


def mask_remark(mask: FrameMask | None, mask_border: bool) -> str:
    """A remark on what is blacked out in the pictures, for people who pass the report on."""
    if mask is not None and mask.view is not None:
        rectangles = ", and so were the given rectangles" if mask.rectangles else ""
        return f"In pictures, everything outside the endoscope's view was blacked out{rectangles}."
    if mask_border:
        return "No dark border around the endoscope's view was found: look for burned-in text before passing this on."
    if mask is None:
        return "In pictures, the border was left as it is."
    return "In pictures, only the given rectangles were blacked out."


def _with_detector(
    recording: Recording, detector: Detector | str | Path, boxes: object, progress: Progress
) -> tuple[Recording, Detector]:
    """The recording with the boxes that a detector finds in all its frames."""
    if boxes is not None:
        raise DataError("give boxes or a detector, not both", mend=("boxes", "detector"))
    detector = detector if isinstance(detector, Detector) else load_detector(detector)
    detected, read = detect_boxes(recording.source, detector, progress=progress)
    return replace(recording, boxes=detected, unread_frames=recording.video.frame_count - read), detector


def _parameters(tracked: TrackedBoxes, settings: CountSettings, detector: object) -> dict[str, object]:
    """Everything else that decides the count, for its provenance."""
    parameters: dict[str, object] = {
        "min_frames": tracked.min_frames,
        "tracker": asdict(settings.tracker) if tracked.tracked else None,
    }
    if isinstance(detector, Detector):
        parameters["detector"] = detector.description
    if settings.polyp_range is not None:
        parameters["polyp_range"] = list(settings.polyp_range)
    return parameters


def _left_out(tracked: TrackedBoxes) -> list[str]:
    """How much was too short to be counted."""
    short = tracked.tracklets.box_count < tracked.min_frames
    if not short.any():
        return []
    share = float(tracked.tracklets.box_count[short].sum() / tracked.tracklets.box_count.sum())
    warning = "Much was left out: " if share > _MUCH else ""
    return [
        f"{warning}{int(short.sum())} of {len(short)} tracklets, with {share:.0%} of the boxes, have fewer than "
        f"{tracked.min_frames} boxes and were not counted."
    ]


def _remarks(
    recording: Recording,
    tracked: TrackedBoxes,
    decision: Decision,
    mask: FrameMask | None,
    settings: CountSettings,
) -> tuple[str, ...]:
    """The remarks of the report: what a reader should know."""
    boxes, remarks = tracked.boxes, []
    ownerless = int((tracked.tracklets.label < 0).sum())
    if not len(boxes):
        remarks.append("There are no boxes, so there is nothing to count.")
    elif tracked.tracked and ownerless == len(boxes):
        remarks.append(
            f"No box has the score of {settings.tracker.confidence:g} that begins a track, so nothing was counted; the "
            f"highest score is {boxes.score.max():.2g}."
        )
    else:
        remarks += _left_out(tracked)
    if tracked.tracked:
        remarks.append(
            f"The boxes came without tracks and were tracked; {ownerless:,} of {len(boxes):,} belong to no track."
        )
    elif ownerless:
        remarks.append(
            f"{ownerless:,} of {len(boxes):,} boxes have neither a polyp nor a track, unlike the others, and were not "
            "counted."
        )
    if recording.unread_frames:
        remarks.append(f"{recording.unread_frames:,} of {recording.video.frame_count:,} frames could not be read.")
    if recording.video.fps is None:
        remarks.append(UNKNOWN_RATE)
    if decision.unmet:
        remarks.append(decision.unmet)
    if settings.pictures:
        remarks.append(mask_remark(mask, settings.mask_border))
    return tuple(remarks)
