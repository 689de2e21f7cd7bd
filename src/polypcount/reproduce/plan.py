"""How long each encoder is trained: an equal share of the time, an equal number of steps, or as its recipe says.

The plan is saved in a file. So a reproduction that is resumed, or gets more rows, seeds and renders, trains all alike.
"""

import fcntl
import logging
import math
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from polypcount.corpus import Corpus
from polypcount.errors import DataError
from polypcount.progress import Progress
from polypcount.reproduce.data import Benchmark, Stage, silent
from polypcount.storage import content_key, read_json, write_json
from polypcount.training import Machine, Moment, Recipe, load_recipe, recipe_text, train
from polypcount.training.data import training_data
from polypcount.training.recipe import PolypViewSettings, SegmentSettings

_log = logging.getLogger(__name__)
_EPOCHS = 10  # TPC's curriculum takes five
_TRIAL_STEPS, _FIRST_STEPS = 10, 4  # the first steps wait for crops; for later steps they are read ahead


@dataclass(frozen=True)
class TrainingLength:
    """How long to train: minutes for all trainings together, steps of each, or neither, to follow the recipes."""

    budget_minutes: float | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        if self.budget_minutes is not None and self.steps is not None:
            raise DataError("a budget and a number of steps both say how long to train; give one of them")
        if self.budget_minutes is not None and not 0 < self.budget_minutes < math.inf:
            raise DataError(f"the budget must be minutes above 0, found {self.budget_minutes}", mend="budget_minutes")
        if self.steps is not None and self.steps < 1:
            raise DataError(f"the number of steps must be at least 1, found {self.steps}", mend="steps")

    @property
    def name(self) -> str | None:
        """The key of its plan in the file; None if recipes stay as they are."""
        if self.steps is not None:
            return f"{self.steps} steps"
        return None if self.budget_minutes is None else f"{self.budget_minutes:g} minutes"


class Plan:
    """The lengths of trainings.

    Args:
        file: Where the plan is saved.
        length: What the user asked for.
        encoders: Number of encoders that share a new budget. The share of a saved plan does not change, so
            encoders that are added later get the same.
    """

    def __init__(self, file: Path, length: TrainingLength, encoders: int) -> None:
        self.file, self.length = file, length
        self._new: dict[str, Any] = {"encoders": {}}
        if length.budget_minutes is not None:
            self._new["share_seconds"] = length.budget_minutes * 60 / max(encoders, 1)

    def planned(self, recipe: Recipe) -> list[str] | None:
        """Changes to a recipe that give it its length; None if that is not in the plan yet."""
        if self.length.name is None:
            return []
        entry = self._read()[self.length.name]["encoders"].get(_key(recipe))
        return None if entry is None else list(entry["changes"])

    def work_out(
        self,
        name: str,
        recipe: Recipe,
        benchmark: Benchmark,
        *,
        machine: Machine | None = None,
        download: bool = False,
        stage: Stage = silent,
    ) -> list[str]:
        """Like `planned`, but added to the plan if it is not there; for a budget, by a short trial."""
        if (changes := self.planned(recipe)) is not None:
            return changes
        entry: dict[str, Any] = {"encoder": name}
        steps, learn = self.length.steps, benchmark.learn
        natural = batches_of(recipe, learn)
        if steps is None:
            with stage(f"{name}: trial") as progress:
                step, after_epoch = _trial(recipe, learn, machine, download, progress)
            entry |= {"seconds_of_step": step, "seconds_after_epoch": after_epoch}
            share = self._read()[self.length.name]["share_seconds"]
            most = natural if isinstance(recipe.sampler, PolypViewSettings) else None
            steps = max(1, min(affordable_steps(share, step, after_epoch, most), longest(recipe, learn, natural)))
            _log.info("%s: %.3f s a step, so %d steps", name, step, steps)
        entry["changes"] = length_changes(recipe, steps, natural)
        with self.file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            plans = self._read()  # another process may have added the same encoder
            entry = plans[self.length.name]["encoders"].setdefault(_key(recipe), entry)
            write_json(self.file, plans)
        return list(entry["changes"])

    def _read(self) -> dict[str | None, Any]:
        plans: dict[str | None, Any] = read_json(self.file) if self.file.exists() else {}
        plans.setdefault(self.length.name, self._new)
        return plans


