"""count.json: everything that was found, for programs. docs/report.md tells what each field means."""

import json
import math
import os
from pathlib import Path
from typing import Any

from polypcount.counting.result import CountedPolyp, CountReport
from polypcount.errors import FileError
from polypcount.importers.files import read_text
from polypcount.report.cards import best_picture, first_frame, last_frame
from polypcount.report.provenance import file_name, told_of
from polypcount.report.shapes import Maybe, refuse_other_shape

FORMAT, FORMAT_VERSION = "polypcount-count", 1
COUNT_FILE = "count.json"
_LARGEST_BYTES = 1 << 28
_DECIMALS = 6

_POLYP = {
    "number": int,
    "tracklets": [int],
    "first_seen_frame": int,
    "last_seen_frame": int,
    "first_seen_seconds": Maybe(float),
    "last_seen_seconds": Maybe(float),
    "visible_frames": int,
    "visible_seconds": Maybe(float),
    "certainty": Maybe(float),
    "best_frame": Maybe({"frame": int, "seconds": Maybe(float), "quality": Maybe(float)}),
}
_TRACKLET = {
    "polyp": int,
    "start_frame": int,
    "stop_frame": int,
    "start_seconds": Maybe(float),
    "stop_seconds": Maybe(float),
    "box_count": int,
}
_SHAPE = {
    "count": int,
    "interval": {"low": int, "high": int, "level": float, "meaning": str},
    "video": {
        "id": str,
        "file": Maybe(str),
        "fps": Maybe(float),
        "frame_count": int,
        "duration_seconds": Maybe(float),
        "width": Maybe(int),
        "height": Maybe(int),
    },
    "polyps": [_POLYP],
    "tracklets": [_TRACKLET],
    "pairs": [{"first": int, "second": int, "together": float, "doubt": str}],
    "repeated": [int],
    "left_out": int,
    "retired": int,
    "seconds": dict,
    "remarks": [str],
    "provenance": dict,
    "files": [str],
}


def count_values(report: CountReport) -> dict[str, Any]:
    """What count.json holds, as JSON values; all but `files`, which is known when they are written."""
    video, seconds = report.video, report.seconds_of
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "count": report.count,
        "interval": {
            "low": int(report.interval.low),
            "high": int(report.interval.high),
            "level": float(report.interval.level),
            "meaning": report.interval.meaning,
        },
        "video": {
            "id": video.id,
            "file": None if video.source is None else file_name(video.source),
            "fps": video.fps,
            "frame_count": video.frame_count,
            "duration_seconds": _number(seconds(video.frame_count)),
            "width": video.width,
            "height": video.height,
        },
        "polyps": [_polyp_values(report, polyp) for polyp in report.polyps],
        "tracklets": [
            {
                "polyp": int(one.polyp),
                "start_frame": int(one.start_frame),
                "stop_frame": int(one.stop_frame),
                "start_seconds": _number(seconds(one.start_frame)),
                "stop_seconds": _number(seconds(one.stop_frame)),
                "box_count": int(one.box_count),
            }
            for one in report.tracklets
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
        "retired": int(report.retired),
        "seconds": {step: _number(spent) for step, spent in report.seconds.items()},
        "remarks": list(report.remarks),
        "provenance": told_of(report.provenance),
    }


def read_count(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a count.json holds, checked: all fields of this format are there, of their types, and agree.

    path: the file, or the folder of the report. Fields that this version does not know are left as they are.
    """
    place = Path(path)
    if place.is_dir():
        place = place / COUNT_FILE
    try:
        found = json.loads(read_text(place, _LARGEST_BYTES), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as problem:
        raise FileError(f"{place} is not valid JSON: {problem}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise FileError(f'{place} is not a count: "format" must be "{FORMAT}"')
    version = found.get("format_version")
    if type(version) is not int or version < 1:
        raise FileError(f"{place}: format_version must be a whole number from 1, found {version!r}")
    if version > FORMAT_VERSION:
        raise FileError(
            f"{place} has format version {version}, this polypcount reads up to {FORMAT_VERSION}: upgrade polypcount"
        )
    refuse_other_shape(found, _SHAPE, str(place))
    _refuse_disagreement(found, place)
    return found


def _polyp_values(report: CountReport, polyp: CountedPolyp) -> dict[str, Any]:
    first, last, visible = first_frame(report, polyp), last_frame(report, polyp), report.visible_frames(polyp)
    best = best_picture([report.tracklets[row] for row in polyp.tracklets])
    return {
        "number": int(polyp.number),
        "tracklets": [int(row) for row in polyp.tracklets],
        "first_seen_frame": int(first),
        "last_seen_frame": int(last),
        "first_seen_seconds": _number(report.seconds_of(first)),
        "last_seen_seconds": _number(report.seconds_of(last)),
        "visible_frames": int(visible),
        "visible_seconds": _number(report.seconds_of(visible)),
        "certainty": _number(polyp.certainty),
        "best_frame": best
        and {
            "frame": int(best.frame),
            "seconds": _number(report.seconds_of(best.frame)),
            "quality": _number(best.quality),
        },
    }


def _number(value: float | None) -> float | None:
    """To six decimals; None where it is not defined."""
    return None if value is None or not math.isfinite(value) else round(float(value), _DECIMALS)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number that JSON knows")


def _refuse_disagreement(found: dict[str, Any], place: Path) -> None:
    """Raise where rows and numbers do not fit each other."""
    polyps, tracklets = found["polyps"], found["tracklets"]
    if found["count"] != len(polyps) + found["retired"]:
        raise FileError(f"{place}: count must be the number of polyps and those retired, found {found['count']}")
    if [polyp["number"] for polyp in polyps] != list(range(1, len(polyps) + 1)):
        raise FileError(f"{place}: polyps must be numbered from 1 in their order")
    owner = {row: polyp["number"] for polyp in polyps for row in polyp["tracklets"]}
    named = sum(len(polyp["tracklets"]) for polyp in polyps)
    if named != len(tracklets) or any(owner.get(row) != one["polyp"] for row, one in enumerate(tracklets)):
        raise FileError(f"{place}: polyps and tracklets do not say the same of who belongs to whom")
    if any(not 0 <= pair["first"] < pair["second"] < len(tracklets) for pair in found["pairs"]):
        raise FileError(f"{place}: a pair names a tracklet that is not there")
