"""Tables for spreadsheets and programs."""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_POLYPS = (
    "first_seen_frame",
    "last_seen_frame",
    "first_seen_seconds",
    "last_seen_seconds",
    "visible_frames",
    "visible_seconds",
)
_TRACKLETS = ("polyp", "start_frame", "stop_frame", "start_seconds", "stop_seconds", "box_count")


def polyps_csv(count: Mapping[str, Any]) -> str:
    """A row for each polyp of what count.json holds."""
    rows = (
        [
            count["video"]["id"],
            polyp["number"],
            *(polyp[name] for name in _POLYPS),
            len(polyp["tracklets"]),
            polyp["certainty"],
            polyp["best_frame"] and polyp["best_frame"]["frame"],
        ]
        for polyp in count["polyps"]
    )
    return csv_text(("video", "polyp", *_POLYPS, "tracklets", "certainty", "best_frame"), rows)


def tracklets_csv(count: Mapping[str, Any]) -> str:
    """A row for each tracklet of what count.json holds."""
    rows = (
        [count["video"]["id"], row, *(one[name] for name in _TRACKLETS)] for row, one in enumerate(count["tracklets"])
    )
    return csv_text(("video", "tracklet", *_TRACKLETS), rows)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A CSV file; a value that is not defined is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([[_cell(value) for value in row] for row in rows])
    return out.getvalue()


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    text = str(value)
    # A spreadsheet takes a text that begins like a formula for one; ids and errors come from elsewhere.
    formula = isinstance(value, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{text}" if formula else text
