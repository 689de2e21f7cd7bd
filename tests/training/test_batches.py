"""Clips: the pixels of views, in order, whole and with nothing in the place of frames that are not there."""

import numpy as np
import pytest
import torch

from polypcount.corpus import Corpus
from polypcount.errors import DataError
from polypcount.training.batches import Batch, batches_with_clips, read_clips
from polypcount.video import CropRule, CropStore
from polypcount.video.store_build import build_store


@pytest.fixture(scope="module")
def store(drawn: Corpus, tmp_path_factory: pytest.TempPathFactory) -> CropStore:
    return build_store(drawn, np.arange(60), CropRule(scale=2, size=16), tmp_path_factory.mktemp("crops"), processes=1)


def test_clips_hold_the_crops_of_their_views(store: CropStore) -> None:
    views = [np.array([3, 1, 2]), np.array([7]), np.array([9, 9])]
    clips = read_clips(store, views)
    assert clips.mask.tolist() == [[True, True, True], [True, False, False], [True, True, False]]
    assert (len(clips), clips.images.dtype) == (3, torch.uint8)
    for k, rows in enumerate(views):
        assert np.array_equal(clips.images[k, : len(rows)].numpy(), store.crops(rows)), "in the order of the view"
        assert not clips.images[k, len(rows) :].any()
    alike = read_clips(store, [np.array([5, 4]), np.array([8, 6])], size=8)
    assert alike.images.shape == (2, 2, 8, 8, 3)
    assert np.array_equal(alike.images[1].numpy(), store.crops([8, 6], 8))
    assert alike.mask.all()


def test_clips_are_split_into_views_of_few_frames(store: CropStore) -> None:
    clips = read_clips(store, [np.arange(k + 1) for k in range(4)])
    for frames, sizes in ((100, [4]), (8, [2, 2]), (12, [3, 1]), (4, [1, 1, 1, 1]), (1, [1, 1, 1, 1])):
        parts = clips.split(frames)
        assert [len(part) for part in parts] == sizes
        assert torch.equal(torch.cat([part.images for part in parts]), clips.images)
        assert torch.equal(torch.cat([part.mask for part in parts]), clips.mask)


def test_batches_come_in_order_with_the_share_of_a_process(store: CropStore) -> None:
    batches = [
        Batch(tuple(np.array([k, k + j]) for j in range(4)), np.zeros(4, np.int64), np.arange(4), np.zeros(4))
        for k in range(9)
    ]
    for count, threads, rank in ((9, 3, 1), (2, 1, 0), (0, 1, 0)):
        found = list(batches_with_clips(store, batches[:count], None, rank, 2, threads))
        assert [batch for batch, _ in found] == batches[:count]
        for batch, clips in found:
            mine = read_clips(store, batch.rows[2 * rank : 2 * rank + 2])
            assert torch.equal(clips.images, mine.images)
    with pytest.raises(DataError, match="there is no crop of box row 99"):
        list(
            batches_with_clips(
                store, [Batch((np.array([99]),), np.zeros(1, int), np.zeros(1, int), np.zeros(1))], None, 0, 1, 1
            )
        )
