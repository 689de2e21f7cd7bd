"""The training loop: steps, epochs, validation, checkpoints, and continuing after a stop.

What is learnt is a `Lesson`: that of an encoder, or that of a detector.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from polypcount.errors import FileError, PolypcountError
from polypcount.training.checkpoint import load_state, pack, save_state, unpack
from polypcount.training.loggers import Loggers
from polypcount.training.processes import Stop, is_first, stop_on_signals
from polypcount.training.run_folder import STEP_COLUMNS, RunFolder

ValidationScores = dict[str, float | None]

_log = logging.getLogger(__name__)
_SECONDS_BETWEEN_CHECKPOINTS = 600.0
_STEPS_OF_SPEED = 20


class Stopped(PolypcountError):
    """Training was asked to stop, and can be resumed.

    Attributes:
        signal: Number of the signal.
    """

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message, mend="resume")
        self.signal = signal


@dataclass(frozen=True)
class Moment:
    """How far a training is: epochs done, steps done in the current epoch, loss and speed.

    Attributes:
        epoch: Epochs that are done.
        step: Steps of the current epoch that are done.
        done: Steps of the whole training that are done.
        total: Steps of the whole training, if all epochs are as long as this one.
        validation: Validation results of an epoch, only in the report after its last step; otherwise empty.
    """

    epoch: int
    step: int
    done: int
    total: int
    loss: float
    crops_per_second: float
    validation: ValidationScores = field(default_factory=dict)


Watch = Callable[[Moment], None]


class Lesson(Protocol):
    """What the loop asks of something that learns, in one process.

    Attributes:
        recipe: What to learn, and how: its `epochs`, `steps` and `validation`.
        fabric: Lightning Fabric, already launched.
        model: The network, whose whole state is kept in checkpoints.
        optimizer: What changes its weights.
        validates: Whether there are videos to validate on.
    """

    @property
    def recipe(self) -> Any: ...  # noqa: D102 - described above, with the four below
    @property
    def fabric(self) -> Any: ...  # noqa: D102
    @property
    def model(self) -> nn.Module: ...  # noqa: D102
    @property
    def optimizer(self) -> Any: ...  # noqa: D102
    @property
    def validates(self) -> bool: ...  # noqa: D102

    def batches(self, epoch: int) -> list[Any]:
        """The batches of an epoch, the same in every process and after every restart."""

    def reading(self, batches: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Each batch with the pixels of this process's share of it. Threads read the next ones meanwhile."""

    def step(self, batch: Any, pixels: Any, epoch: int, step: int, progress: float) -> tuple[float, float]:
        """Learn from one batch; returns the loss and the learning rate.

        All random numbers depend only on the recipe's seed, the epoch, the step and the process. So a checkpoint needs
        no random state.
        """

    def images_of(self, batch: Any) -> int:
        """How many images a batch has."""

    def validate(self, between: Callable[[], object]) -> ValidationScores:
        """Scores on videos that are not learnt from. `between` may raise to end it."""

    def better(self, scores: ValidationScores, best: float | None) -> bool:
        """Whether these scores are better than the best value so far of the recipe's `validation.monitor`."""

    def keep(self, folder: Path, data_hash: str, metrics: dict[str, Any]) -> None:
        """Write what has been learnt into the run folder."""


@dataclass
class Course:
    """Where a training is: the next epoch and step, the losses of the epoch, the best epoch so far."""

    epoch: int = 0
    step: int = 0
    steps_done: int = 0
    losses: list[float] = field(default_factory=list)
    best: float | None = None
    best_epoch: int | None = None
    best_metrics: ValidationScores = field(default_factory=dict)


