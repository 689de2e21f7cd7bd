"""count.json: the whole result of a count, for programs. docs/report.md describes each field."""

import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from polypcount.counting.result import CountedPolyp, CountedTracklet, CountReport, DetectorRun, SetAsideTracklet
from polypcount.report.cards import best_picture, first_and_last_frame
from polypcount.report.provenance import file_name, provenance_values
from polypcount.storage import Manifest, Schema, read_manifest, write_json

COUNT_FILE = "count.json"
_DECIMALS = 6
_OPEN = ConfigDict(extra="allow")  # fields that a later version adds are kept


class _OpenSchema(Schema):
    model_config = _OPEN


class _Interval(_OpenSchema):
    low: int
    high: int
    level: float
    meaning: str


class _Video(_OpenSchema):
    id: str
    file: str | None
    fps: float | None
    variable_frame_rate: bool = False  # earlier files do not say
    frame_count: int
    duration_seconds: float | None
    width: int | None
    height: int | None


class _BestFrame(_OpenSchema):
    frame: int
    seconds: float | None
    quality: float | None


class _Polyp(_OpenSchema):
    number: int
    tracklets: list[int]
    first_seen_frame: int
    last_seen_frame: int
    first_seen_seconds: float | None
    last_seen_seconds: float | None
    visible_frames: int
    visible_seconds: float | None
    certainty: float | None
    best_frame: _BestFrame | None


class _Tracklet(_OpenSchema):
    polyp: int
    start_frame: int
    stop_frame: int
    start_seconds: float | None
    stop_seconds: float | None
    box_count: int
    mean_score: float | None = None  # earlier files have no scores
    best_score: float | None = None


class _Detector(_OpenSchema):
    name: str
    bundled: bool
    every_frames: int
    looks: int
    note: str


class _PerhapsNoPolyp(_OpenSchema):
    start_frame: int
    stop_frame: int
    start_seconds: float | None
    stop_seconds: float | None
    box_count: int
    probability: float
    mean_score: float
    best_score: float
    best_frame: int
    best_box: list[float]


class _Pair(_OpenSchema):
    first: int
    second: int
    together: float
    doubt: Literal["one?", "two?"]


class CountFile(Manifest):
    """Schema of count.json."""

    FORMAT: ClassVar[str] = "polypcount-count"
    VERSION: ClassVar[int] = 2  # version 1 always had an interval
    KIND: ClassVar[str] = "a count"
    model_config = _OPEN

    count: int
    interval: _Interval | None
    no_interval: str = ""
    detector: _Detector | None = None
    video: _Video
    polyps: list[_Polyp]
    tracklets: list[_Tracklet]
    perhaps_no_polyp: list[_PerhapsNoPolyp] = Field(default_factory=list)
    pairs: list[_Pair]
    repeated: list[int]
    left_out: int
    named_polyps: int = 0
    retired: int
    seconds: dict[str, float | None]
    remarks: list[str]
    provenance: dict[str, Any]
    files: list[str]

    @model_validator(mode="after")
    def _fields_agree(self) -> Self:
        if self.count != len(self.polyps) + self.retired:
            raise ValueError(f"count must be the number of polyps and those retired, found {self.count}")
        if [polyp.number for polyp in self.polyps] != list(range(1, len(self.polyps) + 1)):
            raise ValueError("polyps must have the numbers 1, 2, ... in this order")
        members = Counter((row, polyp.number) for polyp in self.polyps for row in polyp.tracklets)
        if members != Counter((row, tracklet.polyp) for row, tracklet in enumerate(self.tracklets)):
            raise ValueError("polyps and tracklets disagree about which tracklet belongs to which polyp")
        if any(not 0 <= pair.first < pair.second < len(self.tracklets) for pair in self.pairs):
            raise ValueError("pairs must name two different tracklets, in order")
        return self


