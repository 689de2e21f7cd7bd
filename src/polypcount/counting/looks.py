"""A detector looks at every k-th frame of a recording; boxes in the frames between are interpolated."""

import time
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from polypcount.detection import Detector
from polypcount.tracking import OnlineTracker, TrackRules
from polypcount.tracking.tracker import ASSUMED_FPS
from polypcount.video import FrameView

LOOKS_PER_SECOND = 10  # at least; a polyp moves little in 100 ms, and a look costs more than decoding a frame
SHORTEST_SECONDS = 2  # of a recording that is not looked at in every frame


def look_step(fps: float | None, frame_count: int | None = None) -> int:
    """Every how many frames a detector looks: fps / 10, rounded down, at least 1. So 10 to 15 times a second.

    Every frame of a recording of less than two seconds is looked at.

    Args:
        fps: Frames per second; 25 is assumed where it is None.
        frame_count: How many frames the recording has; None where that is not known, as in a stream.
    """
    rate = fps or ASSUMED_FPS
    if frame_count is not None and frame_count < SHORTEST_SECONDS * rate:
        return 1
    return max(1, int(1.01 * rate / LOOKS_PER_SECOND))  # 29.97 frames a second are taken for 30


@dataclass
class LookFigures:
    """How a detector looked at a recording; all 0 where none did.

    Attributes:
        step: It looked at every `step`-th frame.
        frames: How many frames could be read.
        looks: How often it looked.
        threshold: The score at which a box begins a track.
        best_score: The highest score of a box; 0 without a box.
        seconds: Time that it took.
    """

    step: int = 0
    frames: int = 0
    looks: int = 0
    threshold: float = 0.0
    best_score: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class SettledFrame:
    """A frame whose boxes are final.

    Attributes:
        frame: Its index.
        view: Its pixels.
        xyxy: float32[n, 4], the boxes, in pixels.
        score: float32[n].
        track: int32[n], -1 for none.
        detected: bool[n], whether the detector gave the box; others were interpolated.
        lonely: bool[n], whether the box is the only one of its track.
        look: Number of the look; looks that were not possible are counted. -1 where the detector did not look.
    """

    frame: int
    view: FrameView
    xyxy: NDArray[np.float32]
    score: NDArray[np.float32]
    track: NDArray[np.int32]
    detected: NDArray[np.bool_]
    lonely: NDArray[np.bool_]
    look: int = -1


@dataclass
class _HeldFrame:
    """A frame that may get further boxes. boxes: Of each its position and score [5], track, and whether detected."""

    frame: int
    view: FrameView
    look: int = -1
    boxes: list[tuple[NDArray[np.float64], int, bool]] = field(default_factory=list)


@dataclass(frozen=True)
class _LastBox:
    """The last box of a track that goes on: number and frame of its look. boxes: How many looks gave it one."""

    look: int
    frame: int
    box: NDArray[np.float64]
    boxes: int


class Looks:
    """Finds and tracks the boxes of a recording, frame by frame.

    Between two boxes of a track lie frames that the detector did not look at, or in which it missed the polyp. They get
    a box on the straight line between the two, with a score in between. So a frame is final only when each track
    with a box in it or before it has a later box, or has ended. Until then frames are held: at most those of
    `lost_seconds` and of a look, and none where nothing is tracked.

    Args:
        detector: Finds the boxes.
        fps: Frames per second, None where it is not known.
        rules: For the tracker.
        step: The detector looks at every `step`-th frame.
        first: The frame at which it looks first.

    Attributes:
        figures: What was done so far.
    """

    def __init__(self, detector: Detector, fps: float | None, rules: TrackRules, step: int, first: int = 0) -> None:
        self.figures = LookFigures(step, threshold=rules.confidence)
        self._detector = detector
        rate = (fps or ASSUMED_FPS) / step
        self._tracker, self._lost_looks = OnlineTracker(rate, rules), rules.lost_frames(rate)
        self._first, self._look = first, -1
        self._held: deque[_HeldFrame] = deque()
        self._last: dict[int, _LastBox] = {}
        self._lonely: set[int] = set()  # tracks that have ended with one box, in a frame that is held

    def update(self, frame: int, view: FrameView) -> list[SettledFrame]:
        """Take in the next frame that could be read; returns the frames that are now final, in order.

        If a frame that the detector should look at could not be read, it looks at the next one.

        Raises:
            FileError: The pixels of the frame cannot be read. It is then left out.
        """
        look = (frame - self._first) // self.figures.step
        held = _HeldFrame(frame, view)
        if look > self._look:
            begun = time.perf_counter()
            xyxy, score = self._detector.detect(view)
            self.figures.seconds += time.perf_counter() - begun
            self._look = held.look = look
            self.figures.looks += 1
            self.figures.best_score = max(self.figures.best_score, float(score.max(initial=0.0)))
            self._held.append(held)
            self._track(held, xyxy, score)
        else:
            self._held.append(held)
        self.figures.frames += 1
        return self._settle(min((last.frame for last in self._last.values()), default=frame + 1))

    def finish(self) -> list[SettledFrame]:
        """The remaining frames: no track goes on."""
        self._drop([*self._last])
        return self._settle(self._held[-1].frame + 1) if self._held else []

    def _track(self, now: _HeldFrame, xyxy: NDArray[np.float32], score: NDArray[np.float32]) -> None:
        """Put the boxes of a look into its frame, and boxes between them and the last ones of their tracks."""
        tracks = self._tracker.update(now.look, xyxy, score).tolist()
        boxes = np.column_stack([xyxy, score]).astype(np.float64)
        now.boxes += [(box, track, True) for box, track in zip(boxes, tracks, strict=True)]
        for box, track in zip(boxes, tracks, strict=True):
            if track < 0:
                continue
            if (last := self._last.get(track)) is not None:
                for between in self._held:
                    if last.frame < between.frame < now.frame:
                        share = (between.frame - last.frame) / (now.frame - last.frame)
                        between.boxes.append((last.box + share * (box - last.box), track, False))
            self._last[track] = _LastBox(now.look, now.frame, box, 1 if last is None else last.boxes + 1)
        self._drop([track for track, last in self._last.items() if now.look - last.look > self._lost_looks])

    def _drop(self, tracks: list[int]) -> None:
        """End tracks."""
        self._lonely.update(track for track in tracks if self._last.pop(track).boxes == 1)

    def _settle(self, before: int) -> list[SettledFrame]:
        """The held frames before a frame."""
        settled = []
        while self._held and self._held[0].frame < before:
            held = self._held.popleft()
            boxes = np.array([box for box, _, _ in held.boxes], np.float32).reshape(-1, 5)
            tracks = [track for _, track, _ in held.boxes]
            detected = np.array([given for _, _, given in held.boxes], bool)
            lonely = np.array([track in self._lonely for track in tracks], bool)
            self._lonely.difference_update(tracks)
            columns = boxes[:, :4], boxes[:, 4], np.array(tracks, np.int32), detected, lonely
            settled.append(SettledFrame(held.frame, held.view, *columns, held.look))
        return settled
