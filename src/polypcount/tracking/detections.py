"""Boxes of a detector, which has no memory, into tracks: ByteTrack, as the library `trackers` has it.

Boxes of one frame after the other are matched to the tracks by overlap, those of high score first. A track only says
that boxes are of one thing while it stays in view; a polyp that comes back is a matter of grouping, not of tracking.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus import Boxes
from polypcount.corpus.columns import box_column, float_column
from polypcount.errors import DataError, PolypcountError, first_line

if TYPE_CHECKING:
    from supervision import Detections
    from trackers import ByteTrackTracker

ASSUMED_FPS = 25.0  # where nothing says the rate: the slower of the two that endoscopy processors mostly give


@dataclass(frozen=True)
class TrackRules:
    """What begins, continues and ends a track.

    confidence: a track begins with a box of at least this score. Half of the detector's range, so that what it rather
        takes for mucosa begins nothing. Annotations have the score 1.
    low_confidence: a box of at least this score may continue a track, where no better box does: a polyp that is
        blurred or half hidden is scored low, but is where it is expected. Boxes below it are in no track.
    lost_seconds: how long a track lives without a box: some frames that a detector misses. Short, since what comes
        back after half a second may be another polyp in its place, and to tell that is the grouping's task.
    min_iou: least IoU of a box with the place where its track is expected. Low, as in linking, since an endoscope moves
        quickly.
    min_boxes: consecutive boxes after which a track counts. 1 numbers a track from its first box on. With more, flashes
        of false boxes get no number, and neither do the first `min_boxes` - 1 boxes of every track.
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
        """How many frames a track lives without a box: lost_seconds x fps, rounded."""
        rate = ASSUMED_FPS if fps is None else fps
        if not (math.isfinite(rate) and rate > 0):
            raise DataError(f"tracking: fps must be a positive number or None, found {fps}")
        return round(self.lost_seconds * rate)


_DEFAULT = TrackRules()


class OnlineTracker:
    """Tracks of one video, frame by frame. It remembers the tracks that live, and nothing of those that ended.

    fps: frames per second of the video; where it is None, 25.
    """

    def __init__(self, fps: float | None, rules: TrackRules = _DEFAULT) -> None:
        self._rules = rules
        self._tracker, self._detections = _bytetrack(rules, rules.lost_frames(fps))
        self._frame = -1
        self._begun = 0

    def update(self, frame: int, xyxy: ArrayLike, score: ArrayLike) -> NDArray[np.int32]:
        """Track of each box of a frame, int32[n], -1 for none; tracks are numbered from 0 as they begin.

        xyxy: float32[n, 4] in pixels.
        score: float32[n].

        Frames come in rising order; a frame that is left out is one without boxes.
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
        # The library compares a score here as float32 and there as float64; 0 and 1 are the same in both.
        high = (scores >= np.float32(self._rules.confidence)).astype(np.float32)
        found = self._tracker.update(self._detections(boxes[rows], confidence=high[rows], data={"row": rows}))
        rows, numbers = np.asarray(found.data["row"]), np.asarray(found.tracker_id)
        tracks[rows] = numbers
        if self._rules.min_boxes == 1:
            self._number(tracks, rows[(numbers == -1) & (high[rows] == 1)])
        return tracks

    def _pass(self, frames: int) -> None:
        """Let so many frames without boxes go by. Once all tracks have ended, nothing more can happen."""
        while frames > 0 and self._tracker.tracks:
            self._tracker.update(self._detections.empty())
            frames -= 1

    def _number(self, tracks: NDArray[np.int32], rows: NDArray[np.int64]) -> None:
        """Number the tracks that have begun with these boxes.

        The library would do so at their second box, and until then give them one frame to live in place of
        `lost_seconds`. It keeps new tracks in the order of their boxes.
        """
        begun = [track for track in self._tracker.tracks if track.tracker_id == -1]
        for row, track in zip(rows, begun, strict=True):
            track.tracker_id = tracks[row] = self._begun
            self._begun += 1


def track_boxes(boxes: Boxes, fps_of_video: Sequence[float | None], rules: TrackRules = _DEFAULT) -> Boxes:
    """The same boxes, rows in the same order, with the track that `OnlineTracker` gives them; each video on its own.

    fps_of_video: frames per second of each video of the corpus, None where it is not known.
    """
    if len(boxes) and boxes.video.max() >= len(fps_of_video):
        raise DataError(f"boxes are of {boxes.video.max() + 1} videos, given are the fps of {len(fps_of_video)}")
    track = np.full(len(boxes), -1, np.int32)
    order = np.lexsort((boxes.frame, boxes.video))
    video, frame = boxes.video[order], boxes.frame[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (np.diff(video) != 0) | (np.diff(frame) != 0)
    tracker, tracked = None, -1
    for rows in np.split(order, np.flatnonzero(begins)[1:]) if len(order) else []:
        if tracker is None or boxes.video[rows[0]] != tracked:
            tracked = int(boxes.video[rows[0]])
            tracker = OnlineTracker(fps_of_video[tracked], rules)
        track[rows] = tracker.update(int(boxes.frame[rows[0]]), boxes.xyxy[rows], boxes.score[rows])
    return Boxes(boxes.video, boxes.frame, boxes.xyxy, boxes.score, boxes.polyp, track)


def _bytetrack(rules: TrackRules, lost_frames: int) -> tuple["ByteTrackTracker", type["Detections"]]:
    """The library's tracker, and its type for the boxes of a frame. A second to load, so only who tracks loads it."""
    try:
        from supervision import Detections
        from trackers import ByteTrackTracker
    except ImportError as problem:
        raise PolypcountError(
            f"the tracker cannot be loaded: {first_line(problem)}. Where a library of the screen is missing, run "
            "`pip uninstall opencv-python` and `pip install opencv-python-headless`; or bring boxes with track numbers"
        ) from None
    tracker = ByteTrackTracker(
        lost_track_buffer=lost_frames,
        frame_rate=30.0,  # at which the buffer is in frames
        track_activation_threshold=0.5,
        high_conf_det_threshold=0.5,
        minimum_iou_threshold=rules.min_iou,
        minimum_consecutive_frames=rules.min_boxes,
    )
    return tracker, Detections
