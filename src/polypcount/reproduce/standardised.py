"""The baseline that every trained encoder has to beat: a backbone as it was published, each feature standardised."""

import logging
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from polypcount.corpus import Corpus
from polypcount.encoder import TrackletEncoder, save_encoder, standardised_encoder
from polypcount.encoder.embed import evenly
from polypcount.machine import available_cores
from polypcount.progress import Progress, no_progress
from polypcount.training import Recipe
from polypcount.training.data import split_videos
from polypcount.training.start import new_model
from polypcount.video.store_build import parts_of
from polypcount.video.store_part import crops_of, open_part

_log = logging.getLogger(__name__)
_MOST_CROPS = 4096  # the mean of that many is known to 1/64 of a standard deviation
_CROPS_AT_ONCE = 64


def save_standardised(
    corpus: Corpus, recipe: Recipe, folder: Path, *, download: bool = False, progress: Progress = no_progress
) -> None:
    """Save a `standardised_encoder` of the recipe's backbone and crops, without training.

    It is standardised on crops at even distances among all boxes of known polyps in the videos that the recipe learns
    from.
    """
    start = new_model(recipe, download=download).eval()
    learnt, _ = split_videos(corpus, recipe.data, recipe.seed)
    features = np.concatenate(list(_features(corpus.select(videos=learnt), start, progress)))
    encoder = standardised_encoder(start.backbone, features, start.spec.preprocessing)
    described = recipe.model_dump(mode="json")
    save_encoder(encoder, folder, recipe=described, data_hash=corpus.content_hash, metrics={"crops": len(features)})
    _log.info("standardised on %d crops of %d videos", len(features), len(learnt))


def _features(corpus: Corpus, encoder: TrackletEncoder, progress: Progress) -> Iterator[NDArray[np.float32]]:
    """Features of chosen crops, float32[n, f] at a time."""
    images = encoder.spec.preprocessing
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (images.mean, images.std))
    known = np.flatnonzero(corpus.boxes.polyp >= 0)
    rows = known[evenly(len(known), _MOST_CROPS)]
    done = 0
    for part in parts_of(corpus, rows, images.crop):
        crops = crops_of(part, open_part(part, available_cores()))
        while batch := list(islice(crops, _CROPS_AT_ONCE)):
            pixels = torch.from_numpy(np.stack(batch)).permute(0, 3, 1, 2).float().div_(255)
            with torch.inference_mode():
                yield encoder.encode_frames(pixels.sub_(mean).div_(std)).numpy()
            done += len(batch)
            progress(done, len(rows))
