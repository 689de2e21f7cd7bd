"""Which tracklets are seen together in one frame: they cannot be one polyp."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus.boxes import Boxes
from polypcount.corpus.columns import Int32Column, as_array, refuse_rows
from polypcount.corpus.tracklets import Tracklets
from polypcount.errors import DataError

_MOST_PAIRS = 1 << 24


def tracklets_together(boxes: Boxes, tracklets: Tracklets) -> Int32Column:
    """Pairs of tracklets with boxes in one frame of one video, int32[m, 2]: first < second, sorted, each pair once."""
    if len(tracklets.label) != len(boxes):
        raise DataError(f"the tracklets are of {len(tracklets.label)} boxes, but there are {len(boxes)} boxes")
    rows = np.flatnonzero(tracklets.label >= 0)
    frame, label = frame_keys(boxes.video[rows], boxes.frame[rows]), tracklets.label[rows].astype(np.int64)
    order = np.lexsort((label, frame))
    frame, label = frame[order], label[order]
    pairs = [np.empty(0, np.int64)]
    left = np.arange(len(frame))
    # The rows of a frame follow each other. So if row + `step` is of another frame, all later rows are too.
    for step in range(1, len(frame)):
        left = left[left + step < len(frame)]
        left = left[frame[left] == frame[left + step]]
        if not len(left):
            break
        pairs.append(np.unique(label[left] * len(tracklets) + label[left + step]))
    unique = _unpacked(np.unique(np.concatenate(pairs)), len(tracklets))
    return unique[unique[:, 0] < unique[:, 1]]


def overlapping(video: Int32Column, start_frame: Int32Column, stop_frame: Int32Column) -> Int32Column:
    """Pairs of tracklets of one video whose spans overlap, int32[m, 2]: first < second, sorted, each pair once."""
    order = np.lexsort((start_frame, video))
    starts = frame_keys(video, start_frame)[order]
    begun = np.searchsorted(starts, frame_keys(video, stop_frame)[order])
    partners = np.maximum(begun - np.arange(len(order)) - 1, 0)
    total = int(partners.sum())
    if total > _MOST_PAIRS:
        raise DataError(f"{total:,} pairs of tracklets overlap in time, at most {_MOST_PAIRS:,} can be handled")
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


def _unpacked(keys: NDArray[np.int64], count: int) -> Int32Column:
    pairs: Int32Column = np.column_stack(np.divmod(keys, max(count, 1))).astype(np.int32)
    return pairs