@dataclass
class Loop:
    """One process's part in a training.

    Attributes:
        lesson: What is learnt.
        run_folder: Where everything is written.
        watch: Called after each step and each epoch.
        loggers: Loggers of the first process.
    """

    lesson: Lesson
    run_folder: RunFolder
    watch: Watch
    loggers: Loggers | None = None
    course: Course = field(default_factory=Course)

    def __post_init__(self) -> None:
        self.recipe, self.fabric = self.lesson.recipe, self.lesson.fabric
        self.first = is_first()
        self._saved_at = self._step_began = time.monotonic()
        self._speeds: deque[tuple[int, float]] = deque(maxlen=_STEPS_OF_SPEED)

    def run(self) -> None:
        """Run the epochs that are left.

        Raises:
            Stopped: A signal asked training to stop.
        """
        with stop_on_signals() as stop:
            while not self._finished() and not self._patience_is_over():
                self._run_epoch(stop)

    def finish(self, data_hash: str) -> None:
        """Save what the best epoch has learnt into the run folder."""
        course = self.course
        if course.best_epoch is not None:
            weights, _ = load_state(self.run_folder.best)
            self.lesson.model.load_state_dict({name.removeprefix("model."): value for name, value in weights.items()})
        metrics: dict[str, Any] = {"epoch": course.best_epoch or course.epoch, "validation": course.best_metrics}
        self.lesson.keep(self.run_folder.folder, data_hash, metrics)
        self.run_folder.draw()
        self.run_folder.add(finished=datetime.now(UTC).isoformat(timespec="seconds"), best=metrics)

    def restore(self) -> None:
        """Continue from the last checkpoint; a run without one begins again."""
        file, folder = self.run_folder.last, self.run_folder.folder
        if file.exists():
            tensors, values = load_state(file)
            try:
                self.course = Course(**values["course"])
                unpack(file, self.lesson.model, self.lesson.optimizer, tensors, values["optimizer"])
                if values["precision"]:  # empty if the run had 32 bits before
                    self.fabric.strategy.precision.load_state_dict(values["precision"])
            except (KeyError, TypeError, ValueError) as problem:
                raise FileError(f"{file} is damaged ({problem}); start the run again") from None
        done = float(self.course.steps_done)
        if self._largest(done) != -self._largest(-done):
            raise FileError(f"{folder}: every node must see the same folder; put it on a shared disk")
        course, recipe = self.course, self.recipe
        if recipe.steps is None and course.epoch > recipe.epochs:
            raise FileError(
                f"{folder}: the run has done {course.epoch} epochs already, more than epochs={recipe.epochs}"
            )
        if recipe.steps is not None and course.steps_done > recipe.steps:
            raise FileError(
                f"{folder}: the run has done {course.steps_done} steps already, more than steps={recipe.steps}"
            )
        if self.first:
            self.run_folder.forget_after(self.course.epoch, self.course.step)

    def _run_epoch(self, stop: Stop) -> None:
        course, recipe = self.course, self.recipe
        batches = self.lesson.batches(course.epoch)
        total, before = recipe.total_steps(len(batches)), course.steps_done - course.step
        if recipe.steps is not None:
            batches = batches[: recipe.steps - before]
        self._step_began = time.monotonic()
        for batch, pixels in self.lesson.reading(batches[course.step :]):
            if recipe.steps is not None:
                progress = (course.steps_done + 0.5) / recipe.steps
            else:  # epochs may differ in length
                progress = (course.epoch + (course.step + 0.5) / len(batches)) / recipe.epochs
            loss, rate = self.lesson.step(batch, pixels, course.epoch, course.step, progress)
            course.step += 1
            course.steps_done += 1
            course.losses.append(loss)
            if self.first:
                self._report_step(batch, total, loss, rate)
            self._stop_if_asked(stop)
            if self.first and time.monotonic() - self._saved_at > _SECONDS_BETWEEN_CHECKPOINTS:
                self._save()
        self._end_epoch(len(batches), total, stop)
        self._stop_if_asked(stop)

    def _end_epoch(self, steps: int, total: int, stop: Stop) -> None:
        course, loss = self.course, float(np.mean(self.course.losses))
        scores = self._validate(stop) if self.first else {}
        course.epoch, course.step, course.losses = course.epoch + 1, 0, []
        if not self.first:
            return
        monitor = self.recipe.validation.monitor
        if scores and self.lesson.better(scores, course.best):
            course.best, course.best_epoch, course.best_metrics = scores.get(monitor), course.epoch, scores
            weights = {f"model.{name}": tensor for name, tensor in self.lesson.model.state_dict().items()}
            save_state(self.run_folder.best, weights, {"epoch": course.epoch, "validation": scores})
        elif scores and course.best_epoch is None:
            course.best_metrics = scores
            _log.warning("validation: %s is undefined on these videos; the last epoch will count", monitor)
        row = {**scores, "epoch": course.epoch, "steps": steps, "loss": loss, "validation_loss": scores.get("loss")}
        self.run_folder.log("epochs.csv", self.run_folder.epoch_columns, row)
        if self.loggers is not None:
            named = {f"validation/{name}": value for name, value in scores.items()}
            self.loggers.log({"train/epoch_loss": loss, **named}, course.steps_done)
        self._save()
        shown = [f"{name.replace('_', ' ')} {value:.3f}" for name, value in scores.items() if value is not None]
        validation = f"; validation: {', '.join(shown)}" if shown else ""
        _log.info("epoch %d: loss %.3f%s", course.epoch, loss, validation)
        self.watch(Moment(course.epoch, 0, course.steps_done, total, loss, self._speed(), scores))

    def _validate(self, stop: Stop) -> ValidationScores:
        if not self.lesson.validates:
            return {}
        self._save()  # validation may take long
        # Other processes wait for the end of validation, so it can only be stopped early if there is one process.
        between = (lambda: self._stop_if_asked(stop)) if self.fabric.world_size == 1 else (lambda: None)
        return self.lesson.validate(between)

    def _report_step(self, batch: Any, total: int, loss: float, rate: float) -> None:
        now = time.monotonic()
        self._speeds.append((self.lesson.images_of(batch), now - self._step_began))
        self._step_began = now
        course, speed = self.course, self._speed()
        row = {"epoch": course.epoch + 1, "step": course.step, "loss": loss, "learning_rate": rate}
        self.run_folder.log("steps.csv", STEP_COLUMNS, {**row, "crops_per_second": speed})
        if self.loggers is not None:
            self.loggers.log({"train/loss": loss, "train/learning_rate": rate}, course.steps_done)
        self.watch(Moment(course.epoch, course.step, course.steps_done, total, loss, speed))

    def _speed(self) -> float:
        return sum(crops for crops, _ in self._speeds) / max(sum(seconds for _, seconds in self._speeds), 1e-9)

    def _finished(self) -> bool:
        course, recipe = self.course, self.recipe
        return bool(course.epoch >= recipe.epochs if recipe.steps is None else course.steps_done >= recipe.steps)

    def _patience_is_over(self) -> bool:
        course, patience = self.course, self.recipe.validation.patience
        over = patience is not None and course.best_epoch is not None and course.epoch - course.best_epoch >= patience
        return self._largest(float(self.first and over)) > 0  # only the first process has validated

    def _largest(self, value: float) -> float:
        """The largest of the values of all processes."""
        if self.fabric.world_size == 1:
            return value
        return float(self.fabric.all_reduce(torch.tensor(value, device=self.fabric.device), reduce_op="max"))

    def _save(self) -> None:
        tensors, optimizer = pack(self.lesson.model, self.lesson.optimizer)
        precision = self.fabric.strategy.precision.state_dict()
        values = {"course": asdict(self.course), "optimizer": optimizer, "precision": precision}
        save_state(self.run_folder.last, tensors, values)
        self._saved_at = time.monotonic()

    def _stop_if_asked(self, stop: Stop) -> None:
        if not stop.agreed(self.fabric):
            return
        if self.first:
            self._save()
            self.run_folder.draw()
        self.fabric.barrier()  # if another process ended before the first has written, Lightning would kill the first
        course, folder = self.course, self.run_folder.folder
        steps = f"after {course.step} of its steps"
        raise Stopped(f"{folder}: stopped in epoch {course.epoch + 1} {steps}; it can be resumed", stop.signal or 0)
