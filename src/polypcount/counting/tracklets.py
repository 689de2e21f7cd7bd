"""From the boxes of a recording to the tracklets that are counted."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Boxes, Tracklets, Video, tracklets_together
from polypcount.counting.settings import CountSettings
from polypcount.errors import DataError
from polypcount.tracking import TrackRules, link_tracklets, track_boxes

_MOST_NEEDED, _SHARE = 30, 30


@dataclass(frozen=True, eq=False)
class TrackedBoxes:
    """The boxes of a recording, linked to tracklets.

    Attributes:
        boxes: The boxes. If they came with neither polyps nor tracks, they have tracks from our tracker.
        tracked: Whether our tracker made the tracks.
        tracklets: All tracklets of the boxes.
        min_frames: Boxes that a tracklet must have to be counted.
        detected: bool[boxes], whether a detector that ran here gave the box; others were interpolated. None for boxes
            from elsewhere.
    """

    boxes: Boxes
    tracked: bool
    tracklets: Tracklets
    min_frames: int
    detected: NDArray[np.bool_] | None = None

    @property
    def counted(self) -> NDArray[np.int64]:
        """Rows of the tracklets that are long enough, int64[n]."""
        return np.flatnonzero(self.tracklets.box_count >= self.min_frames)

    @property
    def short_share(self) -> float:
        """Share of the boxes of tracklets that are in tracklets too short to be counted; 0 without tracklets."""
        count = self.tracklets.box_count
        return float(count[count < self.min_frames].sum() / max(count.sum(), 1))

    @property
    def named_polyps(self) -> int:
        """How many polyps the boxes came with; 0 where they name none."""
        return len(np.unique(self.boxes.polyp[self.boxes.polyp >= 0]))

    def together(self) -> NDArray[np.int32]:
        """Pairs of tracklets that are long enough, with boxes in one frame, int32[m, 2]."""
        return tracklets_together(self.boxes, self.tracklets, least_boxes=self.min_frames)


def track(boxes: Boxes, video: Video, settings: CountSettings, frame_count: int | None = None) -> TrackedBoxes:
    """Track boxes that came without tracks, and link all boxes to tracklets.

    Args:
        boxes: Boxes of video row 0, by frame.
        video: The recording.
        settings: `tracker` and `min_frames` are used here.
        frame_count: How many frames are counted; all by default.
    """
    tracked = len(boxes) > 0 and not ((boxes.polyp >= 0) | (boxes.track >= 0)).any()
    if tracked:
        if boxes.score.max() > 1:
            raise DataError(
                f"the scores of the boxes must be from 0 to 1 to be tracked, found {boxes.score.max():g}; divide "
                "percentages by 100"
            )
        boxes = track_boxes(boxes, [video.fps], settings.tracker)
    tracklets = link_tracklets(boxes, *link_rule(tracked, video.fps, settings.tracker))
    minimum = settings.min_frames or least_boxes(video.frame_count if frame_count is None else frame_count)
    return TrackedBoxes(boxes, tracked, tracklets, minimum)


def least_boxes(frame_count: int) -> int:
    """Boxes that a tracklet must have by default: 30 as in the paper, which is about a second.

    In a recording of less than 900 frames it is a 30th of the frames: a short clip shows no polyp for long.
    """
    return max(1, min(_MOST_NEEDED, -(-frame_count // _SHARE)))


def link_rule(tracked: bool, fps: float | None, rules: TrackRules) -> tuple[int, float]:
    """The `max_gap` and `min_iou` for linking.

    Tracks and polyps that came with the boxes are cut as in the paper: where a frame is missing, or where the IoU with
    the box before is below 0.1. Our tracker already handles both. It bridges the moments in which a detector misses
    a polyp, and it follows a box to where it is expected, so it does not break off when the camera moves quickly.
    """
    return (rules.lost_frames(fps) + 1, 0.0) if tracked else (1, 0.1)
