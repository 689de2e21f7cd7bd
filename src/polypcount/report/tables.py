"""polyps.csv and tracklets.csv."""

from collections.abc import Mapping
from typing import Any

from polypcount.storage import csv_text

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
    """A row for each polyp in the values of a count.json."""
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
    """A row for each tracklet in the values of a count.json."""
    rows = (
        [count["video"]["id"], row, *(tracklet[name] for name in _TRACKLETS)]
        for row, tracklet in enumerate(count["tracklets"])
    )
    return csv_text(("video", "tracklet", *_TRACKLETS), rows)
