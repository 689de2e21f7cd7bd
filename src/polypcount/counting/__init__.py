"""From a recording and boxes to the number of distinct polyps, and how sure it is."""

from polypcount.counting.count import count, count_procedure, count_with_detector, view_of
from polypcount.counting.counter import Counter
from polypcount.counting.detector import Detector, load_detector
from polypcount.counting.detector_settings import DetectorSettings
from polypcount.counting.inputs import Procedure, open_procedure, read_procedure
from polypcount.counting.point import CountingPoint
from polypcount.counting.result import (
    CountedPolyp,
    CountedTracklet,
    CountInterval,
    CountReport,
    DoubtfulPair,
    Picture,
)

__all__ = [
    "CountInterval",
    "CountReport",
    "CountedPolyp",
    "CountedTracklet",
    "Counter",
    "CountingPoint",
    "Detector",
    "DetectorSettings",
    "DoubtfulPair",
    "Picture",
    "Procedure",
    "count",
    "count_procedure",
    "count_with_detector",
    "load_detector",
    "open_procedure",
    "read_procedure",
    "view_of",
]
