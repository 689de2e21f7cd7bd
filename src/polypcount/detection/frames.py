"""The frames that a detector learns from: which ones, their boxes, and their pixels."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from polypcount.corpus import Boxes, Corpus, Video
from polypcount.detection.changed_frames import FrameBatch
from polypcount.detection.recipe import FrameSettings
from polypcount.errors import DataError
from polypcount.progress import Progress, no_progress
from polypcount.tracking import evenly
from polypcount.training.batches import AHEAD
from polypcount.training.data import cached_crops
from polypcount.video import CropRule, CropStore, open_video

Rows = NDArray[np.int64]
_VALIDATION_SEED = 1


@dataclass(frozen=True, eq=False)
class LearningFrames:
    """Frames with their polyps.

    Attributes:
        corpus: The videos, and one box for each frame: the frame as a whole, so that it can be cut like a crop.
        content: float64[n, 2], half of each frame's width and height in its square; the longer one is 1.
        boxes: n arrays float64[k, 4], the polyps of each frame in its square, from -1 to 1.
        use: One line: how many frames, with and without polyps.
    """

    corpus: Corpus
    content: NDArray[np.float64]
    boxes: tuple[NDArray[np.float64], ...]
    use: str

    def __len__(self) -> int:
        return len(self.boxes)


@dataclass(frozen=True, eq=False)
class LearningPixels:
    """The pixels of some frames, and the masks of some of them. Any number of threads may read at once.

    Attributes:
        frames: The frames.
        images: Their pixels.
        masks: Masks of frames; None where none are known.
        mask_row: int64[n], row of the mask of each frame, -1 for none.
    """

    frames: LearningFrames
    images: CropStore
    masks: CropStore | None
    mask_row: Rows

    def read(self, rows: Rows) -> FrameBatch:
        """The frames of these rows."""
        images = self.images.crops(rows)
        masks, known = np.zeros(images.shape[:3], np.uint8), self.mask_row[rows] >= 0
        if self.masks is not None and known.any():
            masks[known] = np.where(self.masks.crops(self.mask_row[rows[known]])[..., 0] > 127, 255, 0)
        pixels, of_masks, has_mask = (torch.from_numpy(part) for part in (images, masks, known))
        boxes = [self.frames.boxes[row] for row in rows.tolist()]
        return FrameBatch(pixels, of_masks, has_mask, self.frames.content[rows], boxes)


def split_videos(corpus: Corpus, settings: FrameSettings, seed: int) -> tuple[list[str], list[str]]:
    """Ids of the videos to learn from and to validate on, by split or, without a split, drawn by the seed."""
    usable = [video for video in corpus.videos if video.split not in settings.leave_out and video.source is not None]
    validated = {video.id for video in usable if video.split in settings.validation}
    if not validated and settings.validation_share > 0 and len(usable) > 1:
        order = np.random.default_rng([seed, _VALIDATION_SEED]).permutation(len(usable))
        count = min(max(1, round(settings.validation_share * len(usable))), len(usable) - 1)
        validated = {usable[row].id for row in order[:count].tolist()}
    return [video.id for video in usable if video.id not in validated], sorted(validated)


def learning_frames(corpus: Corpus, settings: FrameSettings) -> LearningFrames:
    """Frames with polyps, and frames without, as the settings say.

    Every box is a polyp, whether it is known which one or not.
    """
    boxes = corpus.boxes
    shown = _frames_with_polyps(boxes, settings.of_polyp)
    empty = _empty_frames(corpus, round(settings.empty * len(shown)) if len(shown) else None)
    if not len(shown):
        raise DataError("there is nothing to learn from: no video with pixels has a box")
    chosen = np.concatenate([shown, empty])
    chosen = chosen[np.lexsort(chosen.T[::-1])]
    videos = [
        _with_size(corpus, row) if row in set(chosen[:, 0].tolist()) else v for row, v in enumerate(corpus.videos)
    ]
    size = np.array([(video.width or 1, video.height or 1) for video in videos], float)[chosen[:, 0]]
    whole = np.concatenate([np.zeros_like(size), size], axis=1).astype(np.float32)
    frames = Boxes(chosen[:, 0].astype(np.int32), chosen[:, 1].astype(np.int32), whole)
    content = size / size.max(axis=1, keepdims=True)
    own = []
    key, wanted = _key(boxes.video, boxes.frame), _key(chosen[:, 0], chosen[:, 1])
    order = np.argsort(key, kind="stable")
    first, last = (np.searchsorted(key[order], wanted, side=side) for side in ("left", "right"))
    for row, (start, stop) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        xyxy = boxes.xyxy[order[start:stop]].astype(float)
        own.append((xyxy - np.tile(size[row] / 2, 2)) / (size[row].max() / 2))
    use = f"{len(shown):,} frames with polyps and {len(empty):,} without, of {len(corpus.videos):,} videos"
    return LearningFrames(replace(corpus, videos=tuple(videos), boxes=frames, polyps=()), content, tuple(own), use)


def open_pixels(
    frames: LearningFrames, side: int, folder: Path, masks: Corpus | None = None, progress: Progress = no_progress
) -> LearningPixels:
    """The pixels of frames; they are cut if they do not exist yet.

    Args:
        frames: The frames.
        side: Of the squares.
        folder: Folder for crops.
        masks: Videos of the same ids whose pixels are masks, white where a polyp is; others have none.
        progress: Counts frames.
    """
    rule = CropRule(scale=1.0, size=side, shape="pad")
    rows = np.arange(len(frames))
    images = cached_crops(frames.corpus, rows, rule, folder, progress)
    if masks is None:
        return LearningPixels(frames, images, None, np.full(len(frames), -1))
    whole, row_of_id = frames.corpus.boxes, {video.id: row for row, video in enumerate(masks.videos)}
    video = np.array([row_of_id.get(one.id, -1) for one in frames.corpus.videos])[whole.video]
    known = np.flatnonzero(video >= 0)
    known = known[np.lexsort((whole.frame[known], video[known]))]
    table = Boxes(video[known], whole.frame[known], whole.xyxy[known])
    named = tuple(replace(one, id=f"{one.id}-mask") for one in masks.videos)  # other crops than those of the frames
    with_masks = Corpus(named, table, files=masks.files)
    mask_row = np.full(len(frames), -1)
    mask_row[known] = np.arange(len(known))
    return LearningPixels(
        frames, images, cached_crops(with_masks, np.arange(len(known)), rule, folder, progress), mask_row
    )


def frame_batches(count: int, size: int, seed: int, epoch: int) -> list[Rows]:
    """The frames of an epoch in random order, in full batches; fewer frames than a batch are repeated to fill one."""
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(count)
    if count < size:
        order = np.concatenate([order, rng.integers(count, size=size - count)])
    return [order[start : start + size] for start in range(0, len(order) - size + 1, size)]


def batches_with_frames(
    pixels: LearningPixels, batches: Sequence[Rows], rank: int, world: int, threads: int
) -> Iterator[tuple[Rows, FrameBatch]]:
    """Each batch in order, with the frames of this process's share of it. Threads read the next ones meanwhile."""
    with ThreadPoolExecutor(threads) as pool:
        coming = deque((rows, pool.submit(pixels.read, _share(rows, rank, world))) for rows in batches[:AHEAD])
        try:
            for number in range(len(batches)):
                current, frames = coming.popleft()
                later = batches[number + AHEAD : number + AHEAD + 1]
                coming.extend((rows, pool.submit(pixels.read, _share(rows, rank, world))) for rows in later)
                yield current, frames.result()
        finally:
            for _, frames in coming:
                frames.cancel()


