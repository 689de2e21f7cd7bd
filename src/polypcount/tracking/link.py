"""From the boxes of a polyp to its tracklets: the rule of the paper."""

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Boxes, Tracklets, iou
from polypcount.errors import DataError

_BLOCK = 8192  # boxes at a time, so that the dozen columns computed from them stay in the processor's cache


def link_tracklets(boxes: Boxes, max_gap: int = 1, min_iou: float = 0.1) -> Tracklets:
    """Cut the boxes of each polyp into tracklets.

    The boxes of a polyp in a video are taken by frame (boxes of one frame by row). A box begins a new tracklet where
    its frame is more than `max_gap` after that of the box before it, or where its IoU with that box is below
    `min_iou`. Boxes without a polyp are linked by track instead; those without either belong to no tracklet.

    Tracklets are numbered by video, then start frame, then row of the first box. The cost is that of sorting the
    boxes once, whatever the number of polyps.
    """
    check_link_rule(max_gap, min_iou)
    order, owner = _by_owner(boxes)
    begins = np.ones(len(order), bool)
    for start in range(0, len(order) - 1, _BLOCK):
        rows = order[start : start + _BLOCK + 1]
        xyxy = boxes.xyxy.take(rows, axis=0)
        begins[start + 1 : start + len(rows)] = (
            (np.diff(boxes.frame.take(rows)) > max_gap)
            | (iou(xyxy[:-1], xyxy[1:]) < min_iou)
            | _changes(owner.take(rows))
            | _changes(boxes.video.take(rows))
        )
    first = np.flatnonzero(begins)
    counts = np.diff(np.append(first, len(order)))
    by_start = np.lexsort((order[first], boxes.frame[order[first]], boxes.video[order[first]]))
    rank = np.empty(len(first), np.int32)
    rank[by_start] = np.arange(len(first))
    label = np.full(len(boxes), -1, np.int32)
    label[order] = np.repeat(rank, counts)
    first, counts = first[by_start], counts[by_start]
    heads, tails = order[first], order[first + counts - 1]
    return Tracklets(
        video=boxes.video[heads],
        start_frame=boxes.frame[heads],
        stop_frame=boxes.frame[tails] + np.int32(1),
        box_count=counts.astype(np.int32),
        polyp=boxes.polyp[heads],
        first=first,
        order=order,
        label=label,
    )


def check_link_rule(max_gap: int, min_iou: float) -> None:
    """Raise `DataError` for settings that link nothing or make no sense."""
    if not max_gap >= 0:
        raise DataError(f"max_gap must be at least 0 frames, found {max_gap}")
    if not 0 <= min_iou <= 1:
        raise DataError(f"min_iou must be between 0 and 1, found {min_iou}")


def _by_owner(boxes: Boxes) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Rows of the boxes that have an owner, by owner, video and frame; and the owner of every box.

    The owner is the row of the polyp or, where a box has none, the number of the track with the highest bit set.
    """
    owner, without = boxes.polyp.view(np.uint32), boxes.polyp < 0
    if without.any():
        owner = np.where(without, boxes.track.view(np.uint32) | np.uint32(1 << 31), owner)
        without &= boxes.track < 0
    order = np.lexsort((owner,) if boxes.is_ordered else (boxes.frame, boxes.video, owner))
    return order[~without[order]] if without.any() else order, owner


def _changes(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Whether each value but the first differs from the one before it."""
    return np.asarray(values[1:] != values[:-1])
