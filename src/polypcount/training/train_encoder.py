"""From a corpus and a recipe to a trained encoder, in a folder of its own."""

import secrets
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from polypcount.corpus import Corpus
from polypcount.encoder import Encoder, load_encoder
from polypcount.encoder.folder import refuse_unsuitable
from polypcount.errors import DataError
from polypcount.machine import available_cores
from polypcount.places import cache_folder
from polypcount.progress import Progress, no_progress
from polypcount.training.data import TrainingData, open_crops, training_data
from polypcount.training.frozen import features_never_change, open_both_features
from polypcount.training.learner import Learner
from polypcount.training.loggers import Loggers, refuse_missing
from polypcount.training.loop import Loop, Watch
from polypcount.training.processes import Machine, is_first, is_first_of_node, new_fabric, refuse_other_number
from polypcount.training.recipe import Recipe
from polypcount.training.recipe_file import load_recipe, recipe_text
from polypcount.training.run_folder import RunFolder, environment
from polypcount.training.samplers import PolypViewSettings
from polypcount.training.start import new_model
from polypcount.video import CropStore


def train(
    corpus: Corpus,
    recipe: str | Path | Mapping[str, Any] | Recipe | None = None,
    out: str | Path = "run",
    *,
    changes: Sequence[str] = (),
    resume: bool = False,
    machine: Machine | None = None,
    log_to: Sequence[str] = ("tensorboard",),
    cache: str | Path | None = None,
    download: bool = False,
    progress: Progress = no_progress,
    watch: Watch | None = None,
) -> Encoder:
    """Train an encoder and give the best one of all epochs; everything of the run is kept in the folder `out`.

    recipe: name of one that comes with the package (`temporal`, if not given), a YAML file, or values.
    changes: to the recipe, such as `optimizer.lr=1e-4`.
    resume: go on with the run in `out` exactly from its last checkpoint; without a recipe, with that of the run.
    machine: devices, precision and such. log_to: `tensorboard`, `wandb`, `mlflow`; CSV files are always written.
    cache: folder in which crops are kept for this and other runs; the user's cache folder, if not given.
    download: whether weights of a backbone may be fetched. progress: counts crops while they are cut
        and, where the backbone never changes, while their features are computed.
    watch: is told after each step and each epoch. Ctrl-C and SIGTERM end it with `Stopped`, ready to be resumed.
    """
    place, machine = RunFolder(Path(out)), machine or Machine()
    own = resume and recipe is None and place.started
    wanted = load_recipe(place.recipe() if own else recipe or "temporal", changes)
    refuse_missing(log_to)
    refuse_other_number(machine)
    _refuse_impossible(wanted, machine)
    if is_first():
        refuse_unsuitable(place.folder)
        if resume:
            place.refuse_another(wanted, corpus.content_hash)
        else:
            place.refuse_used()
    fabric = new_fabric(machine)
    encoder = new_model(_without_weights(wanted) if resume and place.last.exists() else wanted, download=download)
    learning, judging = training_data(corpus, wanted)
    with place.locked() if is_first() else nullcontext():
        if is_first() and resume:
            place.tidy()
            place.add(resumed=[*place.about().get("resumed", []), {"machine": asdict(machine), **environment()}])
        elif is_first():
            place.begin(wanted, _about(corpus, wanted, machine, learning, judging))
        folder = cache_folder() / "crops" if cache is None else Path(cache)
        stores = _open_crops(learning, judging, wanted, folder, progress) if is_first_of_node() else None
        fabric.launch()
        fabric.barrier()
        crops, judged_crops = stores or _open_crops(learning, judging, wanted, folder, no_progress)
        loop = Loop(
            learner=Learner(fabric, encoder, wanted, machine.views_at_once),
            place=place,
            learning=learning,
            crops=crops,
            judging=judging,
            judged_crops=judged_crops,
            readers=machine.readers or max(1, available_cores() // 2),
            watch=watch or (lambda _: None),
        )
        if resume:
            loop.restore()
        if features_never_change(wanted):  # not earlier: a resumed run has its backbone from the checkpoint
            both = open_both_features(loop.learner, crops, judged_crops, loop.readers, progress)
            loop.crops, loop.judged_crops = both
        if is_first():
            place.write("recipe.yaml", recipe_text(wanted))  # a resumed run may have more epochs now
            _run_first(loop, log_to, resume, corpus.content_hash)
        else:
            loop.run()
        fabric.barrier()
    return load_encoder(place.folder)


def _run_first(loop: Loop, log_to: Sequence[str], resume: bool, data_hash: str) -> None:
    """What the process does that writes and logs."""
    step = loop.course.steps_done if resume else None
    loggers = Loggers(log_to, loop.place.folder, loop.place.about(), loop.recipe.model_dump(mode="json"), step)
    loop.place.add(loggers=loggers.ids)
    loop.loggers = loggers
    whole = False
    try:
        loop.run()
        loop.finish(data_hash)
        whole = True
    finally:
        loggers.close(whole)


def _without_weights(recipe: Recipe) -> Recipe:
    """For a run whose checkpoint has them all: where they once came from need not be there any more."""
    needless = {"start": None} if recipe.model.weights is True else {"start": None, "weights": False}
    return recipe.model_copy(update={"model": recipe.model.model_copy(update=needless)})


def _open_crops(
    learning: TrainingData, judging: TrainingData | None, recipe: Recipe, folder: Path, progress: Progress
) -> tuple[CropStore, CropStore | None]:
    # Augmentation cuts from somewhat more than it gives; without it, and for validation, pixels are those of `embed`.
    rule = recipe.crop if recipe.augmentation.off else recipe.crop.roomier()
    crops = open_crops(learning, rule, folder, progress)
    return crops, None if judging is None else open_crops(judging, recipe.crop, folder, progress)


def _refuse_impossible(recipe: Recipe, machine: Machine) -> None:
    if recipe.model.batch_norm == "batch" and (machine.processes > 1 or machine.views_at_once is not None):
        raise DataError(
            "model.batch_norm batch takes statistics over the batch, which several devices or --views-at-once would "
            "take over parts of it: set model.batch_norm=fixed"
        )
    sampler = recipe.sampler
    views = sampler.polyps * sampler.views if isinstance(sampler, PolypViewSettings) else 2 * sampler.samples
    if views % machine.processes:
        raise DataError(
            f"a batch of {views} views cannot be shared equally by {machine.processes} processes; change the sampler's "
            "numbers or the devices"
        )


def _about(
    corpus: Corpus, recipe: Recipe, machine: Machine, learning: TrainingData, judging: TrainingData | None
) -> dict[str, Any]:
    """What `run.json` says of a run, apart from the environment."""
    sides = {"learnt_from": learning, "validated_on": judging}
    return {
        "id": secrets.token_hex(8),
        "recipe": recipe.name,
        "seed": recipe.seed,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "corpus_hash": corpus.content_hash,
        **{
            name: None
            if side is None
            else {"use": side.sampler.use, "videos": [video.id for video in side.corpus.videos]}
            for name, side in sides.items()
        },
        "machine": asdict(machine),
    }
