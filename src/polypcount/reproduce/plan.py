"""How long each encoder is trained: an equal share of the time, an equal number of steps, or as its recipe says.

A plan is kept in a file, so that a run that goes on, or adds rows, seeds and renders, trains them all alike.
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
from polypcount.reproduce.kept import key_of, read_json, write_json
from polypcount.training import Machine, Moment, Recipe, load_recipe, recipe_text, train
from polypcount.training.data import training_data
from polypcount.training.samplers import PolypViewSettings, SegmentSettings

_log = logging.getLogger(__name__)
_EPOCHS = 10  # TPC's curriculum goes over five
_TRIAL_STEPS, _FIRST_STEPS = 10, 4  # the first ones wait for what later ones find read ahead


@dataclass(frozen=True)
class Wish:
    """What the user asked for: minutes for all trainings together, steps of each, or neither."""

    budget_minutes: float | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        if self.budget_minutes is not None and self.steps is not None:
            raise DataError("--budget and --steps both say how long to train; give one of them")
        if self.budget_minutes is not None and not 0 < self.budget_minutes < math.inf:
            raise DataError(f"--budget must be minutes above 0, found {self.budget_minutes}")
        if self.steps is not None and self.steps < 1:
            raise DataError(f"--steps must be at least 1, found {self.steps}")

    @property
    def name(self) -> str | None:
        """What the plan is filed under; None where recipes stay as they are."""
        if self.steps is not None:
            return f"{self.steps} steps"
        return None if self.budget_minutes is None else f"{self.budget_minutes:g} minutes"


class Plan:
    """The lengths of trainings.

    file: where it is kept. encoders: how many are to be trained now, over which a new budget is shared out; the share
    of a plan that is there already stays as it is, so that encoders that come later have the same.
    """

    def __init__(self, file: Path, wish: Wish, encoders: int) -> None:
        self.file, self.wish = file, wish
        self._plans: dict[str, Any] = read_json(file) if file.exists() else {}
        new: dict[str, Any] = {"encoders": {}}
        if wish.budget_minutes is not None:
            new["share_seconds"] = wish.budget_minutes * 60 / max(encoders, 1)
        self._mine: dict[str, Any] = self._plans.setdefault(wish.name or "", new)

    def known(self, recipe: Recipe) -> list[str] | None:
        """Changes to a recipe that give it its length; None where that has not been worked out."""
        if self.wish.name is None:
            return []
        entry = self._mine["encoders"].get(_key(recipe))
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
        """As `known`, but worked out where it is not; with a budget, by a short trial."""
        if (there := self.known(recipe)) is not None:
            return there
        entry: dict[str, Any] = {"encoder": name}
        steps = self.wish.steps
        natural = batches_of(recipe, benchmark.learn)
        if steps is None:
            with stage(f"{name}: trial") as progress:
                step, after_epoch = _trial(recipe, benchmark.learn, machine, download, progress)
            entry |= {"seconds_of_step": step, "seconds_after_epoch": after_epoch}
            fixed = isinstance(recipe.sampler, PolypViewSettings)
            affordable = affordable_steps(self._mine["share_seconds"], step, after_epoch, natural if fixed else None)
            steps = max(1, min(affordable, longest(recipe, benchmark.learn, natural)))
            _log.info("%s: %.3f s a step, so %d steps", name, step, steps)
        entry["changes"] = length_changes(recipe, steps, natural)
        return list(self._agreed(_key(recipe), entry)["changes"])

    def _agreed(self, key: str, entry: dict[str, Any]) -> dict[str, Any]:
        """The entry as it is in the file: another call into the same folder may have been quicker."""
        name = self.wish.name or ""
        with self.file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._plans = {**self._plans, **(read_json(self.file) if self.file.exists() else {})}
            self._mine = self._plans.setdefault(name, self._mine)
            found: dict[str, Any] = self._mine["encoders"].setdefault(key, entry)
            write_json(self.file, self._plans)
        return found


def batches_of(recipe: Recipe, corpus: Corpus) -> int:
    """Batches that the sampler gives in its first epoch."""
    learning, _ = training_data(corpus, recipe)
    return sum(1 for _ in learning.sampler.batches(0))


def longest(recipe: Recipe, corpus: Corpus, natural: int) -> int:
    """Steps of as many epochs as the recipe has. natural: batches that an epoch has by itself.

    Epochs of pair samplers take each polyp once, far fewer steps than those of others; so theirs are counted as long as
    it takes to show as many frames as there are boxes.
    """
    sampler = recipe.sampler
    if not isinstance(sampler, PolypViewSettings):
        frames = 2 * sampler.samples * (sampler.length if isinstance(sampler, SegmentSettings) else 1)
        natural = max(natural, math.ceil(len(corpus.boxes) / frames))
    return recipe.epochs * natural


def affordable_steps(seconds: float, step: float, after_epoch: float, most: int | None) -> int:
    """Steps that fit into a time, in ten epochs or, where an epoch has `most` at most, in as many as it takes.

    step, after_epoch: seconds of each step, and of the validation and the checkpoint after each epoch.
    """
    steps = (seconds - _EPOCHS * after_epoch) / step
    if most is not None and steps > _EPOCHS * most:
        steps = seconds / (step + after_epoch / most)
    return max(int(steps), 0)


def length_changes(recipe: Recipe, steps: int, natural: int) -> list[str]:
    """Changes that make a training about so many steps long: ten epochs, rounded up to whole ones.

    natural: batches that an epoch has by itself. Samplers of pairs take polyps again to fill an epoch; a `polyp-views`
    sampler has no more than its fragments give, and makes up for it by more epochs.
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
    """Of a recipe, whatever its seed."""
    return key_of(recipe_text(recipe.model_copy(update={"seed": 0})))


def _trial(
    recipe: Recipe, corpus: Corpus, machine: Machine | None, download: bool, progress: Progress
) -> tuple[float, float]:
    """Seconds of a step, and of what comes after an epoch."""
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
