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
_SPAN = ("start_frame", "stop_frame", "start_seconds", "stop_seconds", "box_count")
_SCORES = ("mean_score", "best_score")


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
    """A row for each tracklet in the values of a count.json; those that are perhaps no polyp come last, without one."""
    names, video = (*_SPAN, *_SCORES), count["video"]["id"]
    rows = [
        [video, row, tracklet["polyp"], *(tracklet[name] for name in names), None]
        for row, tracklet in enumerate(count["tracklets"])
    ]
    rows += [
        [video, None, None, *(tracklet[name] for name in names), tracklet["probability"]]
        for tracklet in count["perhaps_no_polyp"]
    ]
    return csv_text(("video", "tracklet", "polyp", *names, "probability"), rows)
