"""Which tracklets are seen together, in one frame: they cannot be one polyp."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus.boxes import Boxes
from polypcount.corpus.columns import Int32Column, refuse_rows
from polypcount.corpus.tracklets import Tracklets
from polypcount.errors import DataError

_MOST_PAIRS = 1 << 24


def tracklets_together(boxes: Boxes, tracklets: Tracklets) -> Int32Column:
    """Pairs of tracklets with boxes in one frame of one video, int32[m, 2]: first < second, sorted, each pair once."""
    if len(tracklets.label) != len(boxes):
        raise DataError(f"tracklets are of {len(tracklets.label)} boxes, given are {len(boxes)}")
    rows = np.flatnonzero(tracklets.label >= 0)
    here, label = _place(boxes.video[rows], boxes.frame[rows]), tracklets.label[rows].astype(np.int64)
    order = np.lexsort((label, here))
    here, label = here[order], label[order]
    again = np.zeros(len(rows), bool)
    again[1:] = (here[1:] == here[:-1]) & (label[1:] == label[:-1])
    here, label = here[~again], label[~again]
    found = [np.empty(0, np.int64)]
    left = np.arange(len(here))
    # The rows of a frame lie side by side, so a row without a neighbour of its frame `step` away has none further on.
    for step in range(1, len(here)):
        left = left[left + step < len(here)]
        left = left[here[left] == here[left + step]]
        if not len(left):
            break
        found.append(np.unique(label[left] * len(tracklets) + label[left + step]))
    return _unpacked(np.unique(np.concatenate(found)), len(tracklets))


def overlapping(video: Int32Column, start_frame: Int32Column, stop_frame: Int32Column) -> Int32Column:
    """Pairs of tracklets of one video whose spans overlap, int32[m, 2]: first < second, sorted, each pair once."""
    order = np.lexsort((start_frame, video))
    starts = _place(video, start_frame)[order]
    begun = np.searchsorted(starts, _place(video, stop_frame)[order])
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
    """Pairs as int64[m, 2], after seeing that each names two tracklets of one video whose spans overlap."""
    try:
        given = np.asarray(values)
    except ValueError:
        raise DataError("together: each row must name two tracklets") from None
    if given.size == 0:
        return np.empty((0, 2), np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise DataError(f"together must be whole numbers [m, 2], found {given.dtype} {list(given.shape)}")
    unknown = np.asarray(((given < 0) | (given >= len(video))).any(axis=1))
    refuse_rows("together", unknown, lambda row: f"of {given[row].tolist()}, tracklets are 0 to {len(video) - 1}")
    pairs: NDArray[np.int64] = given.astype(np.int64)
    one, other = pairs.T
    refuse_rows("together", one == other, lambda row: f"tracklet {one[row]} is paired with itself")
    refuse_rows(
        "together", video[one] != video[other], lambda row: f"tracklets {pairs[row].tolist()} are of two videos"
    )
    apart = (stop_frame[one] <= start_frame[other]) | (stop_frame[other] <= start_frame[one])
    refuse_rows("together", apart, lambda row: f"tracklets {pairs[row].tolist()} have no frame in common")
    return pairs


def sorted_pairs(pairs: NDArray[np.int64], count: int) -> Int32Column:
    """Pairs of `count` tracklets as int32[m, 2]: first < second, sorted, each pair once."""
    return _unpacked(np.unique(pairs.min(axis=1) * count + pairs.max(axis=1)), count)


def _place(video: Int32Column, frame: Int32Column) -> NDArray[np.int64]:
    return (video.astype(np.int64) << 32) | frame


def _unpacked(keys: NDArray[np.int64], count: int) -> Int32Column:
    pairs: Int32Column = np.column_stack(np.divmod(keys, max(count, 1))).astype(np.int32)
    return pairs