def batches_of(recipe: Recipe, corpus: Corpus) -> int:
    """Batches that the sampler gives in its first epoch."""
    learning, _ = training_data(corpus, recipe)
    return sum(1 for _ in learning.sampler.batches(0))


def longest(recipe: Recipe, corpus: Corpus, natural: int) -> int:
    """Steps in as many epochs as the recipe has.

    An epoch of a pair sampler takes each polyp once, which is far fewer steps than other samplers have. So its epochs
    are counted as long as it takes to show as many frames as there are boxes.

    Args:
        recipe: The recipe.
        corpus: The corpus to learn from.
        natural: Batches of an epoch.
    """
    sampler = recipe.sampler
    if not isinstance(sampler, PolypViewSettings):
        frames = 2 * sampler.samples * (sampler.length if isinstance(sampler, SegmentSettings) else 1)
        natural = max(natural, math.ceil(len(corpus.boxes) / frames))
    return recipe.epochs * natural


def affordable_steps(seconds: float, step: float, after_epoch: float, most: int | None) -> int:
    """Steps that fit into a time, in ten epochs, or in more if an epoch would have more than `most` steps.

    Args:
        seconds: The time.
        step: Seconds of a step.
        after_epoch: Seconds of the validation and the checkpoint after an epoch.
        most: Most steps of an epoch; None for any number.
    """
    steps = (seconds - _EPOCHS * after_epoch) / step
    if most is not None and steps > _EPOCHS * most:
        steps = seconds / (step + after_epoch / most)
    return max(int(steps), 0)


def length_changes(recipe: Recipe, steps: int, natural: int) -> list[str]:
    """Changes that make a training about `steps` steps long: ten epochs, rounded up to whole ones.

    Args:
        recipe: The recipe.
        steps: Number of steps.
        natural: Batches of an epoch. Samplers of pairs repeat polyps to fill a longer epoch. A `polyp-views` sampler
            has no more batches than its fragments fill, so it gets more epochs.
    """
    epochs = min(_EPOCHS, steps)
    each = math.ceil(steps / epochs)
    if isinstance(recipe.sampler, PolypViewSettings) and natural < each:
        total = epochs * each
        epochs = math.ceil(total / max(natural, 1))
        each = math.ceil(total / epochs)
    return _changes(recipe, epochs, each)


def _changes(recipe: Recipe, epochs: int, each: int) -> list[str]:
    changes = [f"epochs={epochs}", f"batches_per_epoch={each}"]
    if not isinstance(recipe.sampler, PolypViewSettings):
        changes.append(f"sampler.samples_per_epoch={recipe.sampler.samples * each}")
    return changes


def _key(recipe: Recipe) -> str:
    """Key of a recipe, whatever its seed."""
    return content_key("plan 2", recipe_text(recipe.model_copy(update={"seed": 0})))


def _trial(
    recipe: Recipe, corpus: Corpus, machine: Machine | None, download: bool, progress: Progress
) -> tuple[float, float]:
    """Seconds of a step, and of the work after an epoch."""
    times = [time.monotonic()]

    def watch(moment: Moment) -> None:  # noqa: ARG001
        times.append(time.monotonic())

    trial = load_recipe(recipe, _changes(recipe, 1, _TRIAL_STEPS))
    with tempfile.TemporaryDirectory(prefix="polypcount-") as scratch:
        train(corpus, trial, scratch, machine=machine, log_to=(), download=download, progress=progress, watch=watch)
    *done, end = times  # the beginning, each step, and the end of the epoch
    between = [later - sooner for sooner, later in pairwise(done)]
    steady = between[_FIRST_STEPS:] or between[-1:]
    return max(sum(steady) / len(steady), 1e-4), end - done[-1]
