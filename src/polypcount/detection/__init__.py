"""Detectors: ONNX files that find boxes in frames."""

from polypcount.detection.detector import Detector, detect_boxes, detections, load_detector
from polypcount.detection.settings import DetectorSettings

__all__ = ["Detector", "DetectorSettings", "detect_boxes", "detections", "load_detector"]
