"""Count the distinct polyps in a colonoscopy recording.

The names below are loaded when they are first used, so that `import polypcount` takes almost no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import polypcount.offline  # noqa: F401 - first of all: no library may send usage data
from polypcount.version import __version__

if TYPE_CHECKING:
    from polypcount.clustering import OperatingPoint
    from polypcount.corpus import Boxes, Corpus, Embeddings, FrameVectors, Polyp, Tracklets, Video, check, concatenate
    from polypcount.counting import Counter, CountReport, CountSettings, calibrate, count
    from polypcount.detection import DetectorSettings, evaluate_detections, load_detector, train_detector
    from polypcount.encoder import embed, load_encoder
    from polypcount.errors import PolypcountError
    from polypcount.evaluation import leave_one_out
    from polypcount.importers import merge, read_boxes, read_corpus, write_boxes
    from polypcount.report import read_count
    from polypcount.simulate import TimelineSettings, simulate_scenes, simulate_timelines
    from polypcount.tracking import TrackRules, fragments, link_tracklets
    from polypcount.training import train

_HOMES = {
    "polypcount.clustering": ["OperatingPoint"],
    "polypcount.corpus": [
        "Boxes",
        "Corpus",
        "Embeddings",
        "FrameVectors",
        "Polyp",
        "Tracklets",
        "Video",
        "check",
        "concatenate",
    ],
    "polypcount.counting": ["CountReport", "CountSettings", "Counter", "calibrate", "count"],
    "polypcount.detection": ["DetectorSettings", "evaluate_detections", "load_detector", "train_detector"],
    "polypcount.encoder": ["embed", "load_encoder"],
    "polypcount.errors": ["PolypcountError"],
    "polypcount.evaluation": ["leave_one_out"],
    "polypcount.importers": ["merge", "read_boxes", "read_corpus", "write_boxes"],
    "polypcount.report": ["read_count"],
    "polypcount.simulate": ["TimelineSettings", "simulate_scenes", "simulate_timelines"],
    "polypcount.tracking": ["TrackRules", "fragments", "link_tracklets"],
    "polypcount.training": ["train"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Boxes",
    "Corpus",
    "CountReport",
    "CountSettings",
    "Counter",
    "DetectorSettings",
    "Embeddings",
    "FrameVectors",
    "OperatingPoint",
    "Polyp",
    "PolypcountError",
    "TimelineSettings",
    "TrackRules",
    "Tracklets",
    "Video",
    "__version__",
    "calibrate",
    "check",
    "concatenate",
    "count",
    "embed",
    "evaluate_detections",
    "fragments",
    "leave_one_out",
    "link_tracklets",
    "load_detector",
    "load_encoder",
    "merge",
    "read_boxes",
    "read_corpus",
    "read_count",
    "simulate_scenes",
    "simulate_timelines",
    "train",
    "train_detector",
    "write_boxes",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'polypcount' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
