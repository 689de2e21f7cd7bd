"""Make one encoder: train it, resume a training that stopped, or leave a finished one as it is."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from polypcount.corpus import Corpus
from polypcount.encoder import save_encoder, standardised_encoder
from polypcount.encoder.engine_onnx import open_frames
from polypcount.encoder.export import export_encoder
from polypcount.encoder.manifest import MANIFEST
from polypcount.errors import PolypcountError
from polypcount.progress import Progress, no_progress
from polypcount.reproduce.data import Benchmark, Stage, saved, silent
from polypcount.reproduce.rows import EncoderRow
from polypcount.storage import cache_folder, content_key, write_json, write_text
from polypcount.tracking import evenly
from polypcount.training import Machine, Moment, Recipe, Stopped, load_recipe, recipe_text, train
from polypcount.training.batches import RowNumbers
from polypcount.training.data import cached_crops, split_videos
from polypcount.training.recipe_file import flat_values, recipe_differences
from polypcount.training.run_folder import RunFolder
from polypcount.training.start import new_model

_log = logging.getLogger(__name__)
_MOST_CROPS = 4096  # the standard error of their mean is 1/64 of a standard deviation
_CROPS_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class EncoderJob:
    """An encoder of one row and seed on one benchmark.

    Attributes:
        out: Folder of all encoders.
    """

    row: EncoderRow
    seed: int | None
    recipe: Recipe
    benchmark: Benchmark
    out: Path

    @property
    def title(self) -> str:
        """Its name in messages."""
        return job_title(self.row.name, self.seed, self.benchmark)

    @cached_property
    def key(self) -> str:
        """Key of everything that decides its weights, apart from rounding: the recipe with its seed, and the data."""
        return content_key("encoder 2", self.row.trained, recipe_text(self.recipe), self.benchmark.learn_key)

    @property
    def folder(self) -> Path:
        """Where it is saved; there is a JSON file beside it when it is finished."""
        return self.out / self.benchmark.name / file_name(self.row.name, self.seed, self.key)

    @property
    def report(self) -> Path:
        """The JSON file beside the folder: key, recipe, seconds."""
        return self.folder.with_name(f"{self.folder.name}.json")

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.report.exists() and (self.folder / MANIFEST).exists()


def job_title(name: str, seed: int | None, benchmark: Benchmark) -> str:
    """The name of a row or encoder in messages."""
    return f"{name}{'' if seed is None else f', seed {seed}'}, {benchmark.name}"


def file_name(name: str, seed: int | None, key: str) -> str:
    """Name, without suffix, of the file or folder with this key; `seed` is None for what does not depend on it."""
    return f"{name}{'' if seed is None else f'-{seed}'}-{key[:8]}"


def recipe_for(
    row: EncoderRow, seed: int | None, changes: Sequence[str], length: Sequence[str] = (), *, sparse: bool = False
) -> Recipe:
    """The recipe of a row.

    Args:
        row: The encoder.
        seed: None for the seed of the recipe.
        changes: Changes to all rows.
        length: Changes that say how long to train, see `plan.py`.
        sparse: See `EncoderRow`.
    """
    own = [] if seed is None else [f"seed={seed}"]
    return load_recipe(row.recipe, [*(row.sparse if sparse else ()), *changes, *row.changes, *length, *own])


def engine_for(engine: str, machine: Machine | None, *, cuda: bool | None = None) -> str:
    """What embeds: the engine asked for or, for `auto`, torch where training is on CUDA.

    ONNX Runtime and OpenVINO, which `auto` takes otherwise, mostly come without CUDA.

    Args:
        engine: See `load_encoder`. For `auto`, the environment variable `POLYPCOUNT_ENGINE` comes first.
        machine: Machine for training.
        cuda: Whether torch has CUDA; None to ask it.
    """
    accelerator = (machine or Machine()).accelerator
    on_gpu = accelerator in ("cuda", "gpu", "auto") and (torch.cuda.is_available() if cuda is None else cuda)
    return "torch" if engine == "auto" and on_gpu and not os.environ.get("POLYPCOUNT_ENGINE") else engine


def published_changes(row: EncoderRow) -> list[str]:
    """Changes that give the recipe of a row the settings of the published code, as far as its sampler has them."""
    own = flat_values(load_recipe(row.recipe))
    published = recipe_differences("published", "temporal")
    return [f"{key}={json.dumps(value)}" for key, value in published.items() if key in own]


def make_encoder(
    job: EncoderJob, *, machine: Machine | None = None, download: bool = False, stage: Stage = silent
) -> Path:
    """Make the encoder unless it is finished.

    Returns:
        Its folder.
    """
    if job.finished:
        return job.folder
    started = time.monotonic()
    run_folder = RunFolder(job.folder)
    resumed = job.row.trained and run_folder.started
    _log.info("%s: %s", job.title, "resuming" if resumed else "training" if job.row.trained else "standardising")
    if job.row.trained and machine is not None and machine.processes > 1:
        train_apart(job, resume=resumed, machine=machine, download=download)
    elif job.row.trained:
        _train(job, resumed, machine, download, stage)
    else:
        with stage(f"{job.title}: features") as progress:
            save_standardised(job.benchmark.learn, job.recipe, job.folder, download=download, progress=progress)
    seconds, steps = time.monotonic() - started, len(run_folder.rows("steps.csv"))
    report = {
        "key": job.key,
        "encoder": job.row.name,
        "seed": job.seed,
        "benchmark": job.benchmark.name,
        "steps": steps,
        "images": steps * job.recipe.images,
        "seconds": round(seconds, 1),  # of the process that finished it
        "resumed": resumed,
    }
    write_json(job.report, report)
    _log.info("%s: done in %.0f s", job.title, seconds)
    return job.folder


def _train(job: EncoderJob, resume: bool, machine: Machine | None, download: bool, stage: Stage) -> None:
    training: Progress | None = None
    with ExitStack() as bars:
        cutting = bars.enter_context(stage(f"{job.title}: crops"))

        def watch(moment: Moment) -> None:
            nonlocal training
            if training is None:
                bars.close()  # a terminal shows one bar at a time
                training = bars.enter_context(stage(f"{job.title}: steps"))
            training(moment.done, max(moment.done, moment.total))

        train(
            job.benchmark.learn,
            job.recipe,
            job.folder,
            resume=resume,
            machine=machine,
            log_to=(),
            download=download,
            progress=cutting,
            watch=watch,
        )


def train_apart(job: EncoderJob, *, resume: bool, machine: Machine, download: bool) -> None:
    """Train on several devices, by `polypcount train`, which starts a process for each.

    Lightning starts the command of this process again for each device, so that must not be the comparison.
    """
    corpus = job.out.parent / "corpora" / job.benchmark.name / "learn"
    saved(job.benchmark.learn, corpus)
    recipe = job.folder.with_name(f"{job.folder.name}.yaml")
    write_text(recipe, recipe_text(job.recipe))
    options = [f"--{name}={getattr(machine, name)}" for name in ("accelerator", "devices", "nodes", "precision")]
    options += [f"--views-at-once={machine.views_at_once}"] if machine.views_at_once else []
    options += [name for name, wanted in (("--download", download), ("--resume", resume)) if wanted]
    command = [sys.executable, "-m", "polypcount", "train", str(corpus), f"--recipe={recipe}", f"--out={job.folder}"]
    threads = {} if machine.readers is None else {"OMP_NUM_THREADS": str(machine.readers)}
    # In a session of its own, Ctrl-C in the terminal reaches only this process, which passes it on once.
    with subprocess.Popen(  # noqa: S603, our own program with values that were checked
        [*command, *options, "--log-to=none"], env={**os.environ, **threads}, start_new_session=True
    ) as training:
        try:
            code = training.wait()
        except BaseException:
            training.terminate()
            raise
    if code in (128 + signal.SIGINT, 128 + signal.SIGTERM):
        raise Stopped("the training was stopped", code - 128)
    if code != 0:
        raise PolypcountError(f"training on {machine.processes} devices ended with code {code}; see its message above")


def save_standardised(
    corpus: Corpus, recipe: Recipe, folder: Path, *, download: bool = False, progress: Progress = no_progress
) -> None:
    """Save a `standardised_encoder` of the recipe's backbone and crops, without training: the baseline to beat.

    It is standardised on evenly spaced crops among all boxes of known polyps in the videos that the recipe learns from.
    """
    start = new_model(recipe, download=download).eval()
    chosen, rows = standardised_crops(corpus, recipe)
    store = cached_crops(chosen, rows, recipe.crop, cache_folder() / "crops", progress)
    model, _ = export_encoder(start)
    frames = open_frames(model, "the backbone", start.spec, None)
    blocks = np.split(rows, np.arange(_CROPS_AT_ONCE, len(rows), _CROPS_AT_ONCE))
    features = np.concatenate([frames(store.crops(block)) for block in blocks])
    encoder = standardised_encoder(start.backbone, features, start.spec.preprocessing)
    values = recipe.model_dump(mode="json")
    save_encoder(encoder, folder, recipe=values, data_hash=corpus.content_hash, metrics={"crops": len(features)})
    _log.info("standardised on %d crops of %d videos", len(features), len(chosen.videos))


def standardised_crops(corpus: Corpus, recipe: Recipe) -> tuple[Corpus, RowNumbers]:
    """The videos that the recipe learns from, and the box rows on which features are standardised."""
    learnt, _ = split_videos(corpus, recipe.data, recipe.seed)
    chosen = corpus.select(videos=learnt)
    labelled = np.flatnonzero(chosen.boxes.polyp >= 0)
    return chosen, labelled[evenly(len(labelled), _MOST_CROPS)]
