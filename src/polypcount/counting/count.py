"""From a recording and its boxes to a report, in one pass over the frames that are needed."""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Boxes, Corpus, Tracklets, tracklets_together
from polypcount.counting.counter import UNKNOWN_RATE, Counter, link_rule, made_by
from polypcount.counting.detector import Detector, detections
from polypcount.counting.gather import Gatherer, step_for
from polypcount.counting.inputs import Procedure, read_procedure
from polypcount.counting.looks import DrawnLook, FrameLook, Look, Mask
from polypcount.counting.point import CountingPoint
from polypcount.counting.result import CountReport
from polypcount.counting.tally import Tally, least_boxes
from polypcount.encoder import Encoder, load_encoder
from polypcount.errors import FileError
from polypcount.progress import Progress, no_progress
from polypcount.tracking import TrackRules, link_tracklets, track_boxes
from polypcount.video import FrameSource
from polypcount.video.ahead import ahead
from polypcount.video.frames import Image
from polypcount.video.opening import CropSource


def count(
    source: str | os.PathLike[str],
    boxes: str | os.PathLike[str] | Corpus | Boxes | None = None,
    *,
    encoder: Encoder | str | Path | None = None,
    method: CountingPoint | None = None,
    min_frames: int | None = None,
    rules: TrackRules | None = None,
    pictures: bool = True,
    mask: Mask | None = None,
    progress: Progress = no_progress,
    **reading: Any,
) -> CountReport:
    """Count the distinct polyps of a recording.

    source: a video file, a folder of images, a DICOM file, or a corpus folder.
    boxes: a file or folder of boxes in any format, a corpus, or a table; none for a corpus folder, which has its own.
        Boxes with polyps or tracks are taken as they are; others are tracked first, see `TrackRules`.
    encoder: a loaded one, or its folder; the one that comes with the package, where not given.
    method: the operating point; that of the encoder, where not given.
    min_frames: boxes that a tracklet must have to be counted; see `least_boxes`, where not given.
    pictures: whether the report will show any. mask: what of a frame is not to be shown.
    progress: counts frames that are looked at. reading: see `read_procedure`.
    """
    started = time.perf_counter()
    model = encoder if isinstance(encoder, Encoder) else load_encoder(encoder)
    point = method or CountingPoint.of(model)
    procedure = read_procedure(source, boxes, **reading)
    found = count_procedure(
        procedure, model, point, min_frames=min_frames, rules=rules, pictures=pictures, mask=mask, progress=progress
    )
    return replace(found, seconds={**found.seconds, "all": time.perf_counter() - started})


def count_procedure(
    procedure: Procedure,
    encoder: Encoder,
    point: CountingPoint,
    *,
    min_frames: int | None = None,
    rules: TrackRules | None = None,
    pictures: bool = True,
    mask: Mask | None = None,
    progress: Progress = no_progress,
) -> CountReport:
    """The same for a recording that is open."""
    seen = look_at(
        procedure, encoder, point, min_frames=min_frames, rules=rules, pictures=pictures, mask=mask, progress=progress
    )
    started = time.perf_counter()
    tracklets, tally = seen.tracklets, seen.tally
    report = tally.report(
        procedure.video,
        made_by(
            "count",
            encoder,
            point,
            procedure.sources,
            min_frames=seen.min_frames,
            tracker=asdict(rules or TrackRules()) if seen.tracked else None,
        ),
        left_out=seen.left_out,
        remarks=_remarks(procedure, seen),
    )
    seconds = {**seen.seconds, "group": time.perf_counter() - started}
    return replace(report, boxes=seen.boxes, tracklet=tally.rows_of(tracklets.label, seen.boxes.frame), seconds=seconds)


@dataclass(frozen=True, eq=False)
class LookedAt:
    """A procedure of which every tracklet that counts was looked at.

    boxes: with tracks, where they had neither polyps nor tracks; tracked says so. tracklets: all of them.
    tally: of those with at least `min_frames` boxes; left_out: how many have fewer. seconds: where the time went.
    """

    boxes: Boxes
    tracked: bool
    tracklets: Tracklets
    tally: Tally
    min_frames: int
    left_out: int
    seconds: dict[str, float]


def look_at(
    procedure: Procedure,
    encoder: Encoder,
    point: CountingPoint,
    *,
    min_frames: int | None = None,
    rules: TrackRules | None = None,
    pictures: bool = True,
    mask: Mask | None = None,
    progress: Progress = no_progress,
) -> LookedAt:
    """Link the boxes, and make the vectors of the tracklets: all of `count` but the grouping."""
    started = time.perf_counter()
    boxes = procedure.boxes
    tracked = len(boxes) > 0 and not ((boxes.polyp >= 0) | (boxes.track >= 0)).any()
    if tracked:
        boxes = track_boxes(boxes, [procedure.video.fps], rules or TrackRules())
    tracklets = link_tracklets(boxes, *link_rule(tracked, procedure.video.fps, rules))
    minimum = least_boxes(procedure.video.frame_count) if min_frames is None else min_frames
    kept = np.flatnonzero(tracklets.box_count >= minimum)
    # Whoever named polyps has looked; a tracker may have gone over from one to another.
    gatherer = Gatherer(encoder, pictures=pictures, split=not (boxes.polyp >= 0).any())
    tally = Tally(point, procedure.video.fps)
    linked = time.perf_counter()
    _gather(procedure.source, boxes, tracklets, kept, gatherer, tally, mask, progress)
    for pair in tracklets_together(boxes, tracklets).tolist():
        tally.seen_together(pair)
    left_out = len(tracklets) - len(kept) + tally.forget_short(int(minimum))
    decoding = time.perf_counter() - linked - sum(gatherer.seconds.values())
    seconds = {"track": linked - started, "decode": decoding, **gatherer.seconds}
    return LookedAt(boxes, tracked, tracklets, tally, int(minimum), left_out, seconds)


