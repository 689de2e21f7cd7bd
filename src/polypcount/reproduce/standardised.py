"""The baseline that every trained encoder has to beat: a backbone as it was published, each feature standardised."""

import logging
from pathlib import Path

import numpy as np

from polypcount.corpus import Corpus
from polypcount.encoder import save_encoder, standardised_encoder
from polypcount.encoder.embed import evenly
from polypcount.encoder.engine_onnx import open_frames
from polypcount.encoder.export import export_encoder
from polypcount.places import cache_folder
from polypcount.progress import Progress, no_progress
from polypcount.training import Recipe
from polypcount.training.data import kept_crops, split_videos
from polypcount.training.start import new_model

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
    chosen = corpus.select(videos=learnt)
    known = np.flatnonzero(chosen.boxes.polyp >= 0)
    store = kept_crops(chosen, known, recipe.crop, cache_folder() / "crops", progress)
    rows = known[evenly(len(known), _MOST_CROPS)]
    model, _ = export_encoder(start)
    frames = open_frames(model, "the backbone", start.spec, None)
    blocks = np.split(rows, np.arange(_CROPS_AT_ONCE, len(rows), _CROPS_AT_ONCE))
    features = np.concatenate([frames(store.crops(block)) for block in blocks])
    encoder = standardised_encoder(start.backbone, features, start.spec.preprocessing)
    described = recipe.model_dump(mode="json")
    save_encoder(encoder, folder, recipe=described, data_hash=corpus.content_hash, metrics={"crops": len(features)})
    _log.info("standardised on %d crops of %d videos", len(features), len(learnt))
