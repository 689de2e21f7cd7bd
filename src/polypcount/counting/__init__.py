"""From a recording and boxes to the number of distinct polyps, and how certain it is."""

from polypcount.counting.calibration import calibrate
from polypcount.counting.count import count
from polypcount.counting.counter import Counter
from polypcount.counting.operating_points import (
    OperatingPoints,
    operating_point,
    read_operating_points,
    write_operating_points,
)
from polypcount.counting.recording import Recording, find_mask, open_recording
from polypcount.counting.result import (
    CountedPolyp,
    CountedTracklet,
    CountInterval,
    CountReport,
    DoubtfulPair,
    Picture,
)
from polypcount.counting.settings import CountSettings

__all__ = [
    "CountInterval",
    "CountReport",
    "CountSettings",
    "CountedPolyp",
    "CountedTracklet",
    "Counter",
    "DoubtfulPair",
    "OperatingPoints",
    "Picture",
    "Recording",
    "calibrate",
    "count",
    "find_mask",
    "open_recording",
    "operating_point",
    "read_operating_points",
    "write_operating_points",
]
