"""Other views of a polyp with few fragments: the same tracklets from another box on, or at a smaller stride."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Tracklets
from polypcount.training.batches import RowNumbers
from polypcount.training.recipe import PolypViewSettings


@dataclass(frozen=True, eq=False)
class OtherViews:
    """Views of one polyp that are not fragments. No two show the same frames, and none those of a fragment.

    Attributes:
        rows: int64[n, length], box rows of each view.
        rank: int64[n]; those of a low rank are drawn first.
    """

    rows: RowNumbers
    rank: NDArray[np.int64]

    def drawn(self, count: int, rng: np.random.Generator) -> Iterator[RowNumbers]:
        """So many of them, or all, the lowest ranks first and in random order within a rank."""
        order = np.lexsort([rng.random(len(self.rank)), self.rank])
        yield from self.rows[order[:count]]


def other_views(tracklets: Tracklets, polyp: int, settings: PolypViewSettings) -> OtherViews:
    """All views of a polyp besides its fragments, from the same tracklets.

    First come views that share no frame with a fragment: at a stride of four, a view from the second box on takes the
    boxes between those of the fragments. Then those from all other boxes on. Then smaller strides, the largest first,
    which a tracklet holds more often.
    """
    length, stride = settings.length, settings.stride
    long_enough = (tracklets.polyp == polyp) & (tracklets.box_count >= settings.min_frames)
    views, ranks = [np.empty((0, length), np.int64)], [np.empty(0, np.int64)]
    for tracklet in np.flatnonzero(long_enough).tolist():
        rows = tracklets.rows(tracklet)
        for step in range(stride, 0, -1) if length > 1 else (stride,):  # one frame has no stride
            first = np.arange(len(rows) - (length - 1) * step)
            phase = first % (length * step)  # fragments have phase 0, and the next ones take the boxes between theirs
            rank = np.where(phase < step, 0, 1) if step == stride else np.full(len(first), 1 + stride - step)
            other = (phase > 0) | (step < stride)
            views.append(rows[first[other, None] + np.arange(length) * step])
            ranks.append(rank[other])
    return OtherViews(np.concatenate(views), np.concatenate(ranks))
