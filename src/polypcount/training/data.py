"""The data for training and for validation: videos, samplers and the crops that they need."""

import logging
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Corpus, Tracklets
from polypcount.errors import DataError, FileError, first_line
from polypcount.progress import Progress, no_progress
from polypcount.storage import content_key
from polypcount.tracking import evenly, fragments, link_tracklets
from polypcount.training.batches import RowNumbers
from polypcount.training.recipe import DataSettings, NeighbourSettings, PolypViewSettings, Recipe
from polypcount.training.samplers import Sampler, new_sampler, polyp_fragments
from polypcount.video import CropRule, CropStore
from polypcount.video.opening import existing_source
from polypcount.video.store_build import build_store

_log = logging.getLogger(__name__)
_VALIDATION_SEED = 1


@dataclass(frozen=True, eq=False)
class TrainingData:
    """One side of the split: a corpus and the sampler over it.

    Attributes:
        queries: Box rows of each query: in validation, tracklets or fragments that search for others of their polyp.
        query_polyp: int64[n], the polyp of each query.
    """

    corpus: Corpus
    sampler: Sampler
    queries: tuple[RowNumbers, ...] = ()
    query_polyp: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def rows(self) -> RowNumbers:
        """Box rows whose crops are needed, in rising order."""
        return np.unique(np.concatenate([self.sampler.rows, *self.queries]))


def training_data(corpus: Corpus, recipe: Recipe) -> tuple[TrainingData, TrainingData | None]:
    """What to learn from, and what to validate on; None if the recipe's share is 0.

    A polyp in videos of both sides is only used for validation.
    """
    train, validation = split_corpus(corpus, recipe)
    for video in (*train.videos, *(validation.videos if validation else ())):
        existing_source(video)
    sampler = new_sampler(recipe, train.boxes, link_tracklets(train.boxes))
    polyps = "" if validation is None else f" ({len(validation.polyps)} polyps are for validation)"
    _log.info("learning from %d videos%s: %s", len(train.videos), polyps, sampler.use)
    return TrainingData(train, sampler), None if validation is None else _validation(validation, recipe)


def split_corpus(corpus: Corpus, recipe: Recipe) -> tuple[Corpus, Corpus | None]:
    """The part to learn from, and the part to validate on. A polyp of both is only in the second."""
    learnt, validated = split_videos(corpus, recipe.data, recipe.seed)
    train = corpus.select(videos=learnt)
    if not validated:
        return train, None
    validation = corpus.select(videos=validated)
    shared = {polyp.id for polyp in validation.polyps}
    polyps = [polyp.id for polyp in train.polyps if polyp.id not in shared]
    if not polyps:
        raise DataError("there is nothing to learn from: every polyp is also seen in a video for data.validation")
    return train.select(polyps=polyps), validation


def epoch_batches(corpus: Corpus, recipe: Recipe) -> int:
    """Batches of the first epoch. Pixels are not needed."""
    return sum(1 for _ in learnt_data(corpus, recipe).sampler.batches(0))


def split_videos(corpus: Corpus, settings: DataSettings, seed: int) -> tuple[list[str], list[str]]:
    """Ids of the videos for training and for validation, by split or, without a split, drawn by the seed.

    Only videos with a polyp count; those of the splits in `leave_out` are in neither list.
    """
    labelled = np.unique(corpus.boxes.video[corpus.boxes.polyp >= 0]).tolist()
    with_polyp = [corpus.videos[row] for row in labelled]
    usable = [video for video in with_polyp if video.split not in settings.leave_out]
    if not usable:
        splits = ", ".join(sorted({video.split for video in with_polyp}))
        raise DataError(
            f"there is nothing to learn from: {len(with_polyp)} of {len(corpus.videos)} videos show a known polyp"
            + (f", all of them in the splits {splits or 'none'}, see data.leave_out" if with_polyp else "")
        )
    if left_out := len(with_polyp) - len(usable):
        _log.info("left out: %d videos of the splits %s", left_out, ", ".join(settings.leave_out))
    validated = [video.id for video in usable if video.split in settings.validation]
    if not validated and settings.validation_share > 0:
        if len(usable) < 2:
            raise DataError(
                f"validation needs its own video, and there is only {usable[0].id}: add videos, or set "
                "data.validation_share=0 to train without"
            )
        order = np.random.default_rng([seed, _VALIDATION_SEED]).permutation(len(usable))
        count = min(max(1, round(settings.validation_share * len(usable))), len(usable) - 1)
        validated = [usable[k].id for k in sorted(order[:count].tolist())]
    learnt = [video.id for video in usable if video.id not in set(validated)]
    if not learnt:
        raise DataError("there is nothing to learn from: every video is for validation, see data.validation")
    return learnt, validated


