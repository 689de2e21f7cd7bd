"""Pixels of the views of batches, read ahead by threads while the network works."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from polypcount.training.batches import Batch, Rows
from polypcount.video import CropStore

_BATCHES_AHEAD = 3


@dataclass(frozen=True, eq=False)
class Clips:
    """The views of one process. images: uint8[n, t, h, w, 3], zeros where none is. mask: bool[n, t], whether one is."""

    images: Tensor
    mask: Tensor

    def __len__(self) -> int:
        return len(self.mask)

    @property
    def frames(self) -> int:
        """How many images there are."""
        return int(self.mask.sum())

    def split(self, frames: int) -> "list[Clips]":
        """Parts of at most so many frames, but of one view at least."""
        each = max(1, frames // self.mask.shape[1])
        return [Clips(*part) for part in zip(torch.split(self.images, each), torch.split(self.mask, each), strict=True)]


def read_clips(store: CropStore, views: Sequence[Rows], size: int | None = None) -> Clips:
    """Crops of views, which may differ in length. size: side in pixels; that of the store where not given."""
    lengths = np.array([len(rows) for rows in views])
    mask = np.arange(lengths.max()) < lengths[:, None]
    crops = store.crops(np.concatenate(views), size)
    if mask.all():
        images = crops.reshape(*mask.shape, *crops.shape[1:])
    else:
        images = np.zeros((*mask.shape, *crops.shape[1:]), np.uint8)
        images[mask] = crops
    return Clips(torch.from_numpy(images), torch.from_numpy(mask))


def batches_with_clips(
    store: CropStore, batches: Sequence[Batch], size: int | None, rank: int, world: int, threads: int
) -> Iterator[tuple[Batch, Clips]]:
    """Each batch, and the clips of this process's share of it, in order; the next ones are read meanwhile."""

    def read(batch: Batch) -> Clips:
        return read_clips(store, batch.share(rank, world).rows, size)

    with ThreadPoolExecutor(threads) as pool:
        coming = deque((batch, pool.submit(read, batch)) for batch in batches[:_BATCHES_AHEAD])
        try:
            for place in range(len(batches)):
                batch, clips = coming.popleft()
                if place + _BATCHES_AHEAD < len(batches):
                    later = batches[place + _BATCHES_AHEAD]
                    coming.append((later, pool.submit(read, later)))
                yield batch, clips.result()
        finally:
            for _, clips in coming:
                clips.cancel()
