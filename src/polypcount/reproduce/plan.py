"""How long each encoder is trained: as many steps, or as many images, as every other, or an equal share of the time.

A plan by time is saved in a file. So a reproduction that is resumed, or gets more rows, seeds and renders, trains all
alike. Steps and images follow from the data and the recipes, so they need no file.
"""

import fcntl
import logging
import math
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from polypcount.corpus import Corpus
from polypcount.errors import DataError
from polypcount.progress import Progress, no_progress
from polypcount.reproduce.data import Benchmark, Stage, silent
from polypcount.storage import content_key, read_json, write_json
from polypcount.training import Machine, Moment, Recipe, load_recipe, recipe_text, train
from polypcount.training.data import epoch_batches

_log = logging.getLogger(__name__)
_TRIAL_STEPS, _FIRST_STEPS = 10, 4  # the first steps wait for crops; for later steps they are read ahead
Equal = Literal["steps", "images"]


@dataclass(frozen=True)
class TrainingLength:
    """How long to train.

    Attributes:
        budget_minutes: Minutes for all trainings together, in equal shares.
        steps: Steps of the temporally-aware encoder; None for those of its recipe's epochs on the given data.
        equal: What all other encoders have as many of as this one: `steps` of the optimiser, or `images` seen.
    """

    budget_minutes: float | None = None
    steps: int | None = None
    equal: Equal = "steps"

    def __post_init__(self) -> None:
        if self.budget_minutes is not None and self.steps is not None:
            raise DataError("a budget and a number of steps both say how long to train; give one of them")
        if self.budget_minutes is not None and not 0 < self.budget_minutes < math.inf:
            raise DataError(f"the budget must be minutes above 0, found {self.budget_minutes}", mend="budget_minutes")
        if self.steps is not None and self.steps < 1:
            raise DataError(f"the number of steps must be at least 1, found {self.steps}", mend="steps")

    @property
    def name(self) -> str:
        """What it is in words; also the key of a budget in the file."""
        if self.budget_minutes is not None:
            return f"{self.budget_minutes:g} minutes"
        amount = "as many epochs as the recipe has" if self.steps is None else f"{self.steps} steps"
        return f"{amount} of the temporally-aware encoder, equal {self.equal} for all"


class Plan:
    """The lengths of trainings.

    Args:
        file: Where a plan by time is saved.
        length: What the user asked for.
        reference: Recipe of the temporally-aware encoder, which the others are measured by.
        encoders: Number of encoders that share a new budget. The share of a saved plan does not change, so
            encoders that are added later get the same.
    """

    def __init__(self, file: Path, length: TrainingLength, reference: Recipe, encoders: int = 1) -> None:
        self.file, self.length, self.reference = file, length, reference
        self._new: dict[str, Any] = {"encoders": {}}
        if length.budget_minutes is not None:
            self._new["share_seconds"] = length.budget_minutes * 60 / max(encoders, 1)

    def steps(self, recipe: Recipe, benchmark: Benchmark) -> int | None:
        """Steps of a recipe; None if a budget has to be measured first."""
        if self.length.budget_minutes is not None:
            entry = self._read()[self.length.name]["encoders"].get(_key(recipe))
            return None if entry is None else int(entry["steps"])
        steps = self.length.steps or _whole(self.reference, benchmark)
        if self.length.equal == "images":
            steps = max(1, round(steps * self.reference.images / recipe.images))
        return steps

    def measured_steps(
        self,
        name: str,
        recipe: Recipe,
        benchmark: Benchmark,
        *,
        machine: Machine | None = None,
        download: bool = False,
        stage: Stage = silent,
    ) -> int:
        """Like `steps`, but if a budget has to be measured, a short trial does it, and its result is saved."""
        if (steps := self.steps(recipe, benchmark)) is not None:
            return steps
        with stage(f"{name}: trial") as progress, tempfile.TemporaryDirectory(prefix="polypcount-") as out:
            measured = trial(recipe, benchmark.learn, Path(out), machine=machine, download=download, progress=progress)
        steps = self.affordable(measured, recipe, epoch_batches(benchmark.learn, recipe))
        _log.info("%s: %.3f s a step, so %d steps", name, measured.step, steps)
        entry = {
            "encoder": name,
            "steps": steps,
            "seconds_of_step": measured.step,
            "seconds_after_epoch": measured.after_epoch,
        }
        with self.file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            plans = self._read()  # another process may have added the same encoder
            entry = plans[self.length.name]["encoders"].setdefault(_key(recipe), entry)
            write_json(self.file, plans)
        return int(entry["steps"])

    def affordable(self, measured: "Trial", recipe: Recipe, batches_per_epoch: int) -> int:
        """Steps for an encoder's share of the budget, by a trial; no more than its recipe has."""
        share = self._read()[self.length.name]["share_seconds"]
        return max(1, min(int(share / measured.seconds(1, batches_per_epoch)), recipe.total_steps(batches_per_epoch)))

    def _read(self) -> dict[str, Any]:
        plans: dict[str, Any] = read_json(self.file) if self.file.exists() else {}
        plans.setdefault(self.length.name, self._new)
        return plans


@dataclass(frozen=True)
class Trial:
    """What a short training has measured: seconds of a step, and of the work after an epoch."""

    step: float
    after_epoch: float

    def seconds(self, steps: int, batches_per_epoch: int) -> float:
        """Seconds of a whole training."""
        return steps * (self.step + self.after_epoch / batches_per_epoch)


def trial(
    recipe: Recipe,
    corpus: Corpus,
    out: Path,
    *,
    machine: Machine | None = None,
    download: bool = False,
    cache: Path | None = None,
    steps: int = _TRIAL_STEPS,
    progress: Progress = no_progress,
) -> Trial:
    """Train for a few steps, in the folder `out`, and measure the last of them; the first ones wait for crops."""
    last = time.monotonic()
    seconds: list[float] = []
    ends: list[float] = []

    def watch(moment: Moment) -> None:
        nonlocal last
        now = time.monotonic()
        (seconds if moment.step else ends).append(now - last)
        last = now

    short = load_recipe(recipe, [f"steps={steps}", f"batches_per_epoch={steps}"])
    train(
        corpus,
        short,
        out,
        machine=machine,
        log_to=(),
        cache=cache,
        download=download,
        progress=progress,
        watch=watch,
    )
    steady = seconds[min(_FIRST_STEPS, len(seconds) // 2) :]
    return Trial(max(sum(steady) / len(steady), 1e-4), ends[-1])


@cache
def _whole(recipe: Recipe, benchmark: Benchmark) -> int:
    return recipe.total_steps(epoch_batches(benchmark.learn, recipe))


def _key(recipe: Recipe) -> str:
    """Key of a recipe, whatever its seed."""
    return content_key("plan 3", recipe_text(recipe.model_copy(update={"seed": 0})))
