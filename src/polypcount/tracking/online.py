"""Tracklets while the recording still runs: the rule of `link_tracklets`, frame by frame."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus import iou
from polypcount.corpus.columns import box_column, int_column
from polypcount.errors import DataError


class Linked(NamedTuple):
    """What a frame did to the tracklets.

    tracklet: int64[n], number of the tracklet of each box; -1 for a box without an owner.
    begins: bool[n], whether a tracklet begins with the box.
    ended: numbers of the tracklets that can get no further box, in rising order; each is told once.
    """

    tracklet: NDArray[np.int64]
    begins: NDArray[np.bool_]
    ended: list[int]


class _Last(NamedTuple):
    """The last box of an owner."""

    frame: int
    xyxy: NDArray[np.float32]
    tracklet: int


class OnlineLinker:
    """Cuts the boxes of each owner, a polyp or a track of one video, into tracklets as `link_tracklets` does.

    Numbers are those of `link_tracklets`, which counts by start frame, then row. Only the last box of each owner whose
    tracklet can go on is remembered.
    """

    def __init__(self, max_gap: int = 1, min_iou: float = 0.1) -> None:
        if not max_gap >= 0:
            raise DataError(f"max_gap must be at least 0 frames, found {max_gap}")
        if not 0 <= min_iou <= 1:
            raise DataError(f"min_iou must be between 0 and 1, found {min_iou}")
        self._max_gap = max_gap
        self._min_iou = min_iou
        self._last: dict[int, _Last] = {}
        self._frame = -1
        self._begun = 0

    def update(self, frame: int, xyxy: ArrayLike, owner: ArrayLike) -> Linked:
        """Link the boxes of a frame; frames come in rising order, and one that is left out has no boxes.

        xyxy: float32[n, 4] in pixels.
        owner: int[n], number of the polyp or the track; -1 for none.

        A tracklet ends when its owner begins another, or when the next frame is more than `max_gap` after its last box.
        """
        boxes, owners = box_column("boxes", xyxy), int_column("boxes", "owner", owner, minimum=-1)
        if len(boxes) != len(owners):
            raise DataError(f"linking: each box needs an owner, found {len(boxes)} boxes and {len(owners)} owners")
        if frame <= self._frame:
            raise DataError(f"linking: frames must come in rising order from 0, found {frame} after {self._frame}")
        self._frame = int(frame)
        ended = self._end(self._frame - 1)
        tracklet, begins = np.full(len(boxes), -1, np.int64), np.zeros(len(boxes), bool)
        for row in np.flatnonzero(owners >= 0).tolist():
            before = self._last.get(key := int(owners[row]))
            if before is None or iou(before.xyxy[None], boxes[row : row + 1])[0] < self._min_iou:
                if before is not None:
                    ended.append(before.tracklet)
                begins[row] = True
                tracklet[row] = self._begun
                self._begun += 1
            else:
                tracklet[row] = before.tracklet
            self._last[key] = _Last(self._frame, boxes[row], int(tracklet[row]))
        return Linked(tracklet, begins, sorted(ended + self._end(self._frame)))

    def finish(self) -> list[int]:
        """End all tracklets: the numbers of those that had not ended, in rising order."""
        ended = sorted(last.tracklet for last in self._last.values())
        self._last.clear()
        return ended

    def _end(self, frame: int) -> list[int]:
        """End the tracklets that can get no further box once this frame is over."""
        over = [owner for owner, last in self._last.items() if frame + 1 - last.frame > self._max_gap]
        return [self._last.pop(owner).tracklet for owner in over]
