"""From boxes to tracklets and fragments, and their positions in time."""

from polypcount.tracking.fragment import Fragments, fragments
from polypcount.tracking.link import link_tracklets
from polypcount.tracking.positions import box_positions, fragment_positions, tracklet_positions

__all__ = ["Fragments", "box_positions", "fragment_positions", "fragments", "link_tracklets", "tracklet_positions"]