def read_count(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read and check a count.json.

    Args:
        path: The file, or the folder of the report.

    Returns:
        Its values. Fields that this version does not know are among them.

    Raises:
        FileError: The file is missing or damaged, or a field is missing, has a wrong type or contradicts another.
    """
    file = Path(path)
    return read_manifest(file / COUNT_FILE if file.is_dir() else file, CountFile).model_dump(mode="json")


def list_file(folder: Path, name: str) -> None:
    """Add a file that was written later to the `files` of a report's count.json."""
    values = read_count(folder)
    write_json(folder / COUNT_FILE, {**values, "files": sorted({*values["files"], name})})


def count_values(report: CountReport, files: Sequence[str] = ()) -> dict[str, Any]:
    """The values of count.json.

    Args:
        report: The count.
        files: Names of the other files of the report.
    """
    video, seconds = report.video, report.seconds_of
    return {
        "format": CountFile.FORMAT,
        "format_version": CountFile.VERSION,
        "count": report.count,
        "interval": None if report.interval is None else asdict(report.interval),
        "no_interval": report.no_interval,
        "detector": _detector_values(report.detector),
        "video": {
            "id": _valid_text(video.id),
            "file": None if video.source is None else _valid_text(file_name(video.source)),
            "fps": video.fps,
            "variable_frame_rate": report.times is not None,
            "frame_count": video.frame_count,
            "duration_seconds": _number(seconds(video.frame_count)),
            "width": video.width,
            "height": video.height,
        },
        "polyps": [_polyp_values(report, polyp) for polyp in report.polyps],
        "tracklets": [
            {
                "polyp": int(tracklet.polyp),
                **_span_values(report, tracklet),
                "mean_score": None if tracklet.scores is None else _number(tracklet.scores.mean),
                "best_score": None if tracklet.scores is None else _number(tracklet.scores.best),
            }
            for tracklet in report.tracklets
        ],
        "perhaps_no_polyp": [
            {
                **_span_values(report, tracklet),
                "probability": _number(tracklet.probability),
                "mean_score": _number(tracklet.scores.mean),
                "best_score": _number(tracklet.scores.best),
                "best_frame": int(tracklet.best_frame),
                "best_box": [_number(side) for side in tracklet.best_box],
            }
            for tracklet in report.set_aside
        ],
        "pairs": [
            {
                "first": int(pair.first),
                "second": int(pair.second),
                "together": _number(pair.together),
                "doubt": pair.doubt,
            }
            for pair in report.pairs
        ],
        "repeated": report.repeated.tolist(),
        "left_out": int(report.left_out),
        "named_polyps": int(report.named_polyps),
        "retired": int(report.retired),
        "seconds": {step: _number(spent) for step, spent in report.seconds.items()},
        "remarks": [_valid_text(remark) for remark in report.remarks],
        "provenance": provenance_values(report.provenance),
        "files": list(files),
    }


def _detector_values(run: DetectorRun | None) -> dict[str, Any] | None:
    if run is None:
        return None
    name = _valid_text(run.name)
    note = _valid_text(run.note)
    return {"name": name, "bundled": run.bundled, "every_frames": int(run.step), "looks": int(run.looks), "note": note}


def _span_values(report: CountReport, tracklet: CountedTracklet | SetAsideTracklet) -> dict[str, Any]:
    return {
        "start_frame": int(tracklet.start_frame),
        "stop_frame": int(tracklet.stop_frame),
        "start_seconds": _number(report.seconds_of(tracklet.start_frame)),
        "stop_seconds": _number(report.seconds_of(tracklet.stop_frame)),
        "box_count": int(tracklet.box_count),
    }


def _polyp_values(report: CountReport, polyp: CountedPolyp) -> dict[str, Any]:
    first, last = first_and_last_frame(report, polyp)
    visible = report.visible_frames(polyp)
    best = best_picture([report.tracklets[row] for row in polyp.tracklets])
    return {
        "number": int(polyp.number),
        "tracklets": [int(row) for row in polyp.tracklets],
        "first_seen_frame": int(first),
        "last_seen_frame": int(last),
        "first_seen_seconds": _number(report.seconds_of(first)),
        "last_seen_seconds": _number(report.seconds_of(last)),
        "visible_frames": int(visible),
        "visible_seconds": _number(report.visible_seconds(polyp)),
        "certainty": _number(polyp.certainty),
        "best_frame": best
        and {
            "frame": int(best.frame),
            "seconds": _number(report.seconds_of(best.frame)),
            "quality": _number(best.quality),
        },
    }


def _valid_text(text: str) -> str:
    """The text with half characters escaped. Some file names have them, and JSON readers refuse them."""
    return text.encode(errors="backslashreplace").decode()


def _number(value: float | None) -> float | None:
    """Rounded to six decimals; None if it is not defined."""
    return None if value is None or not math.isfinite(value) else round(float(value), _DECIMALS)
