"""Fragments: the pieces of tracklets that the encoder takes in."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Tracklets
from polypcount.errors import DataError


@dataclass(frozen=True, eq=False)
class Fragments:
    """One row per fragment, in the order of the tracklets and within each in time.

    tracklet: int32[n], row of the tracklet it is cut from.
    rows: int64[m], rows of the boxes of all fragments, one fragment after the other, by frame within each.
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

    Tracklets of fewer than `min_frames` boxes give none. Of the others every `stride`-th box is taken from the first on
    (every `stride`-th frame, as they have one box a frame), and these are cut into blocks of `length`. A last block
    that is shorter is dropped or, with `drop_last=False`, kept. With `length=None` each tracklet is one fragment.
    """
    if (length is not None and length < 1) or stride < 1 or min_frames < 0:
        raise DataError(
            f"length and stride must be at least 1 and min_frames at least 0, "
            f"found length {length}, stride {stride}, min_frames {min_frames}"
        )
    kept = np.flatnonzero(tracklets.box_count >= min_frames)
    taken = -(-tracklets.box_count[kept].astype(np.int64) // stride)
    if length is None:
        blocks = np.ones(len(kept), np.int64)
        sizes = taken
    else:
        blocks = taken // length if drop_last else -(-taken // length)
        sizes = np.full(blocks.sum(), length, np.int64)
        if not drop_last:
            sizes[np.cumsum(blocks) - 1] = taken - (blocks - 1) * length
        taken = np.minimum(taken, blocks * length)
    ends = np.cumsum(taken)
    within = np.arange(taken.sum()) - np.repeat(ends - taken, taken)
    return Fragments(
        tracklet=np.repeat(kept, blocks).astype(np.int32),
        rows=tracklets.order[np.repeat(tracklets.first[kept], taken) + within * stride],
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
    )
