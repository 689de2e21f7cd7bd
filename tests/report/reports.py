"""Count reports made by hand, with real JPEG files of drawn pictures."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import simplejpeg  # type: ignore[import-untyped]

from polypcount.corpus import Boxes, Provenance, Video
from polypcount.counting.result import (
    CountedPolyp,
    CountedTracklet,
    CountInterval,
    CountReport,
    DetectorRun,
    DoubtfulPair,
    LookScores,
    Picture,
    SetAsideTracklet,
)
from polypcount.report.colours import mark_of, rgb

FPS, LENGTH = 25.0, 40
MEANING = "In 19 of 20 simulated procedures the true count lies in such an interval."


def picture(frame: int, number: int, *, width: int = 64, height: int = 48, quality: float = 0.5) -> Picture:
    """A blob in the polyp's colour on pink, and the box around it."""
    rows, columns = np.mgrid[:height, :width]
    image = np.full((height, width, 3), (205, 120, 110), np.uint8)
    image[np.hypot((rows - height / 2) / height, (columns - width / 2) / width) < 0.25] = rgb(mark_of(number).colour)
    box = (width / 4, height / 4, 3 * width / 4, 3 * height / 4)
    return Picture(frame, simplejpeg.encode_jpeg(image, quality=80), width, height, box, quality)


def tracklet(start: int, polyp: int, *, length: int = LENGTH, pictures: bool = True) -> CountedTracklet:
    """One that is seen in each of its frames, with three views; later frames are better."""
    if not pictures:
        return CountedTracklet(start, start + length, length, polyp)
    views = tuple(
        picture(start + length * part // 3, polyp, width=40, height=40, quality=0.3 + 0.1 * part) for part in range(3)
    )
    best = picture(start + length // 2, polyp, quality=0.2 + start / 1e6)
    return CountedTracklet(start, start + length, length, polyp, views, best)


def report_of(groups: Sequence[int], *, pictures: bool = True, fps: float | None = FPS, **changed: Any) -> CountReport:
    """A report whose tracklets, one after the other, belong to these polyps, numbered from 1 as first seen.

    Each tracklet lasts 40 frames and the next begins 100 frames after it. The first two tracklets are in doubt.
    """
    tracklets = tuple(tracklet(100 + 140 * row, number, pictures=pictures) for row, number in enumerate(groups))
    polyps = tuple(
        CountedPolyp(number, tuple(row for row, other in enumerate(groups) if other == number), 1 - 0.08 * number % 0.5)
        for number in sorted(set(groups))
    )
    frames = np.concatenate([np.arange(one.start_frame, one.stop_frame) for one in tracklets] or [np.zeros(0, int)])
    rows = np.repeat(np.arange(len(groups)), LENGTH)
    boxes = Boxes(np.zeros_like(frames), frames, np.tile([16.0, 12.0, 48.0, 36.0], (len(frames), 1)))
    together = np.eye(len(groups), dtype=np.float32)
    pairs: tuple[DoubtfulPair, ...] = ()
    if len(groups) > 1:
        pairs = (DoubtfulPair(0, 1, 0.4, "two?" if groups[0] == groups[1] else "one?"),)
    values: dict[str, Any] = {
        "video": Video("case-01", 300 + 140 * len(groups), fps, 64, 48, source="/secret/folder/case-01.mp4"),
        "interval": CountInterval(max(0, len(polyps) - 1), len(polyps) + 1, 0.95, MEANING),
        "polyps": polyps,
        "tracklets": tracklets,
        "together": together,
        "pairs": pairs,
        "repeated": np.full(60, len(polyps), np.int32),
        "provenance": Provenance(
            "count",
            "2025-01-02T03:04:05+00:00",
            "0.1.0",
            ("/secret/folder/case-01.mp4", "/secret/folder/boxes.json"),
            {
                "min_frames": 30,
                "encoder": "sha256:abc",
                "method": "ap",
                "parameters": {"alpha": 0.5, "of": "/secret/x"},
            },
        ),
        "boxes": boxes,
        "tracklet": rows.astype(np.int32),
        "left_out": 2,
        "seconds": {"decode": 1.25, "embed": 75.0},
        "remarks": ("Frames 10 to 20 could not be read.",),
    }
    return CountReport(**{**values, **changed})


def detected_report(**changed: Any) -> CountReport:
    """Two polyps whose boxes the bundled detector found, and a tracklet that is perhaps no polyp."""
    report = report_of([1, 2])
    values: dict[str, Any] = {
        "tracklets": tuple(replace(one, scores=LookScores(0.75, 0.875, 20)) for one in report.tracklets),
        "detector": DetectorRun("bundled", 2, 360, "The boxes were found by the bundled detector."),
        "set_aside": (
            SetAsideTracklet(
                50,
                81,
                31,
                0.25,
                LookScores(0.5, 0.625, 16),
                60,
                (16.0, 12.0, 48.0, 36.0),
                tuple(picture(frame, 3, width=40, height=40) for frame in (52, 60, 75)),
                picture(60, 3),
            ),
        ),
    }
    return replace(report, **{**values, **changed})