def _share(rows: Rows, rank: int, world: int) -> Rows:
    size = len(rows) // world
    return rows[rank * size : (rank + 1) * size]


def _frames_with_polyps(boxes: Boxes, most: int) -> Rows:
    """Video and frame, int64[n, 2], of at most so many frames of each polyp; boxes of no known polyp count by video."""
    owner = np.where(boxes.polyp >= 0, boxes.polyp, -1 - boxes.video)
    order = np.lexsort((boxes.frame, boxes.video, owner))
    groups = np.split(order, np.flatnonzero(np.diff(owner[order])) + 1) if len(order) else []
    chosen = [np.column_stack([boxes.video[rows], boxes.frame[rows]])[evenly(len(rows), most)] for rows in groups]
    return np.unique(np.concatenate([np.empty((0, 2), np.int64), *chosen]).astype(np.int64), axis=0)


def _empty_frames(corpus: Corpus, most: int | None) -> Rows:
    """Video and frame, int64[n, 2], of at most so many frames without a box, evenly spaced over all there are."""
    lists = []
    for row, video in enumerate(corpus.videos):
        own = corpus.boxes.frame[
            np.searchsorted(corpus.boxes.video, row) : np.searchsorted(corpus.boxes.video, row + 1)
        ]
        empty = np.setdiff1d(np.arange(video.frame_count), own)
        lists.append(np.column_stack([np.full(len(empty), row), empty]))
    listed = np.concatenate([np.empty((0, 2), np.int64), *lists]).astype(np.int64)
    return listed if most is None or not len(listed) else listed[evenly(len(listed), most)] if most else listed[:0]


def _with_size(corpus: Corpus, row: int) -> Video:
    """A video with its width and height, from its pixels where the corpus does not say them."""
    video = corpus.videos[row]
    if video.width and video.height:
        return video
    source = open_video(video, corpus.files, row)
    return replace(video, width=source.width, height=source.height)


def _key(video: NDArray[np.integer], frame: NDArray[np.integer]) -> Rows:
    """One number for each frame of each video."""
    return video.astype(np.int64) << 32 | frame.astype(np.int64)