def open_crops(data: TrainingData, rule: CropRule, folder: Path, progress: Progress = no_progress) -> CropStore:
    """The crops of one side; they are cut if they do not exist yet."""
    return cached_crops(data.corpus, crop_rows(data), rule, folder, progress)


def crop_rows(data: TrainingData) -> RowNumbers:
    """Box rows whose crops are cut, in rising order.

    If most labelled boxes are needed, they are all of them, so that recipes with different samplers share the crops.
    """
    rows, labelled = data.rows, np.flatnonzero(data.corpus.boxes.polyp >= 0)
    return np.union1d(rows, labelled) if 2 * len(rows) > len(labelled) else rows


def learnt_data(corpus: Corpus, recipe: Recipe) -> TrainingData:
    """What the recipe learns from. Pixels are not needed."""
    train, _ = split_corpus(corpus, recipe)
    return TrainingData(train, new_sampler(recipe, train.boxes, link_tracklets(train.boxes)))


def crops_to_learn_from(recipe: Recipe) -> CropRule:
    """How crops for training are cut: larger if augmentation cuts from them, else with the pixels of `embed`."""
    return recipe.crop if recipe.augmentation.off else recipe.crop.roomier()


def cached_crops(
    corpus: Corpus, rows: RowNumbers, rule: CropRule, folder: Path, progress: Progress = no_progress
) -> CropStore:
    """The crops of box rows, in rising order, in their `crop_folder`."""
    path = crop_folder(corpus, rows, rule, folder)
    try:
        return build_store(corpus, rows, rule, path, progress)
    except OSError as problem:
        raise FileError(
            f"{path}: crops cannot be written there ({first_line(problem)}); POLYPCOUNT_CACHE moves the cache"
        ) from None


def crop_folder(corpus: Corpus, rows: RowNumbers, rule: CropRule, folder: Path) -> Path:
    """The subfolder of these crops, named by their content."""
    return folder / content_key("training crops 1", corpus.content_hash, rule.fingerprint, rows)[:32]


def _validation(corpus: Corpus, recipe: Recipe) -> TrainingData:
    tracklets, settings, batches = link_tracklets(corpus.boxes), recipe.sampler, recipe.validation.batches
    if isinstance(settings, PolypViewSettings):  # few videos may have too few polyps for a batch
        _, of_polyp = polyp_fragments(tracklets, settings)
        settings = settings.model_copy(update={"polyps": min(settings.polyps, max(2, len(of_polyp)))})
    own = recipe.model_copy(update={"sampler": settings, "batches_per_epoch": batches, "steps": None})
    try:
        sampler = new_sampler(own, corpus.boxes, tracklets)
    except DataError as problem:
        raise DataError(
            f"validation: {problem}; add videos to it, or set data.validation=[] and data.validation_share=0 to train "
            "without"
        ) from None
    _log.info("validating on %d videos: %s", len(corpus.videos), sampler.use)
    return TrainingData(corpus, sampler, *_queries(tracklets, recipe))


def _queries(tracklets: Tracklets, recipe: Recipe) -> tuple[tuple[RowNumbers, ...], NDArray[np.int64]]:
    settings, sampler = recipe.validation, recipe.sampler
    if isinstance(sampler, NeighbourSettings):
        min_frames, length, stride = 1, settings.frames, 1
    else:
        min_frames, length = sampler.min_frames, sampler.length
        stride = sampler.stride if isinstance(sampler, PolypViewSettings) else max(sampler.strides)
    pieces = fragments(tracklets, length if settings.of == "fragments" else None, stride, min_frames, drop_last=False)
    owner = tracklets.polyp[pieces.tracklet]
    labelled = np.flatnonzero(owner >= 0)
    chosen = labelled[evenly(len(labelled), settings.most)]
    rows = [pieces.rows_of(int(piece)) for piece in chosen]
    evenly_spaced = tuple(boxes[evenly(len(boxes), settings.frames)] for boxes in rows)
    return evenly_spaced, owner[chosen].astype(np.int64)
