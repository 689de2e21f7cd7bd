"""Tracklets while frames go by: they begin, go on, end, and are counted, set aside or left out."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from polypcount.counting.evidence import Evidence, EvidenceCollector
from polypcount.counting.looks import SettledFrame
from polypcount.counting.pictures import FramePixels
from polypcount.counting.result import LookScores, SetAsideTracklet
from polypcount.detection.false_alarms import FalseAlarmRule, tracklet_features
from polypcount.errors import FileError
from polypcount.tracking import OnlineLinker


@dataclass
class OpenTracklet:
    """A tracklet that may go on.

    Attributes:
        number: Its running number.
        start_frame: First frame.
        stop_frame: The frame after the last one so far.
        box_count: How many boxes it has.
        counted_boxes: How many it had when it last changed the count of a live counter.
        looks: Numbers of the looks in which the detector gave it a box; none for boxes from elsewhere.
        frames: Their frames.
        scores: The scores of these boxes.
        best_score: The highest of these scores.
        best_box: The first box that has it, float32[4].
    """

    number: int
    start_frame: int
    stop_frame: int
    box_count: int = 0
    counted_boxes: int = 0
    looks: list[int] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    best_score: float = -1.0
    best_box: NDArray[np.float32] = field(default_factory=lambda: np.zeros(4, np.float32))

    def add_look(self, look: int, frame: int, score: float, box: NDArray[np.float32]) -> None:
        """Note a box that the detector gave it."""
        self.looks.append(look)
        self.frames.append(frame)
        self.scores.append(score)
        if score > self.best_score:
            self.best_score, self.best_box = score, box

    def probability(self, rule: FalseAlarmRule | None) -> float:
        """That it shows a polyp, by the rule; 1 without a rule, or without a detector."""
        if rule is None or not self.looks:
            return 1.0
        features = tracklet_features(self.scores, self.looks[-1] - self.looks[0] + 1)
        return float(rule.probability(features[None])[0])

    def scores_between(self, start: int, stop: int) -> LookScores | None:
        """What the detector gave it in the frames start .. stop - 1; None if it did not look there."""
        first, last = np.searchsorted(self.frames, [start, stop])
        scores = self.scores[first:last]
        return LookScores(float(np.mean(scores)), max(scores), len(scores)) if scores else None


class OpenTracklets:
    """The tracklets of a recording as its frames go by, and what the collector sees of them.

    Args:
        collector: Looks at their boxes.
        link: The `max_gap` and `min_iou` for linking the boxes of a track.
        rule: Of the detector, for tracklets that are perhaps no polyp.

    Attributes:
        open: Those that may go on, by number.
        begun: How many tracklets have begun.
        box_count: Boxes of all tracklets so far.
        longest: Boxes of the longest of them.
    """

    def __init__(
        self, collector: EvidenceCollector, link: tuple[int, float], rule: FalseAlarmRule | None = None
    ) -> None:
        self.open: dict[int, OpenTracklet] = {}
        self.begun = self.box_count = self.longest = 0
        self._rule = rule
        self._collector = collector
        self._linker = OnlineLinker(*link)

    def update(
        self,
        frame: int,
        xyxy: NDArray[np.float32],
        track: NDArray[np.int32],
        pixels: FramePixels,
        settled: SettledFrame | None = None,
        min_boxes: int = 1,
    ) -> tuple[list[int], list[OpenTracklet]]:
        """Take in the boxes of a frame.

        Args:
            frame: Its index, rising.
            xyxy: float32[n, 4] in pixels.
            track: int32[n], -1 for none.
            pixels: Pixels of the frame.
            settled: The frame, if a detector runs here.
            min_boxes: Boxes that a tracklet must have at least. No picture is taken of one that stays alone.

        Returns:
            The numbers of the tracklets with a box in this frame, and the tracklets that have ended.
        """
        numbers, _, ended = self._linker.update(frame, xyxy, track)
        for row, number in enumerate(numbers.tolist()):
            if number < 0:
                continue
            if (tracklet := self.open.get(number)) is None:
                tracklet = self.open[number] = OpenTracklet(number, frame, frame + 1)
                self.begun += 1
            if settled is None or not settled.lonely[row] or min_boxes == 1:
                self._see(tracklet, frame, xyxy[row], pixels)
            tracklet.box_count += 1
            tracklet.stop_frame = frame + 1
            self.box_count += 1
            self.longest = max(self.longest, tracklet.box_count)
            if settled is not None and settled.detected[row]:
                tracklet.add_look(settled.look, frame, float(settled.score[row]), xyxy[row])
        return [number for number in numbers.tolist() if number >= 0], [self.open.pop(number) for number in ended]

    def _see(self, tracklet: OpenTracklet, frame: int, box: NDArray[np.float32], pixels: FramePixels) -> None:
        try:
            self._collector.see(tracklet.number, tracklet.box_count, frame, box, pixels)
        except FileError:  # an image that is damaged: the box stays, without a look at it
            if not tracklet.box_count:
                raise

    def finish(self) -> list[OpenTracklet]:
        """End all tracklets; returns those that had not ended."""
        return [self.open.pop(number) for number in self._linker.finish()]

    def is_likely(self, tracklet: OpenTracklet) -> bool:
        """Whether a tracklet is counted by what the detector gave it so far, if it is long enough."""
        return self._rule is None or tracklet.probability(self._rule) >= self._rule.threshold

    def judge(self, ended: OpenTracklet, min_boxes: int) -> "list[Evidence] | SetAsideTracklet | None":
        """What becomes of a tracklet that has ended: its evidence, set aside, or None if it is too short."""
        if ended.box_count < min_boxes:
            self._collector.forget(ended.number)
            return None
        if not self.is_likely(ended):
            return self._set_aside(ended)
        parts = self._collector.end(ended.number, ended.start_frame, ended.stop_frame, ended.box_count)
        return [replace(part, scores=ended.scores_between(part.start_frame, part.stop_frame)) for part in parts]

    def _set_aside(self, ended: OpenTracklet) -> SetAsideTracklet:
        scores = ended.scores_between(ended.start_frame, ended.stop_frame)
        assert scores is not None
        best = ended.frames[int(np.argmax(ended.scores))]
        left, top, right, bottom = (float(side) for side in ended.best_box)
        views, whole = self._collector.pictures(ended.number)
        span = ended.start_frame, ended.stop_frame, ended.box_count
        return SetAsideTracklet(
            *span, ended.probability(self._rule), scores, best, (left, top, right, bottom), views, whole
        )
