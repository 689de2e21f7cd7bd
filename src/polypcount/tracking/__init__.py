"""From boxes to tracks, tracklets and fragments, and which boxes of a tracklet are looked at."""

from polypcount.tracking.fragment import Fragments, box_positions, fragments
from polypcount.tracking.link import link_tracklets
from polypcount.tracking.looked_at import MOST_LOOKED_AT, duration_frames, evenly, looked_at, looked_at_step
from polypcount.tracking.online import Linked, OnlineLinker
from polypcount.tracking.tracker import OnlineTracker, TrackRules, track_boxes

__all__ = [
    "MOST_LOOKED_AT",
    "Fragments",
    "Linked",
    "OnlineLinker",
    "OnlineTracker",
    "TrackRules",
    "box_positions",
    "duration_frames",
    "evenly",
    "fragments",
    "link_tracklets",
    "looked_at",
    "looked_at_step",
    "track_boxes",
]
