"""Tracklets while the recording still runs: the rule of `link_tracklets`, frame by frame."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus import iou
from polypcount.corpus.columns import box_column, int_column
from polypcount.errors import DataError
from polypcount.tracking.link import check_link_rule


class Linked(NamedTuple):
    """What a frame did to the tracklets.

    Attributes:
        tracklet: int64[n], number of the tracklet of each box; -1 for a box without an owner.
        begins: bool[n], whether a tracklet begins with the box.
        ended: Numbers of the tracklets that can get no further box, in rising order; each is reported once.
    """

    tracklet: NDArray[np.int64]
    begins: NDArray[np.bool_]
    ended: list[int]


class _LastBox(NamedTuple):
    frame: int
    xyxy: NDArray[np.float32]
    tracklet: int


class OnlineLinker:
    """Cuts the boxes of each owner, a polyp or a track of one video, into tracklets as `link_tracklets` does.

    The numbers of the tracklets are also those of `link_tracklets`: by start frame, then row. Only the last box of
    each owner whose tracklet can go on is remembered.
    """

    def __init__(self, max_gap: int = 1, min_iou: float = 0.1) -> None:
        check_link_rule(max_gap, min_iou)
        self._max_gap, self._min_iou = max_gap, min_iou
        self._last: dict[int, _LastBox] = {}
        self._frame, self._begun = -1, 0

    def update(self, frame: int, xyxy: ArrayLike, owner: ArrayLike) -> Linked:
        """Link the boxes of a frame.

        A tracklet ends when its owner begins another, or when the next frame is more than `max_gap` after its last box.

        Args:
            frame: Frames come in rising order; one that is left out has no boxes.
            xyxy: float32[n, 4] in pixels.
            owner: int[n], number of the polyp or the track; -1 for none.
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
            last = self._last.get(key := int(owners[row]))
            if last is None or iou(last.xyxy[None], boxes[row : row + 1])[0] < self._min_iou:
                if last is not None:
                    ended.append(last.tracklet)
                begins[row], number = True, self._begun
                self._begun += 1
            else:
                number = last.tracklet
            tracklet[row] = number
            self._last[key] = _LastBox(self._frame, boxes[row], number)
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
