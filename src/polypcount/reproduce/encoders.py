"""Make one encoder: train it, go on where a training stopped, or leave alone what is there."""

import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from polypcount.encoder.manifest import MANIFEST
from polypcount.progress import Progress
from polypcount.reproduce.data import Benchmark, Stage, silent
from polypcount.reproduce.kept import key_of, place_of, write_json
from polypcount.reproduce.rows import EncoderRow
from polypcount.reproduce.standardised import save_standardised
from polypcount.training import Machine, Moment, Recipe, load_recipe, recipe_text, train
from polypcount.training.run_folder import RunFolder

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class EncoderJob:
    """An encoder of one row and seed on one benchmark. out: folder of all encoders."""

    row: EncoderRow
    seed: int | None
    recipe: Recipe
    benchmark: Benchmark
    out: Path

    @property
    def told(self) -> str:
        """What it is called in lines for people."""
        seed = "" if self.seed is None else f", seed {self.seed}"
        return f"{self.row.name}{seed}, {self.benchmark.name}"

    @cached_property
    def key(self) -> str:
        """Of all that decides about its weights, apart from rounding: the recipe with its seed, and the data."""
        return key_of(self.row.trained, recipe_text(self.recipe), self.benchmark.learn_key)

    @property
    def folder(self) -> Path:
        """Where it is kept; beside it lies a JSON file once it is finished."""
        return place_of(self.out / self.benchmark.name, self.row.name, self.seed, self.key)

    @property
    def report(self) -> Path:
        """The JSON file beside the folder: key, recipe, seconds."""
        return self.folder.with_name(f"{self.folder.name}.json")

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.report.exists() and (self.folder / MANIFEST).exists()


def recipe_for(
    row: EncoderRow, seed: int | None, changes: Sequence[str], length: Sequence[str] = (), *, sparse: bool = False
) -> Recipe:
    """The recipe of a row.

    changes: to all rows alike. length: how long to train, see `plan.py`. sparse: see `EncoderRow`.
    """
    own = [] if seed is None else [f"seed={seed}"]
    return load_recipe(row.recipe, [*(row.sparse if sparse else ()), *changes, *row.changes, *length, *own])


def make_encoder(
    job: EncoderJob, *, machine: Machine | None = None, download: bool = False, stage: Stage = silent
) -> Path:
    """The folder of the finished encoder."""
    if job.finished:
        return job.folder
    started = time.monotonic()
    resumed = job.row.trained and RunFolder(job.folder).started
    _log.info("%s: %s", job.told, "going on" if resumed else "training" if job.row.trained else "standardising")
    if job.row.trained:
        _train(job, resumed, machine, download, stage)
    else:
        with stage(f"{job.told}: features") as progress:
            save_standardised(job.benchmark.learn, job.recipe, job.folder, download=download, progress=progress)
    seconds = time.monotonic() - started
    write_json(
        job.report,
        {
            "key": job.key,
            "encoder": job.row.name,
            "seed": job.seed,
            "benchmark": job.benchmark.name,
            "steps": len(RunFolder(job.folder).rows("steps.csv")),
            "seconds": round(seconds, 1),  # of the process that finished it
            "resumed": resumed,
        },
    )
    _log.info("%s: done in %.0f s", job.told, seconds)
    return job.folder


def _train(job: EncoderJob, resume: bool, machine: Machine | None, download: bool, stage: Stage) -> None:
    training: Progress | None = None
    with ExitStack() as bars:
        cutting = bars.enter_context(stage(f"{job.told}: crops"))

        def watch(moment: Moment) -> None:
            nonlocal training
            if training is None:
                bars.close()  # a terminal shows one bar at a time
                training = bars.enter_context(stage(f"{job.told}: steps"))
            training(moment.epoch * moment.steps + moment.step, moment.epochs * moment.steps)

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
