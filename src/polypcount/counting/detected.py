"""What it means for a count that a detector found its boxes here, in words and as values."""

from collections.abc import Mapping
from typing import Any

from polypcount.counting.looks import LookFigures
from polypcount.counting.result import DetectorRun
from polypcount.detection import Detector
from polypcount.detection.detector_file import BUNDLED

NOT_INCLUDED = " Polyps that the detector missed are not accounted for."


def detector_run(
    detector: Detector, looks: LookFigures, measured: Mapping[str, float] | None, *, claimed: bool
) -> DetectorRun:
    """What a detector did, with a note for the first lines of a report.

    Args:
        detector: The detector.
        looks: How it looked at the recording.
        measured: Result of `end_to_end`.
        claimed: Whether the count has an interval.
    """
    who = f"the detector {detector.name}"
    if detector.name == BUNDLED:
        who = "the bundled detector, a research model that learnt from few hospitals (docs/detectors.md)"
    note = f"The boxes were found by {who}."
    if not claimed:
        note += " It may have missed polyps, and found some where there are none."
    elif measured is None:
        note += " The interval does not include polyps that it missed, nor what it wrongly took for polyps."
    else:
        note += (
            f" The interval includes polyps that it misses and what it wrongly takes for polyps: {_in_words(measured)}"
        )
    return DetectorRun(detector.name, looks.step, looks.looks, note)


def end_to_end(detector: Detector | None, encoder: str, method: str) -> Mapping[str, float] | None:
    """How often intervals from the pixels on held the true number, as `detector.json` says; None where it does not.

    Args:
        detector: The detector.
        encoder: Fingerprint of the encoder that counts. If the file says with which one it was measured, that must be
            the same.
        method: Name of the grouping method, likewise.
    """
    values = detector.end_to_end if detector is not None else None
    if not values or values.get("encoder", encoder) != encoder or values.get("method", method) != method:
        return None
    numbers = {name: values.get(name) for name in ("coverage", "procedures")}
    if not all(isinstance(value, int | float) for value in numbers.values()):
        return None
    return {name: float(value) for name, value in numbers.items() if value is not None}


def detection_meaning(detector: Detector | None, measured: Mapping[str, float] | None) -> str:
    """What an interval says about polyps that a detector missed or made up."""
    if detector is None or measured is None:
        return NOT_INCLUDED
    return f" With the boxes of this detector, from the pixels on: {_in_words(measured)}"


def detector_parameters(detector: Detector, step: int) -> dict[str, Any]:
    """What decides the boxes, for the provenance of a count."""
    rule = detector.false_alarm_rule
    rule_values = None if rule is None else rule.to_json()
    return {"detector": {**detector.description, "every": step, "false_alarms": rule_values}}


def _in_words(measured: Mapping[str, float]) -> str:
    return (
        f"on {measured['procedures']:.0f} procedures counted from their pixels, it held the true number in "
        f"{100 * measured['coverage']:.0f} %."
    )
