"""Which tracklets are seen together in one frame: they cannot be one polyp."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus.boxes import Boxes
from polypcount.corpus.columns import Int32Column, as_array, refuse_rows
from polypcount.corpus.tracklets import Tracklets
from polypcount.errors import DataError

MOST_BOXES_IN_A_FRAME = 1000
_MOST_PAIRS = 1 << 24


def refuse_crowded(boxes: Boxes, names: Sequence[str]) -> None:
    """Raise `DataError` where a frame has more than 1,000 boxes: nothing real has, and pairs could fill the memory.

    Args:
        boxes: In any order.
        names: What to call each video in the message.
    """
    frames, counts = np.unique(frame_keys(boxes.video, boxes.frame), return_counts=True)
    crowded = np.flatnonzero(counts > MOST_BOXES_IN_A_FRAME)
    if len(crowded):
        video, frame = divmod(int(frames[crowded[0]]), 1 << 32)
        raise DataError(
            f"{names[video]}: frame {frame} has {counts[crowded[0]]:,} boxes, at most {MOST_BOXES_IN_A_FRAME:,} can be "
            "handled; give the detector a higher confidence"
        )


def tracklets_together(
    boxes: Boxes, tracklets: Tracklets, *, least_boxes: int = 1, names: Sequence[str] | None = None
) -> Int32Column:
    """Pairs of tracklets with boxes in one frame of one video, int32[m, 2]: first < second, sorted, each pair once.

    Args:
        boxes: The boxes of the tracklets.
        tracklets: Rows of these are the numbers in the pairs.
        least_boxes: Tracklets of fewer boxes are in no pair.
        names: What to call each video in an error; "video 0", "video 1", ... by default.

    Raises:
        DataError: A frame has more than 1,000 boxes of these tracklets, or there are too many pairs.
    """
    if len(tracklets.label) != len(boxes):
        raise DataError(f"the tracklets are of {len(tracklets.label)} boxes, but there are {len(boxes)} boxes")
    long_enough = np.append(tracklets.box_count >= least_boxes, False)  # the last is for boxes of no tracklet
    rows = np.flatnonzero(long_enough[tracklets.label])
    last = int(boxes.video.max(initial=-1))
    refuse_crowded(boxes.take(rows), names or [f"video {row}" for row in range(last + 1)])
    frame, label = frame_keys(boxes.video[rows], boxes.frame[rows]), tracklets.label[rows].astype(np.int64)
    order = np.lexsort((label, frame))
    frame, label = frame[order], label[order]
    pairs = np.empty(0, np.int64)
    left = np.arange(len(frame))
    # The rows of a frame follow each other. So if row + `step` is of another frame, all later rows are too.
    for step in range(1, len(frame)):
        left = left[left + step < len(frame)]
        left = left[frame[left] == frame[left + step]]
        if not len(left):
            break
        pairs = np.union1d(pairs, label[left] * len(tracklets) + label[left + step])
        _refuse_many(len(pairs), "are seen together")
    unique = _unpacked(pairs, len(tracklets))
    return unique[unique[:, 0] < unique[:, 1]]


def overlapping(video: Int32Column, start_frame: Int32Column, stop_frame: Int32Column) -> Int32Column:
    """Pairs of tracklets of one video whose spans overlap, int32[m, 2]: first < second, sorted, each pair once."""
    order = np.lexsort((start_frame, video))
    starts = frame_keys(video, start_frame)[order]
    begun = np.searchsorted(starts, frame_keys(video, stop_frame)[order])
    partners = np.maximum(begun - np.arange(len(order)) - 1, 0)
    total = int(partners.sum())
    _refuse_many(total, "overlap in time")
    first = np.repeat(np.arange(len(order)), partners)
    second = first + 1 + np.arange(total) - np.repeat(np.cumsum(partners) - partners, partners)
    return sorted_pairs(np.column_stack([order[first], order[second]]), len(order))


def checked_pairs(
    values: ArrayLike, video: Int32Column, start_frame: Int32Column, stop_frame: Int32Column
) -> NDArray[np.int64]:
    """Pairs as int64[m, 2]; each must name two tracklets of one video whose spans overlap."""
    array = as_array("together", "pairs", values)
    if array.size == 0:
        return np.empty((0, 2), np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise DataError(f"together must be whole numbers [m, 2], found {array.dtype} {list(array.shape)}")
    unknown = np.asarray(((array < 0) | (array >= len(video))).any(axis=1))
    refuse_rows("together", unknown, lambda row: f"of {array[row].tolist()}, tracklets are 0 to {len(video) - 1}")
    pairs: NDArray[np.int64] = array.astype(np.int64)
    first, second = pairs.T
    refuse_rows("together", first == second, lambda row: f"tracklet {first[row]} is paired with itself")
    apart = (stop_frame[first] <= start_frame[second]) | (stop_frame[second] <= start_frame[first])
    bad = (video[first] != video[second]) | apart
    refuse_rows("together", bad, lambda row: f"tracklets {pairs[row].tolist()} have no frame in common")
    return pairs


def sorted_pairs(pairs: NDArray[np.int64], count: int) -> Int32Column:
    """Pairs of `count` tracklets as int32[m, 2]: first < second, sorted, each pair once."""
    return _unpacked(np.unique(pairs.min(axis=1) * count + pairs.max(axis=1)), count)


def frame_keys(owner: Int32Column, frame: Int32Column) -> NDArray[np.int64]:
    """One number for each (video or tracklet, frame), which sorts by both, int64[n]."""
    return (owner.astype(np.int64) << 32) | frame


def _refuse_many(count: int, what: str) -> None:
    if count > _MOST_PAIRS:
        raise DataError(f"{count:,} pairs of tracklets {what}, at most {_MOST_PAIRS:,} can be handled")


def _unpacked(keys: NDArray[np.int64], count: int) -> Int32Column:
    pairs: Int32Column = np.column_stack(np.divmod(keys, max(count, 1))).astype(np.int32)
    return pairs
