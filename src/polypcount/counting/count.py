"""From a recording to a report: the pipeline that counts."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Boxes, Corpus
from polypcount.counting.assemble import assemble, describe
from polypcount.counting.basis import CountBasis
from polypcount.counting.detected import detector_parameters
from polypcount.counting.evidence import Evidence, EvidenceCollector, look_at, rows_of_boxes, together_rows
from polypcount.counting.found import FoundTracklets, find_tracklets, tracker_rules
from polypcount.counting.known_pairs import KnownPairs
from polypcount.counting.operating_points import operating_point
from polypcount.counting.recording import Recording, find_mask, open_recording
from polypcount.counting.remarks import no_interval, remarks
from polypcount.counting.result import CountReport
from polypcount.counting.settings import CountSettings
from polypcount.counting.tracklets import TrackedBoxes, track
from polypcount.detection import Detector, load_detector
from polypcount.detection.detector_file import BUNDLED
from polypcount.encoder import Encoder, load_encoder
from polypcount.errors import DataError
from polypcount.progress import Progress, no_progress
from polypcount.tracking import duration_frames


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
        detector: What finds the boxes: a loaded detector, its ONNX file, the folder of a trained one, or "bundled".
            The default is the bundled one for a recording without boxes, and none for one that has boxes.
        settings: Everything else.
        progress: Counts frames.
    """
    settings, clock = settings or CountSettings(), Stopwatch()
    encoder = encoder if isinstance(encoder, Encoder) else load_encoder(encoder)
    point = operating_point(encoder, settings.method)  # OperatingPoint: how tracklets are grouped
    recording = open_recording(source, boxes, settings)  # Recording: frames, and boxes if there are any
    detector = choose_detector(recording, boxes, detector)  # Detector | None: finds the boxes where there are none
    clock.lap("open")
    mask = find_mask(recording, settings)  # FrameMask | None: what pictures do not show
    clock.lap("mask")
    if detector is None:
        assert recording.boxes is not None
        tracked = track(recording.boxes, recording.video, settings, len(recording.part))  # TrackedBoxes
        clock.lap("track")
        collector = EvidenceCollector(encoder, pictures=settings.pictures, split=not tracked.named_polyps)
        found = FoundTracklets(tracked, look_at(recording, tracked, collector, mask, progress))
        clock.lap("decode", apart=collector.seconds)
    else:
        collector = EvidenceCollector(encoder, pictures=settings.pictures, split=True)
        found = find_tracklets(recording, detector, collector, mask, settings, progress)  # in one pass over the frames
        recording = replace(recording, unread_frames=len(recording.part) - found.looks.frames)
        clock.lap("decode", apart={"detect": found.looks.seconds, **collector.seconds})
    tracked, evidence = found.tracked, found.evidence  # TrackedBoxes, list[Evidence]: one for each counted tracklet
    together = together_rows(evidence, tracked.together())  # int64[m, 2]: tracklets that cannot be one polyp
    known = kept_polyps(evidence, tracked, together) if settings.keep_polyps else None  # KnownPairs | None
    duration = duration_frames(len(recording.part), recording.video.fps)  # frames
    basis = CountBasis(
        point,
        evidence,
        together,
        duration,
        recording.video.fps,
        tracked.tracked,
        settings.polyp_range,
        known or KnownPairs(),
        tracked.tracklets.label,
        None if settings.anonymous else os.path.abspath(source),
        settings.video,
    )
    decision = basis.decide()  # Decision: groups, doubts
    clock.lap("group")
    return assemble(
        recording.video,
        evidence,
        together,
        decision,
        point,
        describe("count", encoder, point, recording.sources, _parameters(recording, found, settings, detector)),
        detector=detector,
        looks=found.looks,
        no_interval=no_interval(recording, found, decision, point, settings),
        polyp_range=settings.polyp_range,
        boxes=tracked.boxes,
        detected=tracked.detected,
        tracklet=rows_of_boxes(evidence, tracked.tracklets.label, tracked.boxes.frame),
        set_aside=found.set_aside,
        left_out=len(tracked.tracklets) - len({one.number for one in evidence}) - len(found.set_aside),
        named_polyps=tracked.named_polyps,
        part=recording.part,
        seconds=clock.seconds,
        remarks=remarks(recording, found, decision, mask, settings),
        mask=mask,
        times=recording.times,
        basis=basis,
    )


def choose_detector(recording: Recording, boxes: object, detector: Detector | str | Path | None) -> Detector | None:
    """The detector that finds the boxes: the given one, or the bundled one where there are no boxes."""
    if detector is None:
        return None if recording.boxes is not None else load_detector(BUNDLED)
    if boxes is not None:
        raise DataError("give boxes or a detector, not both", mend=("boxes", "detector"))
    return detector if isinstance(detector, Detector) else load_detector(detector)


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


def kept_polyps(evidence: Sequence[Evidence], tracked: TrackedBoxes, together: NDArray[np.int64]) -> KnownPairs:
    """The pairs of tracklets that are one polyp, or two, by the polyps that came with the boxes."""
    if not tracked.named_polyps:
        raise DataError("the boxes name no polyps that could be kept", mend="keep_polyps")
    return KnownPairs.of_polyps(tracked.tracklets.polyp[[one.number for one in evidence]], together)


def _parameters(
    recording: Recording, found: FoundTracklets, settings: CountSettings, detector: Detector | None
) -> dict[str, object]:
    """Everything else that decides the count, for its provenance."""
    parameters: dict[str, object] = {
        "min_frames": found.tracked.min_frames,
        "tracker": asdict(tracker_rules(settings, detector)) if found.tracked.tracked else None,
    }
    if detector is not None:
        parameters |= detector_parameters(detector, found.looks.step)
    if settings.polyp_range is not None:
        parameters["polyp_range"] = list(settings.polyp_range)
    if settings.keep_polyps:
        parameters["keep_polyps"] = True
    if len(recording.part) < recording.video.frame_count:
        parameters["frames"] = [recording.part.start, recording.part.stop]
    return parameters