def count_with_detector(
    procedure: Procedure,
    detector: Detector,
    encoder: Encoder,
    point: CountingPoint,
    *,
    min_frames: int | None = None,
    rules: TrackRules | None = None,
    pictures: bool = True,
    mask: Mask | None = None,
    progress: Progress = no_progress,
) -> CountReport:
    """Find the boxes and count in one pass: each frame is decoded once, and serves the detector and the encoder."""
    started = time.perf_counter()
    video = procedure.video
    counter = Counter(
        encoder,
        point=point,
        fps=video.fps,
        rules=rules,
        min_frames=min_frames,
        pictures=pictures,
        mask=mask,
        name=video.id,
        follow=False,
        keep_boxes=True,
    )
    looked_at = 0
    try:
        for frame, image, xyxy, score in detections(procedure.source, detector, progress=progress):
            counter.update(frame, image, xyxy, score=score)
            looked_at += 1
    except FileError:  # raised after all frames that can be read
        if not looked_at:
            raise
    seen = time.perf_counter()
    report = counter.finish(video.frame_count)
    settings = {name: report.provenance.parameters[name] for name in ("min_frames", "tracker")}
    provenance = made_by("count", encoder, point, procedure.sources, detector=detector.description, **settings)
    remarks = list(report.remarks)
    if looked_at < video.frame_count:
        remarks.append(f"Of {video.frame_count:,} frames {video.frame_count - looked_at:,} could not be read.")
    seconds = {
        "decode and detect": seen - started - sum(report.seconds.values()),
        **report.seconds,
        "group": time.perf_counter() - seen,
    }
    return replace(report, video=video, provenance=provenance, seconds=seconds, remarks=tuple(remarks))


def view_of(procedure: Procedure, frames: int = 8) -> NDArray[np.bool_] | None:
    """bool[height, width], what of a frame the endoscope shows; None for all of it. See `find_view`."""
    from polypcount.video.view_mask import find_view

    source, boxes = procedure.source, procedure.boxes
    if isinstance(source, CropSource):  # drawn, with nothing beside the view
        return None
    among = np.unique(boxes.frame) if len(boxes) else np.arange(procedure.video.frame_count)
    if not len(among):
        return None
    wanted = among[np.unique(np.linspace(0, len(among) - 1, frames).round().astype(np.int64))]
    return find_view(_readable(source, wanted))


def _readable(source: FrameSource, wanted: NDArray[np.integer]) -> Iterator[Image]:
    """The frames that can be read."""
    with contextlib.suppress(FileError):
        for _, image in source.frames(wanted):
            yield image


def _gather(
    source: FrameSource,
    boxes: Boxes,
    tracklets: Tracklets,
    kept: NDArray[np.int64],
    gatherer: Gatherer,
    tally: Tally,
    mask: Mask | None,
    progress: Progress,
) -> None:
    """Look at the frames that are wanted, in rising order, and end each tracklet after its last one."""
    wanted: dict[int, list[tuple[int, int, int]]] = {}
    last: dict[int, int] = {}
    for number in kept.tolist():
        rows = tracklets.rows(number)
        for index in range(0, len(rows), step_for(len(rows))):
            frame = int(boxes.frame[rows[index]])
            wanted.setdefault(frame, []).append((number, index, int(rows[index])))
            last[number] = frame
    for done, (frame, look) in enumerate(_looks(source, sorted(wanted), mask)):
        for number, index, row in sorted(wanted[frame], key=lambda each: each[2]):
            gatherer.see(number, index, frame, boxes.xyxy[row], look)
            if (
                last[number] == frame
                and index + step_for(int(tracklets.box_count[number])) >= tracklets.box_count[number]
            ):
                span = int(tracklets.start_frame[number]), int(tracklets.stop_frame[number])
                tally.add(gatherer.end(number, *span, int(tracklets.box_count[number])), 0)
        progress(done + 1, len(wanted))


def _looks(source: FrameSource, frames: list[int], mask: Mask | None) -> Iterator[tuple[int, Look]]:
    if isinstance(source, CropSource) and mask is None:
        for frame in frames:
            yield frame, DrawnLook(source, frame)
        return
    for frame, image in ahead(source.frames(np.array(frames, np.int64))):
        yield frame, FrameLook(image, mask)


def _remarks(procedure: Procedure, seen: LookedAt) -> tuple[str, ...]:
    told = []
    if not len(seen.boxes):
        told.append("There are no boxes, so there is nothing to count.")
    elif not seen.tally.ended:
        told.append(
            f"None of {len(seen.tracklets)} tracklets has the {seen.min_frames} boxes that it takes to be counted."
        )
    if seen.tracked:
        nobody = int((seen.boxes.track < 0).sum())
        told.append(
            f"The boxes came without tracks and were tracked; {nobody:,} of {len(seen.boxes):,} belong to no track."
        )
    elif nobody := int((seen.tracklets.label < 0).sum()):
        told.append(
            f"{nobody:,} of {len(seen.boxes):,} boxes have neither a polyp nor a track, unlike the others, and were "
            "not counted."
        )
    if procedure.video.fps is None:
        told.append(UNKNOWN_RATE)
    return tuple(told)
