"""What counting a procedure gives: the number, how sure it is, and what it rests on."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Boxes, Polyp, Provenance, Video
from polypcount.errors import DataError

# Who writes files: a room that comes after this one, so it is known by name alone.
_WRITER = "polypcount.report:write_report"
Doubt = Literal["one?", "two?"]


@dataclass(frozen=True)
class Picture:
    """A part of a frame, or a whole one, as a JPEG.

    frame: index of the frame.
    jpeg: the file's bytes.
    width, height: pixels of the JPEG.
    xyxy: the box in pixels of the JPEG.
    quality: 0 to 1, how well the polyp is to be seen; see `quality.py`.
    """

    frame: int
    jpeg: bytes = field(repr=False)
    width: int
    height: int
    xyxy: tuple[float, float, float, float]
    quality: float


@dataclass(frozen=True)
class CountedTracklet:
    """One tracklet that was counted.

    start_frame, stop_frame: it is seen from start_frame up to, not including, stop_frame.
    box_count: how many boxes it has.
    polyp: number of the polyp that it was put to, 1, 2, ...
    views: pictures of the box and a little around it, over time; none where pictures were not wanted.
    whole: its best frame as a whole; None likewise.
    """

    start_frame: int
    stop_frame: int
    box_count: int
    polyp: int
    views: tuple[Picture, ...] = ()
    whole: Picture | None = None


@dataclass(frozen=True)
class CountedPolyp:
    """One polyp.

    number: 1, 2, ... in the order in which they are first seen.
    tracklets: rows in the report's tracklets, in time order.
    certainty: 0 to 1, how much of this group comes out again: the mean over the repetitions of the largest overlap
        (Jaccard: shared tracklets / tracklets of either) that one of their groups has with it.
    """

    number: int
    tracklets: tuple[int, ...]
    certainty: float


@dataclass(frozen=True)
class DoubtfulPair:
    """Two tracklets about which the repetitions do not agree, standing for a decision that changes the count.

    first, second: rows in the report's tracklets, first < second.
    together: 0 to 1, the share of repetitions in which they are one polyp.
    doubt: "one?" where they were counted as two polyps and may be one; "two?" where it is the other way round.
    """

    first: int
    second: int
    together: float
    doubt: Doubt

    @property
    def uncertainty(self) -> float:
        """1 where half of the repetitions say so, 0 where all agree: 1 - abs(2 * together - 1)."""
        return 1 - abs(2 * self.together - 1)


@dataclass(frozen=True)
class CountInterval:
    """From low to high, both included.

    level: share of procedures whose true count such an interval is meant to hold.
    meaning: the same in words, with what it was measured on.
    """

    low: int
    high: int
    level: float
    meaning: str


@dataclass(frozen=True, eq=False)
class CountReport:
    """The polyps of one procedure.

    video: the recording; its frame_count is what was counted over, its id is what the report calls it.
    interval: of the count.
    polyps, tracklets: what was counted; tracklets are in time order.
    together: float32[n, n], for every two tracklets the share of repetitions in which they are one polyp.
    pairs: decisions that change the count, most uncertain first.
    repeated: int32[repetitions], the count of each repetition.
    boxes: all boxes of the recording, video row 0; None where they were not kept, as in live counting.
    tracklet: int32[boxes], row in tracklets, -1 for a box that was not counted.
    left_out: how many tracklets were too short to count.
    retired: polyps of a stream of days, seen so long ago that nothing but their number is kept; 0 otherwise.
    seconds: where the time went, by step: decode, crop, embed, group, ...
    remarks: what a reader should know, a sentence each.
    """

    video: Video
    interval: CountInterval
    polyps: tuple[CountedPolyp, ...]
    tracklets: tuple[CountedTracklet, ...]
    together: NDArray[np.float32]
    pairs: tuple[DoubtfulPair, ...]
    repeated: NDArray[np.int32]
    provenance: Provenance
    boxes: Boxes | None = None
    tracklet: NDArray[np.int32] | None = None
    left_out: int = 0
    retired: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.tracklets)
        members = sorted(row for polyp in self.polyps for row in polyp.tracklets)
        if members != list(range(n)) or self.together.shape != (n, n):
            raise DataError(f"a count report must put each of its {n} tracklets to one polyp, found {members[:9]}")
        if self.boxes is not None and (self.tracklet is None or len(self.tracklet) != len(self.boxes)):
            raise DataError("a count report with boxes must name the tracklet of each, or -1")

    @property
    def count(self) -> int:
        """How many distinct polyps there are."""
        return len(self.polyps) + self.retired

    def visible_frames(self, polyp: CountedPolyp) -> int:
        """In how many frames it has a box: those of its tracklets, which never share a frame."""
        return sum(self.tracklets[row].box_count for row in polyp.tracklets)

    def seconds_of(self, frames: int) -> float | None:
        """Frames as seconds; None where the frame rate is not known."""
        return None if self.video.fps is None else frames / self.video.fps

    def polyp_of_boxes(self) -> NDArray[np.int32]:
        """int32[boxes], number of each box's polyp less 1, -1 for a box that was not counted; needs boxes."""
        if self.boxes is None or self.tracklet is None:
            raise DataError("the boxes of this count were not kept: count the recording as a file to have them")
        numbers = np.array([tracklet.polyp - 1 for tracklet in self.tracklets] + [-1], np.int32)
        return numbers[self.tracklet]

    def counted_boxes(self) -> tuple[Boxes, tuple[Polyp, ...]]:
        """The boxes with the polyps that were counted in place of any that they came with, and those polyps."""
        polyp = self.polyp_of_boxes()
        assert self.boxes is not None
        boxes = self.boxes
        found = Boxes(boxes.video, boxes.frame, boxes.xyxy, boxes.score, polyp, boxes.track)
        return found, tuple(Polyp(f"{self.video.id}-{each.number}", self.video.id) for each in self.polyps)

    def save(self, folder: str | os.PathLike[str], **wanted: Any) -> Path:
        """Write report.html, count.json, polyps.csv and tracklets.csv; see `polypcount.report.write_report`."""
        module, _, name = _WRITER.partition(":")
        written: Path = getattr(import_module(module), name)(self, folder, **wanted)
        return written
