"""The tracker: from the boxes of a detector to tracks, by ByteTrack of the library `trackers`.

Frame by frame, boxes are matched to tracks by overlap, those of high score first. A track only says that boxes show
the same thing while it stays in view. Whether a polyp comes back is decided by grouping, not by tracking.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus import Boxes, refuse_crowded
from polypcount.corpus.columns import box_column, float_column
from polypcount.errors import DataError, PolypcountError, first_line

if TYPE_CHECKING:
    from supervision import Detections
    from trackers import ByteTrackTracker

ASSUMED_FPS = 25.0  # where the frame rate is unknown: the lower of the two rates that most endoscopy processors have


@dataclass(frozen=True)
class TrackRules:
    """What begins, continues and ends a track.

    Attributes:
        confidence: A track begins with a box of at least this score. The default is half of the range of scores, so
            that a box which is more likely mucosa than polyp begins no track. Annotations have the score 1.
        low_confidence: A box of at least this score may continue a track where no better box does: a polyp that is
            blurred or half hidden has a low score, but is at the expected position. Boxes below it are in no track.
        lost_seconds: How long a track lives without a box, for frames in which the detector misses the polyp. Short,
            since after half a second another polyp may be there, and telling them apart is the task of grouping.
        min_iou: Least IoU of a box with the expected box of its track. Low, as in linking, since an endoscope moves
            quickly.
        min_boxes: Consecutive boxes after which a track counts. With 1, a track has its number from its first box on.
            With more, short flashes of false boxes get no number, and neither do the first `min_boxes` - 1 boxes of
            every track.
    """

    confidence: float = 0.5
    low_confidence: float = 0.1
    lost_seconds: float = 0.2
    min_iou: float = 0.1
    min_boxes: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.low_confidence <= self.confidence <= 1:
            raise DataError(
                "tracking: low_confidence and confidence must be from 0 to 1, the first not above the second, "
                f"found {self.low_confidence} and {self.confidence}"
            )
        if not (math.isfinite(self.lost_seconds) and self.lost_seconds >= 0):
            raise DataError(f"tracking: lost_seconds must be at least 0, found {self.lost_seconds}")
        if not 0 < self.min_iou <= 1:
            raise DataError(f"tracking: min_iou must be above 0 and at most 1, found {self.min_iou}")
        if not self.min_boxes >= 1:
            raise DataError(f"tracking: min_boxes must be at least 1, found {self.min_boxes}")

    def lost_frames(self, fps: float | None) -> int:
        """How many frames a track lives without a box: lost_seconds * fps, rounded; fps is 25 where it is None."""
        rate = ASSUMED_FPS if fps is None else fps
        if not (math.isfinite(rate) and rate > 0):
            raise DataError(f"tracking: fps must be a positive number or None, found {fps}")
        return round(self.lost_seconds * rate)


_DEFAULT = TrackRules()


class OnlineTracker:
    """Tracks of one video, frame by frame. It remembers the tracks that live, and nothing of those that ended."""

    def __init__(self, fps: float | None, rules: TrackRules = _DEFAULT) -> None:
        self._rules = rules
        self._tracker, self._detections = _bytetrack(rules, rules.lost_frames(fps))
        self._frame, self._begun = -1, 0

    def update(self, frame: int, xyxy: ArrayLike, score: ArrayLike) -> NDArray[np.int32]:
        """Match the boxes of a frame to tracks.

        Args:
            frame: Frames come in rising order; one that is left out has no boxes.
            xyxy: float32[n, 4] in pixels.
            score: float32[n].

        Returns:
            int32[n], the track of each box, -1 for none; tracks are numbered from 0 as they begin.
        """
        boxes, scores = box_column("boxes", xyxy), float_column("boxes", "score", score)
        if len(boxes) != len(scores):
            raise DataError(f"tracking: each box needs a score, found {len(boxes)} boxes and {len(scores)} scores")
        if frame <= self._frame:
            raise DataError(f"tracking: frames must come in rising order from 0, found {frame} after {self._frame}")
        self._pass(frame - self._frame - 1)
        self._frame = int(frame)
        tracks = np.full(len(boxes), -1, np.int32)
        rows = np.flatnonzero(scores >= np.float32(self._rules.low_confidence))
        if not len(rows):
            self._pass(1)
            return tracks
        # The library compares scores sometimes as float32, sometimes as float64; 0 and 1 are the same in both.
        high = (scores >= np.float32(self._rules.confidence)).astype(np.float32)
        matched = self._tracker.update(self._detections(boxes[rows], confidence=high[rows], data={"row": rows}))
        rows, numbers = np.asarray(matched.data["row"]), np.asarray(matched.tracker_id)
        tracks[rows] = numbers
        if self._rules.min_boxes == 1:
            self._number(tracks, rows[(numbers == -1) & (high[rows] == 1)])
        return tracks

    def _pass(self, frames: int) -> None:
        """Let this many frames without boxes go by. Once all tracks have ended, nothing more can happen."""
        while frames > 0 and self._tracker.tracks:
            self._tracker.update(self._detections.empty())
            frames -= 1

    def _number(self, tracks: NDArray[np.int32], rows: NDArray[np.int64]) -> None:
        """Number the tracks that have begun with these boxes.

        The library would number them at their second box, and end them after one frame without a box, in place of
        `lost_seconds`. It keeps new tracks in the order of their boxes.
        """
        begun = [track for track in self._tracker.tracks if track.tracker_id == -1]
        for row, track in zip(rows, begun, strict=True):
            track.tracker_id = tracks[row] = self._begun
            self._begun += 1


def track_boxes(boxes: Boxes, fps_of_video: Sequence[float | None], rules: TrackRules = _DEFAULT) -> Boxes:
    """The same boxes, rows in the same order, with the tracks that `OnlineTracker` gives them, video by video.

    Args:
        boxes: Their tracks are replaced.
        fps_of_video: Frames per second of each video of the corpus, None where it is unknown.
        rules: What begins, continues and ends a track.
    """
    if len(boxes) and boxes.video.max() >= len(fps_of_video):
        raise DataError(f"boxes are of {boxes.video.max() + 1} videos, given are the fps of {len(fps_of_video)}")
    refuse_crowded(boxes, [f"video {row}" for row in range(len(fps_of_video))])
    track = np.full(len(boxes), -1, np.int32)
    for video in np.unique(boxes.video).tolist():
        tracker = OnlineTracker(fps_of_video[video], rules)
        order = np.flatnonzero(boxes.video == video)
        order = order[np.argsort(boxes.frame[order], kind="stable")]
        frames, starts = np.unique(boxes.frame[order], return_index=True)
        for frame, rows in zip(frames.tolist(), np.split(order, starts[1:]), strict=True):
            track[rows] = tracker.update(frame, boxes.xyxy[rows], boxes.score[rows])
    return Boxes(boxes.video, boxes.frame, boxes.xyxy, boxes.score, boxes.polyp, track)


def _bytetrack(rules: TrackRules, lost_frames: int) -> tuple["ByteTrackTracker", type["Detections"]]:
    """The library's tracker, and its type for the boxes of a frame. Loaded late, since it takes a second."""
    try:
        from supervision import Detections
        from trackers import ByteTrackTracker
    except ImportError as problem:
        raise PolypcountError(
            f"the tracker cannot be loaded: {first_line(problem)}. On a machine without a screen, run "
            "`pip uninstall opencv-python` and `pip install opencv-python-headless`; or use boxes with track numbers"
        ) from None
    tracker = ByteTrackTracker(
        lost_track_buffer=lost_frames,
        frame_rate=30.0,  # at this rate, the library's buffer is a number of frames
        track_activation_threshold=0.5,
        high_conf_det_threshold=0.5,
        minimum_iou_threshold=rules.min_iou,
        minimum_consecutive_frames=rules.min_boxes,
    )
    return tracker, Detections
