"""Frames of the views of batches, read ahead by threads while the network works."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polypcount.training.batches import Batch, Rows

_AHEAD = 3
Wanted = TypeVar("Wanted")


class Frames(Protocol):
    """What clips are read from, by any number of threads: a `CropStore`, or `FrameFeatures` in its place."""

    def crops(self, rows: Rows, size: int | None = None) -> NDArray[Any]:
        """Of each box row its crop, uint8[n, size, size, 3], or the features of its crop, float32[n, f]."""


@dataclass(frozen=True, eq=False)
class Clips:
    """The views of one process.

    images: pixels uint8[n, t, h, w, 3], or in their place features float32[n, t, f]; zeros where none is.
    mask: bool[n, t], whether one is.
    """

    images: Tensor
    mask: Tensor

    def __len__(self) -> int:
        return len(self.mask)

    @property
    def frames(self) -> int:
        """How many images there are."""
        return int(self.mask.sum())

    @property
    def are_features(self) -> bool:
        """Whether the backbone has seen these frames already."""
        return self.images.ndim == 3

    def split(self, frames: int) -> "list[Clips]":
        """Parts of at most so many frames, but of one view at least."""
        each = max(1, frames // self.mask.shape[1])
        return [Clips(*part) for part in zip(torch.split(self.images, each), torch.split(self.mask, each), strict=True)]


def read_clips(store: Frames, views: Sequence[Rows], size: int | None = None) -> Clips:
    """Frames of views, which may differ in length. size: side in pixels; that of the store where not given."""
    lengths = np.array([len(rows) for rows in views])
    mask = np.arange(lengths.max()) < lengths[:, None]
    crops = store.crops(np.concatenate(views), size)
    if mask.all():
        images = crops.reshape(*mask.shape, *crops.shape[1:])
    else:
        images = np.zeros((*mask.shape, *crops.shape[1:]), crops.dtype)
        images[mask] = crops
    return Clips(torch.from_numpy(images), torch.from_numpy(mask))


def batches_with_clips(
    store: Frames, batches: Sequence[Batch], size: int | None, rank: int, world: int, threads: int
) -> Iterator[tuple[Batch, Clips]]:
    """Each batch, and the clips of this process's share of it, in order; the next ones are read meanwhile."""

    def read(batch: Batch) -> Clips:
        return read_clips(store, batch.share(rank, world).rows, size)

    return read_ahead(read, batches, threads)


def read_ahead(
    read: Callable[[Wanted], Clips], wanted: Sequence[Wanted], threads: int
) -> Iterator[tuple[Wanted, Clips]]:
    """What is wanted, one by one with its clips, in order; the next ones are read meanwhile."""
    with ThreadPoolExecutor(threads) as pool:
        coming = deque((one, pool.submit(read, one)) for one in wanted[:_AHEAD])
        try:
            for place in range(len(wanted)):
                one, clips = coming.popleft()
                if place + _AHEAD < len(wanted):
                    later = wanted[place + _AHEAD]
                    coming.append((later, pool.submit(read, later)))
                yield one, clips.result()
        finally:
            for _, clips in coming:
                clips.cancel()
