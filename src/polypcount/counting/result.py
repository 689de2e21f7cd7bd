"""The result of a count: the number of polyps, how certain it is, and what it rests on."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Boxes, Embeddings, Polyp, Provenance, Video
from polypcount.errors import DataError
from polypcount.video import FrameMask

if TYPE_CHECKING:
    from polypcount.counting.basis import CountBasis

# The function is in a room above this one, so it is loaded by its name when it is needed.
_WRITER = "polypcount.report:write_report"
Doubt = Literal["one?", "two?"]


@dataclass(frozen=True)
class Picture:
    """A part of a frame, or a whole one, as a JPEG.

    Attributes:
        frame: Index of the frame.
        jpeg: The bytes of the file.
        width: Width of the JPEG in pixels.
        height: Height of the JPEG in pixels.
        xyxy: The box in pixels of the JPEG.
        quality: 0 to 1, how well the polyp can be seen; see `counting.pictures.quality`.
    """

    frame: int
    jpeg: bytes = field(repr=False)
    width: int
    height: int
    xyxy: tuple[float, float, float, float]
    quality: float


@dataclass(frozen=True)
class LookScores:
    """What a detector that ran here gave a tracklet; boxes between two looks have no score of their own.

    Attributes:
        mean: Mean score of its boxes.
        best: Their highest score.
        looks: In how many looks it has a box.
    """

    mean: float
    best: float
    looks: int


@dataclass(frozen=True)
class CountedTracklet:
    """One tracklet that was counted.

    Attributes:
        start_frame: First frame.
        stop_frame: The frame after the last one.
        box_count: How many boxes it has.
        polyp: Number of its polyp: 1, 2, ...
        views: Pictures of the box and a little around it, over time; none without pictures.
        whole: Its best frame as a whole; None without pictures.
        scores: What a detector that ran here gave it; None for boxes from elsewhere.
    """

    start_frame: int
    stop_frame: int
    box_count: int
    polyp: int
    views: tuple[Picture, ...] = ()
    whole: Picture | None = None
    scores: LookScores | None = None


@dataclass(frozen=True)
class SetAsideTracklet:
    """A tracklet that is perhaps no polyp, by the detector's rule for false alarms. It was not counted.

    Attributes:
        start_frame: First frame.
        stop_frame: The frame after the last one.
        box_count: How many boxes it has.
        probability: 0 to 1, that it shows a polyp; see `polypcount.detection.false_alarms.FalseAlarmRule`.
        scores: What the detector gave it.
        best_frame: Frame of the box with the highest score.
        best_box: That box: left, top, right, bottom in pixels of the frame.
        views: Pictures over time; none without pictures.
        whole: Its best frame as a whole; None without pictures.
    """

    start_frame: int
    stop_frame: int
    box_count: int
    probability: float
    scores: LookScores
    best_frame: int
    best_box: tuple[float, float, float, float]
    views: tuple[Picture, ...] = ()
    whole: Picture | None = None


@dataclass(frozen=True)
class DetectorRun:
    """A detector that found the boxes of a recording.

    Attributes:
        name: "bundled", or the name of its file.
        step: It looked at every `step`-th frame; boxes in the frames between were interpolated.
        looks: How many frames it looked at.
        note: What it means for the count and the interval, in words; for the first lines of a report.
    """

    name: str
    step: int
    looks: int
    note: str

    @property
    def bundled(self) -> bool:
        """Whether it is the bundled one."""
        return self.name == "bundled"


@dataclass(frozen=True)
class CountedPolyp:
    """One polyp.

    Attributes:
        number: 1, 2, ... in the order in which polyps are first seen.
        tracklets: Rows in the report's tracklets, in time order.
        certainty: 0 to 1, how much of this group comes out again. It is the mean over the repetitions of the largest
            Jaccard overlap (shared tracklets / tracklets of either) of this group with a group of the repetition.
    """

    number: int
    tracklets: tuple[int, ...]
    certainty: float


@dataclass(frozen=True)
class DoubtfulPair:
    """Two tracklets about which the repetitions disagree; they stand for a decision that changes the count.

    Attributes:
        first: Row in the report's tracklets.
        second: Row in the report's tracklets, above `first`.
        together: 0 to 1, the share of repetitions in which they are one polyp.
        doubt: "one?" if they were counted as two polyps and may be one; "two?" if they were counted as one.
    """

    first: int
    second: int
    together: float
    doubt: Doubt

    @property
    def uncertainty(self) -> float:
        """1 if half of the repetitions join the pair, 0 if all agree: 1 - abs(2 * together - 1)."""
        return 1 - abs(2 * self.together - 1)


@dataclass(frozen=True)
class CountInterval:
    """From low to high, both included.

    Attributes:
        low: Smallest count.
        high: Largest count.
        level: Share of recordings whose true count such an interval should hold.
        meaning: The same in words, with what it was measured on.
    """

    low: int
    high: int
    level: float
    meaning: str


@dataclass(frozen=True, eq=False, repr=False)
class CountReport:
    """The polyps of one recording.

    Attributes:
        video: The recording; its id is what the report calls it.
        interval: Interval of the count; None where nothing can be claimed.
        no_interval: Why there is no interval, a sentence for the reader; empty if there is one.
        polyps: The polyps, in the order in which they are first seen.
        tracklets: The tracklets that were counted, in time order.
        together: float32[n, n], for every two tracklets the share of repetitions in which they are one polyp.
        pairs: Decisions that change the count, most uncertain first.
        repeated: int32[repetitions], the count of each repetition.
        provenance: How the count was made.
        boxes: All boxes of the recording, video row 0; None where they were not kept, as in live counting.
        tracklet: int32[boxes], row in tracklets, -1 for a box that was not counted.
        left_out: How many tracklets were too short to count.
        named_polyps: How many polyps the boxes came with; 0 where they name none.
        retired: Number of polyps of a long stream that are counted but have no tracklets left; 0 otherwise.
        part: The frames that were counted; None for all.
        seconds: Time spent, by step: decode, crop, embed, group, ...
        remarks: What a reader should know, a sentence each.
        mask: What is blacked out in the pictures, and must be in any further ones; None for nothing.
        embeddings: The vector of each tracklet and of its frames that were looked at, in the order of the tracklets.
        times: float64[frame_count + 1], when each frame is shown, in seconds from the first one, and when the last one
            ends. None where the frame rate is constant, so that frame k is shown at k / fps, or not known. It needs
            the boxes.
        detector: The detector that found the boxes here; None for boxes from elsewhere.
        detected: bool[boxes], whether the detector gave the box; others were interpolated between two of its boxes.
            None for boxes from elsewhere.
        set_aside: Tracklets that are perhaps no polyp, in time order; they were not counted.
        basis: What the tracklets were grouped by; None in live counting.
    """

    video: Video
    interval: CountInterval | None
    polyps: tuple[CountedPolyp, ...]
    tracklets: tuple[CountedTracklet, ...]
    together: NDArray[np.float32]
    pairs: tuple[DoubtfulPair, ...]
    repeated: NDArray[np.int32]
    provenance: Provenance
    boxes: Boxes | None = None
    tracklet: NDArray[np.int32] | None = None
    left_out: int = 0
    named_polyps: int = 0
    retired: int = 0
    part: range | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    mask: FrameMask | None = None
    embeddings: Embeddings | None = None
    no_interval: str = ""
    times: NDArray[np.float64] | None = None
    detector: DetectorRun | None = None
    detected: NDArray[np.bool_] | None = None
    set_aside: tuple[SetAsideTracklet, ...] = ()
    basis: "CountBasis | None" = None

    def __post_init__(self) -> None:
        n = len(self.tracklets)
        members = sorted(row for polyp in self.polyps for row in polyp.tracklets)
        if members != list(range(n)) or self.together.shape != (n, n):
            raise DataError(f"a count report must put each of its {n} tracklets to one polyp, found {members[:9]}")
        if (self.interval is None) != bool(self.no_interval):
            raise DataError("a count report must have an interval, or say why it has none")
        if self.boxes is not None and (self.tracklet is None or len(self.tracklet) != len(self.boxes)):
            raise DataError("a count report with boxes must name the tracklet of each, or -1")
        if self.detected is not None and (self.boxes is None or len(self.detected) != len(self.boxes)):
            raise DataError("a count report that says which boxes were detected must say it of each box")
        if self.times is not None and (self.boxes is None or self.times.shape != (self.video.frame_count + 1,)):
            raise DataError("a count report with times must have one for each frame and one for the end, and boxes")

    def __repr__(self) -> str:
        """The count alone: the columns would fill many screens."""
        between = f"{self.interval.low} to {self.interval.high}" if self.interval else None
        return (
            f"<CountReport of {self.video.id}: count {self.count}, interval {between}, {len(self.tracklets)} tracklets>"
        )

    @property
    def count(self) -> int:
        """How many distinct polyps there are."""
        return len(self.polyps) + self.retired

    def visible_frames(self, polyp: CountedPolyp) -> int:
        """In how many frames a polyp has a box; its tracklets never share a frame."""
        return sum(self.tracklets[row].box_count for row in polyp.tracklets)

    def visible_seconds(self, polyp: CountedPolyp) -> float | None:
        """How long these frames are shown: the sum of their durations; None where the frame rate is not known."""
        if self.times is None:
            return self.seconds_of(self.visible_frames(polyp))
        assert self.boxes is not None
        frames = np.unique(self.boxes.frame[self.polyp_of_boxes() == polyp.number - 1])
        return float(np.diff(self.times)[frames].sum())

    def seconds_of(self, frame: int) -> float | None:
        """When a frame is shown, in seconds from the first one; None where the frame rate is not known.

        The frame after the last one stands for the end of the recording.
        """
        if self.times is not None:
            return float(self.times[min(frame, len(self.times) - 1)])
        return None if self.video.fps is None else frame / self.video.fps

    def polyp_of_boxes(self) -> NDArray[np.int32]:
        """The polyp of each box, int32[boxes]: its number minus 1, or -1 for a box that was not counted."""
        if self.boxes is None or self.tracklet is None:
            raise DataError("the boxes of this count were not kept; count the recording as a file to have them")
        numbers = np.array([tracklet.polyp - 1 for tracklet in self.tracklets] + [-1], np.int32)
        return numbers[self.tracklet]

    def counted_boxes(self) -> tuple[Boxes, tuple[Polyp, ...]]:
        """The boxes with the polyps that were counted, and these polyps."""
        polyp = self.polyp_of_boxes()
        assert self.boxes is not None
        boxes = self.boxes
        counted = Boxes(boxes.video, boxes.frame, boxes.xyxy, boxes.score, polyp, boxes.track)
        return counted, tuple(Polyp(f"{self.video.id}-{each.number}", self.video.id) for each in self.polyps)

    def save(self, folder: str | os.PathLike[str], **options: Any) -> Path:
        """Write report.html, count.json, polyps.csv and tracklets.csv; see `polypcount.report.write_report`."""
        module, _, name = _WRITER.partition(":")
        written: Path = getattr(import_module(module), name)(self, folder, **options)
        return written
