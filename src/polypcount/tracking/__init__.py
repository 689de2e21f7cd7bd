"""From boxes to tracks, tracklets and fragments, and their positions in time."""

from polypcount.tracking.detections import OnlineTracker, TrackRules, track_boxes
from polypcount.tracking.fragment import Fragments, fragments
from polypcount.tracking.link import link_tracklets
from polypcount.tracking.online import Linked, OnlineLinker
from polypcount.tracking.positions import box_positions, fragment_positions, tracklet_positions

__all__ = [
    "Fragments",
    "Linked",
    "OnlineLinker",
    "OnlineTracker",
    "TrackRules",
    "box_positions",
    "fragment_positions",
    "fragments",
    "link_tracklets",
    "track_boxes",
    "tracklet_positions",
]
