"""Writes what a count keeps for its review; `review_file.py` lists the files."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL import Image as Pillow

from polypcount.corpus import Boxes
from polypcount.counting.evidence import Evidence
from polypcount.counting.result import CountedTracklet, CountReport, Picture, SetAsideTracklet
from polypcount.report.review_file import (
    BOX_COLUMNS,
    BOXES,
    PICTURES,
    RECORDING,
    REVIEW,
    TIMES,
    VECTORS,
    VIEW,
    RecordingFile,
    ReviewFile,
)
from polypcount.storage import write_array, write_json, write_text
from polypcount.storage.files import whole_file


def write_review_data(report: CountReport, folder: Path) -> None:
    """Write the files for a review into a folder; nothing for a count that keeps no boxes, as in live counting."""
    basis, boxes = report.basis, report.boxes
    if basis is None or boxes is None or basis.linked is None:
        return
    folder.mkdir()
    vectors = [one.vectors for one in basis.evidence]
    shape = vectors[0].shape if vectors else (0, 0)
    write_array(folder / VECTORS, (len(vectors) * shape[0], shape[1]), vectors)
    _write_boxes(folder / BOXES, boxes, basis.linked)
    if report.times is not None:
        write_array(folder / TIMES, (len(report.times), 1), [report.times[:, None].astype(np.float32)])
    if report.mask is not None and report.mask.view is not None:
        with whole_file(folder / VIEW) as name:
            Pillow.fromarray(report.mask.view).save(name, format="PNG")
    video = report.video
    values: dict[str, Any] = {
        "point": basis.point.model_dump(mode="json"),
        "duration": float(basis.duration),
        "fps": basis.fps,
        "frame_count": video.frame_count,
        "width": video.width,
        "height": video.height,
        "tracked": basis.tracked,
        "polyp_range": basis.polyp_range and list(basis.polyp_range),
        "vectors": list(shape),
        "tracklets": [
            {**_span(evidence), "number": int(evidence.number), "polyp": int(tracklet.polyp)}
            for evidence, tracklet in zip(basis.evidence, report.tracklets, strict=True)
        ],
        "set_aside": [
            {**_span(one), "number": _number_of(one, boxes, basis.linked), "probability": float(one.probability)}
            for one in report.set_aside
        ],
        "together": basis.together.tolist(),
        "one_polyp": basis.known.one_polyp.tolist(),
        "two_polyps": basis.known.two_polyps.tolist(),
        "rectangles": [list(one) for one in report.mask.rectangles] if report.mask is not None else [],
        "has_view": report.mask is not None and report.mask.view is not None,
        "has_times": report.times is not None,
        "pictures": _write_pictures(folder / PICTURES, report),
    }
    values["digest"] = _digest(values, [*vectors, boxes.frame, boxes.xyxy, basis.linked])
    write_json(folder / REVIEW, ReviewFile.described(**values).model_dump(mode="json"))
    if basis.source is not None and _is_text(basis.source):
        recording = RecordingFile(source=basis.source, video=basis.video)
        write_text(folder / RECORDING, recording.model_dump_json(indent=1) + "\n", private=True)


def _is_text(path: str) -> bool:
    """Whether a path can be written as text. Names in another encoding cannot; the recording can be given later."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _span(one: Evidence | SetAsideTracklet) -> dict[str, int]:
    return {
        "start_frame": int(one.start_frame),
        "stop_frame": int(one.stop_frame),
        "box_count": int(one.box_count),
    }


def _number_of(one: SetAsideTracklet, boxes: Boxes, linked: NDArray[np.int32]) -> int:
    """The tracklet that has the best box."""
    own = np.flatnonzero((boxes.frame == one.best_frame) & (linked >= 0))
    apart = np.abs(boxes.xyxy[own] - np.array(one.best_box, np.float32)).sum(axis=1)
    return int(linked[own[np.argmin(apart)]])


def _digest(values: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> str:
    """SHA-256 of the tracklets, their vectors, boxes and groups, and how they are grouped."""
    digest = hashlib.sha256(b"polypcount review, 1\n")
    for name in ("point", "duration", "tracklets", "set_aside", "together"):
        digest.update(repr(values[name]).encode())
    for each in arrays:
        digest.update(np.ascontiguousarray(each).tobytes())
    return f"sha256:{digest.hexdigest()}"


def _write_boxes(path: Path, boxes: Boxes, linked: NDArray[np.int32]) -> None:
    sides = dict(zip(BOX_COLUMNS[1:5], boxes.xyxy.T, strict=True))
    columns = {"frame": boxes.frame, **sides, "score": boxes.score, "tracklet": linked}
    with whole_file(path) as name:
        pq.write_table(pa.table({key: pa.array(column) for key, column in columns.items()}), name, compression="zstd")


def _kept_pictures(report: CountReport) -> Iterator[tuple[int, bool, bool, Picture]]:
    """Each picture with the row of its tracklet, whether that was set aside, and whether it shows a whole frame."""
    lists: tuple[Sequence[CountedTracklet | SetAsideTracklet], ...] = (report.tracklets, report.set_aside)
    for set_aside, listed in zip((False, True), lists, strict=True):
        for row, tracklet in enumerate(listed):
            for view in tracklet.views:
                yield row, set_aside, False, view
            if tracklet.whole is not None:
                yield row, set_aside, True, tracklet.whole


def _write_pictures(path: Path, report: CountReport) -> list[dict[str, Any]]:
    listed, start = [], 0
    with whole_file(path) as name, name.open("wb") as file:
        for row, set_aside, whole, picture in _kept_pictures(report):
            file.write(picture.jpeg)
            size = len(picture.jpeg)
            values = {key: value for key, value in asdict(picture).items() if key != "jpeg"}
            values["xyxy"] = [float(side) for side in picture.xyxy]
            place = {"tracklet": row, "set_aside": set_aside, "whole": whole, "start": start, "size": size}
            listed.append({**values, "quality": float(picture.quality), "frame": int(picture.frame), **place})
            start += size
    return listed
