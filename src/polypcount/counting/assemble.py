"""The report of a count, from the evidence of its tracklets and the decision about them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering import OperatingPoint
from polypcount.corpus import Embeddings, FrameVectors, Provenance, Video
from polypcount.counting.decide import REPETITIONS, Decision, PolypRange
from polypcount.counting.detected import NOT_INCLUDED, detection_meaning, detector_run, end_to_end
from polypcount.counting.evidence import Evidence
from polypcount.counting.looks import LookFigures
from polypcount.counting.result import CountedPolyp, CountedTracklet, CountInterval, CountReport
from polypcount.detection import Detector
from polypcount.encoder import Encoder


def assemble(
    video: Video,
    evidence: Sequence[Evidence],
    together: NDArray[np.int64],
    decision: Decision,
    point: OperatingPoint,
    provenance: Provenance,
    *,
    detector: Detector | None = None,
    looks: LookFigures | None = None,
    no_interval: str = "",
    retired: int = 0,
    polyp_range: PolypRange | None = None,
    **values: Any,
) -> CountReport:
    """Put a report together.

    Args:
        video: The recording.
        evidence: Evidence of the tracklets, in time order.
        together: int64[m, 2], rows of tracklets with boxes in one frame.
        decision: The groups of the tracklets, and how certain they are.
        point: The operating point of the decision.
        provenance: How the count was made.
        detector: The detector that found the boxes here; None for boxes from elsewhere.
        looks: How it looked at the recording.
        no_interval: Why no interval can be given; empty if one can.
        retired: Number of polyps that are counted but have no tracklets left.
        polyp_range: The fewest and the most polyps that the user allows.
        **values: Further fields of the report.
    """
    measured = end_to_end(detector, str(provenance.parameters["encoder"]), point.method)
    meaning = interval_meaning(point, polyp_range, detection_meaning(detector, measured))
    claimed = CountInterval(decision.low + retired, decision.high + retired, point.level, meaning)
    return CountReport(
        video=video,
        interval=None if no_interval else claimed,
        no_interval=no_interval,
        polyps=tuple(
            CountedPolyp(group + 1, tuple(np.flatnonzero(decision.labels == group).tolist()), float(certainty))
            for group, certainty in enumerate(decision.certainty)
        ),
        tracklets=tuple(
            CountedTracklet(
                one.start_frame, one.stop_frame, one.box_count, int(label) + 1, one.views, one.whole, one.scores
            )
            for one, label in zip(evidence, decision.labels, strict=True)
        ),
        together=decision.together,
        pairs=decision.pairs,
        repeated=decision.repeated,
        provenance=provenance,
        retired=retired,
        embeddings=_embeddings(video, evidence, together, provenance),
        detector=None
        if detector is None or looks is None
        else detector_run(detector, looks, measured, claimed=not no_interval),
        **values,
    )


def describe(
    verb: str, encoder: Encoder, point: OperatingPoint, sources: tuple[str, ...], more: Mapping[str, object]
) -> Provenance:
    """How a count is made. more: Further parameters."""
    parameters = {
        "encoder": encoder.fingerprint,
        "engine": encoder.engine,
        "method": point.method,
        "parameters": dict(point.parameters),
        "cannot_link": point.cannot_link,
        "selected_on": point.selected_on,
        **more,
    }
    return Provenance.now(verb, sources, parameters)


def interval_meaning(
    point: OperatingPoint, polyp_range: PolypRange | None = None, detection: str = NOT_INCLUDED
) -> str:
    """What the interval says, in words.

    Args:
        point: The operating point of the count.
        polyp_range: The number of polyps that was given.
        detection: What it says about detection.
    """
    words = f"Should hold the true number in {100 * point.level:.0f} % of comparable procedures. "
    if point.bands:
        words += (
            "Its ends are the counts at a loose and at a strict setting, found on procedures with known polyps "
            f"({point.selected_on}), with as many tracklets and the same kind of boxes. "
        )
    else:
        words += (
            f"The grouping was repeated {REPETITIONS} times, with settings that were right for other procedures "
            f"({point.selected_on}) and with frames drawn anew. "
        )
    if {"coverage", "procedures"} <= set(point.measured):
        words += (
            f"On {point.measured['procedures']:.0f} simulated procedures that nothing was chosen on, it held the true "
            f"number in {100 * point.measured['coverage']:.0f} %."
        )
    else:
        words += "How often it does was not measured."
    words += detection
    if polyp_range is not None:
        words += (
            f" The number of polyps was given as {_range_words(*polyp_range)}; if that is wrong, so is the interval."
        )
    return words


def _range_words(fewest: int, most: int | None) -> str:
    if most is None:
        return f"at least {fewest}"
    return f"{most}" if fewest == most else f"at most {most}" if not fewest else f"{fewest} to {most}"


def _embeddings(
    video: Video, evidence: Sequence[Evidence], together: NDArray[np.int64], provenance: Provenance
) -> Embeddings:
    rows = np.array([(one.start_frame, one.stop_frame, one.box_count) for one in evidence], np.int32).reshape(-1, 3)
    frames = None
    if evidence:
        tracklet = np.repeat(np.arange(len(evidence)), [len(one.frames) for one in evidence])
        frames = FrameVectors(
            tracklet.astype(np.int32),
            np.concatenate([one.frames for one in evidence]),
            np.concatenate([one.frame_vectors for one in evidence]),
        )
    return Embeddings(
        videos=(video,),
        polyps=(),
        video=np.zeros(len(rows), np.int32),
        start_frame=rows[:, 0],
        stop_frame=rows[:, 1],
        box_count=rows[:, 2],
        polyp=np.full(len(rows), -1, np.int32),
        vectors=[one.vectors[0] for one in evidence],
        together=together,
        encoder=str(provenance.parameters["encoder"]),
        provenance=provenance,
        frames=frames,
    )
