"""Detectors: ONNX files that find boxes in frames, bundled, trained or from elsewhere; their training and judging.

What trains is loaded when it is first used: it needs torch.
"""

from typing import TYPE_CHECKING, Any

from polypcount.detection.detect_boxes import detect_boxes, detections
from polypcount.detection.detector import Detector, load_detector
from polypcount.detection.evaluate import DetectionScores, evaluate_detections
from polypcount.detection.false_alarms import FalseAlarmRule
from polypcount.detection.settings import DetectorSettings

if TYPE_CHECKING:
    from polypcount.detection.detector_training import train_detector

__all__ = [
    "DetectionScores",
    "Detector",
    "DetectorSettings",
    "FalseAlarmRule",
    "detect_boxes",
    "detections",
    "evaluate_detections",
    "load_detector",
    "train_detector",
]


def __getattr__(name: str) -> Any:
    if name != "train_detector":
        raise AttributeError(f"module 'polypcount.detection' has no attribute {name!r}")
    from polypcount.detection.detector_training import train_detector

    return train_detector
