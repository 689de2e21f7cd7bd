"""What is learnt from, and what it is judged on: videos, samplers and the crops that they need."""

import hashlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Corpus, Tracklets
from polypcount.encoder.embed import evenly
from polypcount.errors import DataError, FileError
from polypcount.progress import Progress, no_progress
from polypcount.tracking import fragments, link_tracklets
from polypcount.training.batches import Rows
from polypcount.training.recipe import DataSettings, Recipe
from polypcount.training.samplers import NeighbourSettings, PolypViewSettings, Sampler, new_sampler
from polypcount.video import CropRule, CropStore
from polypcount.video.opening import existing_source
from polypcount.video.store_build import build_store

_log = logging.getLogger(__name__)
_VALIDATION_SEED = 1


@dataclass(frozen=True, eq=False)
class Queries:
    """Tracklets or fragments that look for others of their polyp. rows: box rows of each. polyp: int64[n]."""

    rows: tuple[Rows, ...]
    polyp: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TrainingData:
    """One side of the split: a corpus, the sampler over it, and what is asked for retrieval (validation only)."""

    corpus: Corpus
    sampler: Sampler
    queries: Queries

    @property
    def rows(self) -> Rows:
        """Box rows whose crops are needed, rising."""
        return np.unique(np.concatenate([self.sampler.rows, *self.queries.rows]))


def training_data(corpus: Corpus, recipe: Recipe) -> tuple[TrainingData, TrainingData | None]:
    """What to learn from and what to validate on; no validation where the recipe's share is 0.

    A polyp that is seen in a video of both sides is validated on only.
    """
    learnt, judged = split_videos(corpus, recipe.data, recipe.seed)
    validation = corpus.select(videos=judged) if judged else None
    train = corpus.select(videos=learnt)
    if validation is not None:
        both = {polyp.id for polyp in validation.polyps}
        left = [polyp.id for polyp in train.polyps if polyp.id not in both]
        if not left:
            raise DataError(
                "there is nothing to learn from: every polyp is seen in a video for validation too, see data.validation"
            )
        train = train.select(polyps=left)
    for video in train.videos:
        existing_source(video)
    tracklets = link_tracklets(train.boxes)
    sampler = new_sampler(recipe.sampler, train.boxes, tracklets, recipe.seed)
    _log.info("learning from %d videos: %s", len(train.videos), sampler.use)
    learning = TrainingData(train, sampler, Queries((), np.empty(0, np.int64)))
    return learning, None if validation is None else _validation(validation, recipe)


def split_videos(corpus: Corpus, settings: DataSettings, seed: int) -> tuple[list[str], list[str]]:
    """Ids of the videos to learn from and of those to validate on, by split or, without one, drawn by the seed.

    Only videos with a polyp count; those of the splits in `leave_out` are in neither list.
    """
    seen = {int(row) for row in np.unique(corpus.boxes.video[corpus.boxes.polyp >= 0])}
    shown = [video for row, video in enumerate(corpus.videos) if row in seen]
    usable = [video for video in shown if video.split not in settings.leave_out]
    if not usable:
        raise DataError(
            f"there is nothing to learn from: {len(shown)} of {len(corpus.videos)} videos show a known polyp"
            + (f", all of them in the splits {_listed(v.split for v in shown)}, see data.leave_out" if shown else "")
        )
    if left := len(shown) - len(usable):
        _log.info("left out: %d videos of the splits %s", left, ", ".join(settings.leave_out))
    judged = [video.id for video in usable if video.split in settings.validation]
    if not judged and settings.validation_share > 0:
        if len(usable) < 2:
            raise DataError(
                f"validation needs a video of its own, and there is only {usable[0].id}: add videos, or set "
                "data.validation_share=0 to train without"
            )
        drawn = np.random.default_rng([seed, _VALIDATION_SEED]).permutation(len(usable))
        count = min(max(1, round(settings.validation_share * len(usable))), len(usable) - 1)
        judged = [usable[k].id for k in sorted(drawn[:count].tolist())]
    learnt = [video.id for video in usable if video.id not in set(judged)]
    if not learnt:
        raise DataError("there is nothing to learn from: every video is for validation, see data.validation")
    return learnt, judged


def open_crops(data: TrainingData, rule: CropRule, folder: Path, progress: Progress = no_progress) -> CropStore:
    """The crops of one side, cut where they are not there yet.

    Where most boxes are needed all are cut, so that recipes which differ in their samplers share the crops.
    """
    rows, known = data.rows, np.flatnonzero(data.corpus.boxes.polyp >= 0)
    if 2 * len(rows) > len(known):
        rows = np.union1d(rows, known)
    return kept_crops(data.corpus, rows, rule, folder, progress)


def kept_crops(corpus: Corpus, rows: Rows, rule: CropRule, folder: Path, progress: Progress = no_progress) -> CropStore:
    """The crops of box rows, rising, in a folder of their own by content."""
    digest = hashlib.sha256(f"{corpus.content_hash}\n{rule.fingerprint}\n".encode() + rows.tobytes())
    place = folder / digest.hexdigest()[:32]
    try:
        return build_store(corpus, rows, rule, place, progress)
    except OSError as problem:
        raise FileError(
            f"{place}: crops cannot be kept there ({problem.strerror}); POLYPCOUNT_CACHE moves the cache"
        ) from None


def _validation(corpus: Corpus, recipe: Recipe) -> TrainingData:
    for video in corpus.videos:
        existing_source(video)
    tracklets = link_tracklets(corpus.boxes)
    settings = recipe.sampler
    if isinstance(settings, PolypViewSettings):  # a small side has fewer polyps than a batch takes
        least = settings.views if settings.strict else 1
        pieces = fragments(tracklets, settings.length, settings.stride, settings.min_frames)
        owners, counts = np.unique(tracklets.polyp[pieces.tracklet], return_counts=True)
        ready = int(np.count_nonzero((owners >= 0) & (counts >= least)))
        settings = replace(settings, polyps=min(settings.polyps, max(2, ready)))
    elif settings.samples_per_epoch is None:
        settings = replace(settings, samples_per_epoch=settings.samples * recipe.validation.batches)
    try:
        sampler = new_sampler(settings, corpus.boxes, tracklets, recipe.seed)
    except DataError as problem:
        raise DataError(
            f"validation: {problem}; add videos to it, or set data.validation=[] and data.validation_share=0 to train "
            "without"
        ) from None
    _log.info("validating on %d videos: %s", len(corpus.videos), sampler.use)
    return TrainingData(corpus, sampler, _queries(tracklets, recipe))


def _queries(tracklets: Tracklets, recipe: Recipe) -> Queries:
    settings, sampler = recipe.validation, recipe.sampler
    if isinstance(sampler, NeighbourSettings):
        least, length, stride = 1, settings.frames, 1
    else:
        least, length = sampler.min_frames, sampler.length
        stride = sampler.stride if isinstance(sampler, PolypViewSettings) else max(sampler.strides)
    pieces = fragments(tracklets, length if settings.of == "fragments" else None, stride, least, drop_last=False)
    owner = tracklets.polyp[pieces.tracklet]
    known = np.flatnonzero(owner >= 0)
    chosen = known[evenly(len(known), settings.most)]
    rows = [pieces.rows_of(int(k)) for k in chosen]
    return Queries(tuple(mine[evenly(len(mine), settings.frames)] for mine in rows), owner[chosen].astype(np.int64))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names))) or "none"
