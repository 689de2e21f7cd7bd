"""Batches (which boxes make up each view) and their clips, which threads read ahead while the network works."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polypcount.errors import DataError

RowNumbers = NDArray[np.int64]
AHEAD = 3
_Item = TypeVar("_Item")


@dataclass(frozen=True, eq=False)
class Batch:
    """The n views of one step, before any pixel is read.

    Attributes:
        rows: n arrays of box rows, by frame. Views may differ in length.
        polyp: int64[n], the polyp of each view, for `identity_targets` and `temporal_targets`.
        sample: int64[n], the sample that each is a view of, for `instance_targets`.
        position: float64[n], when the view begins: 0 is the first frame of its polyp, 1 is the last.
    """

    rows: tuple[RowNumbers, ...]
    polyp: NDArray[np.int64]
    sample: NDArray[np.int64]
    position: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)

    def share(self, rank: int, world: int) -> "Batch":
        """The views for one of several processes: equal blocks, one after the other.

        So `gather_rows` gives the vectors in the order of the batch.
        """
        if len(self) % world:
            raise DataError(
                f"a batch of {len(self)} views cannot be shared equally by {world} processes: change the recipe's "
                "sampler.polyps, sampler.views or sampler.samples, or the number of processes"
            )
        size = len(self) // world
        block = slice(rank * size, (rank + 1) * size)
        return Batch(self.rows[block], self.polyp[block], self.sample[block], self.position[block])


def batch_of(
    views: Sequence[RowNumbers], polyp: Sequence[int], sample: Sequence[int], positions: NDArray[np.float64]
) -> Batch:
    """Put views together.

    Args:
        views: Box rows of each.
        polyp: Polyp of each.
        sample: Sample of each.
        positions: Positions of all boxes, see `box_positions`.
    """
    starts = np.array([view[0] for view in views], np.int64)
    return Batch(tuple(views), np.array(polyp, np.int64), np.array(sample, np.int64), positions[starts])


class ClipSource(Protocol):
    """What clips are read from, by any number of threads: a `CropStore`, or `FrameFeatures` in its place."""

    def crops(self, rows: RowNumbers, size: int | None = None) -> NDArray[Any]:
        """The crop of each box row, uint8[n, size, size, 3], or the features of its crop, float32[n, f]."""


@dataclass(frozen=True, eq=False)
class Clips:
    """The views of one process.

    Attributes:
        images: Pixels uint8[n, t, h, w, 3], or features float32[n, t, f] in their place; zeros where the mask is false.
        mask: bool[n, t], which frames are there.
    """

    images: Tensor
    mask: Tensor

    def __len__(self) -> int:
        return len(self.mask)

    @property
    def are_features(self) -> bool:
        """Whether these are features of the backbone, not pixels."""
        return self.images.ndim == 3

    def split(self, frames: int) -> "list[Clips]":
        """Parts with at most this many frames, but at least one view."""
        views = max(1, frames // self.mask.shape[1])
        pairs = zip(torch.split(self.images, views), torch.split(self.mask, views), strict=True)
        return [Clips(images, mask) for images, mask in pairs]


def read_clips(source: ClipSource, views: Sequence[RowNumbers], size: int | None = None) -> Clips:
    """Frames of views, which may differ in length.

    Args:
        source: Crops or features.
        views: Box rows of each view.
        size: Side in pixels; None for that of the source.
    """
    lengths = np.array([len(rows) for rows in views])
    mask = np.arange(lengths.max()) < lengths[:, None]
    crops = source.crops(np.concatenate(views), size)
    if mask.all():
        images = crops.reshape(*mask.shape, *crops.shape[1:])
    else:
        images = np.zeros((*mask.shape, *crops.shape[1:]), crops.dtype)
        images[mask] = crops
    return Clips(torch.from_numpy(images), torch.from_numpy(mask))


def batches_with_clips(
    source: ClipSource, batches: Sequence[Batch], size: int | None, rank: int, world: int, threads: int
) -> Iterator[tuple[Batch, Clips]]:
    """Each batch in order, with the clips of this process's share of it. Threads read the next ones meanwhile."""
    return read_ahead(lambda batch: read_clips(source, batch.share(rank, world).rows, size), batches, threads)


def read_ahead(read: Callable[[_Item], Clips], items: Sequence[_Item], threads: int) -> Iterator[tuple[_Item, Clips]]:
    """Each item in order with its clips. Threads read the next ones meanwhile."""
    with ThreadPoolExecutor(threads) as pool:
        coming = deque((item, pool.submit(read, item)) for item in items[:AHEAD])
        try:
            for number in range(len(items)):
                current, clips = coming.popleft()
                coming.extend((later, pool.submit(read, later)) for later in items[number + AHEAD : number + AHEAD + 1])
                yield current, clips.result()
        finally:
            for _, clips in coming:
                clips.cancel()
