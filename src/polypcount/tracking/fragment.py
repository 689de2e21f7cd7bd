"""Fragments: the pieces of tracklets that the encoder is trained on, and where in a polyp's life a box lies."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Boxes, Tracklets
from polypcount.errors import DataError


@dataclass(frozen=True, eq=False)
class Fragments:
    """One row per fragment, in the order of the tracklets, and by time within a tracklet.

    Attributes:
        tracklet: int32[n], row of the tracklet that the fragment is cut from.
        rows: int64[m], box rows of all fragments, one fragment after the other, by frame within each.
        offsets: int64[n + 1], fragment k owns `rows[offsets[k]:offsets[k + 1]]`.
    """

    tracklet: NDArray[np.int32]
    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def __post_init__(self) -> None:
        for column in (self.tracklet, self.rows, self.offsets):
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.tracklet)

    def rows_of(self, fragment: int) -> NDArray[np.int64]:
        """Box rows of one fragment, by frame."""
        return self.rows[self.offsets[fragment] : self.offsets[fragment + 1]]


def fragments(
    tracklets: Tracklets,
    length: int | None = 8,
    stride: int = 4,
    min_frames: int = 30,
    drop_last: bool = True,
) -> Fragments:
    """Cut tracklets into fragments.

    Args:
        tracklets: One box per frame in each.
        length: Boxes of a fragment; None makes one fragment of each tracklet.
        stride: Every `stride`-th box is taken, starting with the first.
        min_frames: Tracklets with fewer boxes give no fragment.
        drop_last: Whether a last fragment that is shorter than `length` is dropped.
    """
    if (length is not None and length < 1) or stride < 1 or min_frames < 0:
        raise DataError(
            f"length and stride must be at least 1 and min_frames at least 0, "
            f"found length {length}, stride {stride}, min_frames {min_frames}"
        )
    long_enough = np.flatnonzero(tracklets.box_count >= min_frames)
    taken = -(-tracklets.box_count[long_enough].astype(np.int64) // stride)
    if length is None:
        blocks = np.ones(len(long_enough), np.int64)
        sizes = taken
    else:
        blocks = taken // length if drop_last else -(-taken // length)
        sizes = np.full(blocks.sum(), length, np.int64)
        if not drop_last:
            sizes[np.cumsum(blocks) - 1] = taken - (blocks - 1) * length
        taken = np.minimum(taken, blocks * length)
    within = np.arange(taken.sum()) - np.repeat(np.cumsum(taken) - taken, taken)
    return Fragments(
        tracklet=np.repeat(long_enough, blocks).astype(np.int32),
        rows=tracklets.order[np.repeat(tracklets.first[long_enough], taken) + within * stride],
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
    )


def box_positions(boxes: Boxes) -> NDArray[np.float64]:
    """Position of each box in the life of its polyp, as the temporally-aware loss takes it.

    It is (frame - first frame of the polyp) / (last - first frame of the polyp). The polyp's frames are those of all
    its boxes in the video; a span of 0 counts as 1.

    Returns:
        float64[n], 0 to 1; NaN for a box without a polyp.
    """
    owner = (boxes.video.astype(np.int64) << 32) | (boxes.polyp.astype(np.int64) + 1)
    owners, index = np.unique(owner, return_inverse=True)
    first, last = np.full(len(owners), np.inf), np.full(len(owners), -np.inf)
    np.minimum.at(first, index, boxes.frame)
    np.maximum.at(last, index, boxes.frame)
    position = (boxes.frame - first[index]) / np.maximum(last - first, 1)[index]
    return np.where(boxes.polyp >= 0, position, np.nan)
