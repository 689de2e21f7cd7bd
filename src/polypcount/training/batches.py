"""A batch: which boxes make up each view, whose they are, and when they were seen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.errors import DataError

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Batch:
    """The n views of one step, before any pixel is read.

    rows: n arrays of box rows, by frame; views may differ in length.
    polyp: int64[n], the polyp of each view, for `identity_targets` and `temporal_targets`.
    sample: int64[n], the sample that each is a view of, for `instance_targets`.
    position: float64[n], when in the life of its polyp the view begins, from 0 to 1.
    """

    rows: tuple[Rows, ...]
    polyp: NDArray[np.int64]
    sample: NDArray[np.int64]
    position: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)

    def share(self, rank: int, world: int) -> "Batch":
        """The views that one of several processes works on: equal blocks, one after the other.

        So what `gather_rows` puts together is in the order of the batch, with its polyps, samples and positions.
        """
        if len(self) % world:
            raise DataError(
                f"a batch of {len(self)} views cannot be shared equally by {world} processes: "
                "let polyps times views, or twice the samples, be a multiple of them"
            )
        each = len(self) // world
        mine = slice(rank * each, (rank + 1) * each)
        return Batch(self.rows[mine], self.polyp[mine], self.sample[mine], self.position[mine])


def batch_of(
    views: Sequence[Rows], polyp: Sequence[int], sample: Sequence[int], positions: NDArray[np.float64]
) -> Batch:
    """Put views together. positions: of all boxes, see `box_positions`."""
    starts = np.array([view[0] for view in views], np.int64)
    return Batch(tuple(views), np.array(polyp, np.int64), np.array(sample, np.int64), positions[starts])
