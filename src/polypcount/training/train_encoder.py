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
from polypcount.encoder.manifest import FOLDER
from polypcount.errors import DataError
from polypcount.machine import available_cores
from polypcount.progress import Progress, no_progress
from polypcount.storage import cache_folder
from polypcount.training.data import TrainingData, crops_to_learn_from, open_crops, training_data
from polypcount.training.encoder_lesson import EncoderLesson
from polypcount.training.frozen import features_never_change, open_both_features
from polypcount.training.learner import Learner
from polypcount.training.loggers import Loggers, refuse_missing
from polypcount.training.loop import Loop, Watch
from polypcount.training.memory import views_that_fit
from polypcount.training.processes import Machine, is_first, is_first_of_node, new_fabric, refuse_other_number
from polypcount.training.recipe import Recipe
from polypcount.training.recipe_file import load_recipe, recipe_text
from polypcount.training.run_folder import RunFolder, environment
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
    """Train an encoder; everything of the run is written to the folder `out`.

    Args:
        corpus: Videos with known polyps.
        recipe: Name of a recipe of the package (default `temporal`), a YAML file, or values.
        changes: Changes to the recipe, such as `optimizer.lr=1e-4`.
        out: The run folder.
        resume: Continue the run in `out` exactly from its last checkpoint. Without a recipe, the recipe of the run is
            used.
        machine: Devices, precision and so on.
        log_to: `tensorboard`, `wandb`, `mlflow`; CSV files are always written.
        cache: Folder for crops, shared by runs; by default in the user's cache folder.
        download: Whether weights of a backbone may be downloaded.
        progress: Counts crops while they are cut and, if the backbone never changes, frames while their features are
            computed.
        watch: Called after each step and each epoch.

    Returns:
        The encoder of the best epoch.

    Raises:
        Stopped: Ctrl-C or SIGTERM; the run can be resumed.
    """
    run_folder, machine = RunFolder(Path(out)), machine or Machine()
    of_run = resume and recipe is None and run_folder.started
    chosen = load_recipe(run_folder.recipe() if of_run else recipe or "temporal", changes)
    refuse_missing(log_to)
    refuse_other_number(machine)
    _refuse_impossible(chosen, machine)
    if is_first():
        FOLDER.refuse_unsuitable(run_folder.folder)
        if resume:
            run_folder.refuse_another(chosen, corpus.content_hash)
        else:
            run_folder.refuse_used()
    fabric = new_fabric(machine)
    has_weights = resume and run_folder.last.exists()
    encoder = new_model(_without_weights(chosen) if has_weights else chosen, download=download)
    learning, validation = training_data(corpus, chosen)
    before = run_folder.about().get("views_at_once") if resume else None
    at_once = views_that_fit(encoder, chosen, machine, fabric.device, before)
    with run_folder.locked() if is_first() else nullcontext():
        if is_first() and resume:
            run_folder.tidy()
            entry = {"machine": asdict(machine), **environment()}
            run_folder.add(resumed=[*run_folder.about().get("resumed", []), entry], views_at_once=at_once)
            run_folder.write("recipe.yaml", recipe_text(chosen))  # a resumed run may have more epochs
        elif is_first():
            run_folder.begin(chosen, _about(corpus, chosen, machine, at_once, learning, validation))
        folder = cache_folder() / "crops" if cache is None else Path(cache)
        stores = _open_crops(learning, validation, chosen, folder, progress) if is_first_of_node() else None
        fabric.launch()
        fabric.barrier()
        crops, validation_crops = stores or _open_crops(learning, validation, chosen, folder, no_progress)
        lesson = EncoderLesson(
            learner=Learner(fabric, encoder, chosen, at_once),
            learning=learning,
            crops=crops,
            validation=validation,
            validation_crops=validation_crops,
            readers=machine.readers or max(1, available_cores() // 2),
        )
        loop = Loop(lesson, run_folder, watch or (lambda _: None))
        if resume:
            loop.restore()
        if features_never_change(chosen):  # not before `restore`, which loads the backbone of a resumed run
            features = open_both_features(lesson.learner, crops, validation_crops, lesson.readers, progress)
            lesson.crops, lesson.validation_crops = features
        run_whole(loop, log_to, resume, corpus.content_hash)
        fabric.barrier()
    return load_encoder(run_folder.folder)


def run_whole(loop: Loop, log_to: Sequence[str], resume: bool, data_hash: str) -> None:
    """Train; the first process writes and logs."""
    if not is_first():
        loop.run()
        return
    run_folder, values = loop.run_folder, loop.recipe.model_dump(mode="json")
    step = loop.course.steps_done if resume else None
    with Loggers(log_to, run_folder.folder, run_folder.about(), values, step) as loop.loggers:
        run_folder.add(loggers=loop.loggers.ids)
        loop.run()
        loop.finish(data_hash)


def _without_weights(recipe: Recipe) -> Recipe:
    """The recipe without files of weights: the checkpoint has all weights, and these files may be gone."""
    unused = {"start": None} if recipe.model.weights is True else {"start": None, "weights": False}
    return recipe.model_copy(update={"model": recipe.model.model_copy(update=unused)})


def _open_crops(
    learning: TrainingData, validation: TrainingData | None, recipe: Recipe, folder: Path, progress: Progress
) -> tuple[CropStore, CropStore | None]:
    crops = open_crops(learning, crops_to_learn_from(recipe), folder, progress)
    return crops, None if validation is None else open_crops(validation, recipe.crop, folder, progress)


def _refuse_impossible(recipe: Recipe, machine: Machine) -> None:
    if recipe.model.batch_norm == "batch" and (machine.processes > 1 or machine.views_at_once is not None):
        raise DataError(
            "model.batch_norm batch takes statistics over the whole batch, but several devices, or a few views at a "
            "time, see only parts of it: set model.batch_norm=fixed",
            mend=("devices", "views_at_once"),
        )
    if recipe.views % machine.processes:
        raise DataError(
            f"a batch of {recipe.views} views cannot be shared equally by {machine.processes} processes; change the "
            "sampler's numbers or the devices",
            mend="devices",
        )


def _about(
    corpus: Corpus,
    recipe: Recipe,
    machine: Machine,
    at_once: int | None,
    learning: TrainingData,
    validation: TrainingData | None,
) -> dict[str, Any]:
    """What `run.json` says about a run, apart from the environment."""
    sides = {"learnt_from": learning, "validated_on": validation}
    return {
        **about_run(corpus, recipe, machine),
        **{
            name: side and {"use": side.sampler.use, "videos": [video.id for video in side.corpus.videos]}
            for name, side in sides.items()
        },
        "views_at_once": at_once,  # a resumed run takes the same number, so that its dropout is the same
    }


def about_run(corpus: Corpus, recipe: Any, machine: Machine) -> dict[str, Any]:
    """What `run.json` says about every run."""
    return {
        "id": secrets.token_hex(8),
        "recipe": recipe.name,
        "seed": recipe.seed,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "corpus_hash": corpus.content_hash,
        "machine": asdict(machine),
    }
