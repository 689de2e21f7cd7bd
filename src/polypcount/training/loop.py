"""The loop: steps, epochs, validation, checkpoints, and where it goes on after a stop."""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import numpy as np
import torch

from polypcount.encoder import save_encoder
from polypcount.errors import FileError, PolypcountError
from polypcount.training.batches import Batch
from polypcount.training.checkpoint import load_state, pack, save_state, unpack
from polypcount.training.clips import Frames, batches_with_clips
from polypcount.training.data import TrainingData
from polypcount.training.learner import Learner
from polypcount.training.loggers import Loggers
from polypcount.training.processes import Stop, is_first, stop_on_signals
from polypcount.training.run_folder import EPOCH_COLUMNS, STEP_COLUMNS, RunFolder
from polypcount.training.validate import Interrupted, Metrics, better, validate

_log = logging.getLogger(__name__)
_SECONDS_BETWEEN_CHECKPOINTS = 600.0
_STEPS_OF_SPEED = 20


class Stopped(PolypcountError):
    """Training was asked to stop, and can be resumed. signal: number of the signal that asked."""

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message)
        self.signal = signal


@dataclass(frozen=True)
class Moment:
    """How far a training is: epochs done, steps done of the current one, and how it goes.

    validation: of the epoch just done, after its last step; otherwise empty.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    crops_per_second: float
    validation: Metrics = field(default_factory=dict)


Watch = Callable[[Moment], None]


@dataclass
class Course:
    """Where a training is: the next epoch and step, the losses of the epoch, the best epoch so far."""

    epoch: int = 0
    step: int = 0
    steps_done: int = 0
    losses: list[float] = field(default_factory=list)
    best: float | None = None
    best_epoch: int | None = None
    best_metrics: Metrics = field(default_factory=dict)


@dataclass
class Loop:
    """One process's part in a training.

    learning, crops: what is learnt from, its pixels or features. judging, judged_crops: what is validated on, or None.
    readers: threads that read crops. loggers: of the first process.
    """

    learner: Learner
    place: RunFolder
    learning: TrainingData
    crops: Frames
    judging: TrainingData | None
    judged_crops: Frames | None
    readers: int
    watch: Watch
    loggers: Loggers | None = None
    course: Course = field(default_factory=Course)

    def __post_init__(self) -> None:
        self.recipe, self.fabric = self.learner.recipe, self.learner.fabric
        self.first = is_first()
        self._saved_at = time.monotonic()
        self._speeds: deque[tuple[int, float]] = deque(maxlen=_STEPS_OF_SPEED)

    def run(self) -> None:
        """Go through the epochs that are left; raises `Stopped` where somebody asked for that."""
        with stop_on_signals() as stop:
            while self.course.epoch < self.recipe.epochs and not self._patience_is_over():
                self._one_epoch(stop)

    def finish(self, data_hash: str) -> None:
        """Save the best encoder of all epochs into the folder of the run."""
        encoder, course = self.learner.encoder, self.course
        if course.best_epoch is not None:
            weights, _ = load_state(self.place.best)
            encoder.load_state_dict({name.removeprefix("model."): tensor for name, tensor in weights.items()})
        metrics: dict[str, Any] = {"epoch": course.best_epoch or course.epoch, "validation": course.best_metrics}
        described = self.recipe.model_dump(mode="json")
        save_encoder(encoder.eval(), self.place.folder, recipe=described, data_hash=data_hash, metrics=metrics)
        self.place.draw()
        self.place.add(finished=datetime.now(UTC).isoformat(timespec="seconds"), best=metrics)

    def restore(self) -> None:
        """Take up the last checkpoint; a run that had none yet begins anew."""
        if self.place.last.exists():
            tensors, values = load_state(self.place.last)
            try:
                self.course = Course(**values["course"])
                unpack(self.place.last, self.learner.encoder, self.learner.optimizer, tensors, values["optimizer"])
                if values["precision"]:  # a run that goes on in 16 bits after 32 has none
                    self.fabric.strategy.precision.load_state_dict(values["precision"])
            except (KeyError, TypeError, ValueError) as problem:
                raise FileError(
                    f"{self.place.last} is not as it was written ({problem}); start the run again"
                ) from None
        self._refuse_another_place()
        if self.course.epoch > self.recipe.epochs:
            raise FileError(
                f"{self.place.folder}: the run has done {self.course.epoch} epochs already, "
                f"more than epochs={self.recipe.epochs}"
            )
        if self.first:
            self.place.forget_after(self.course.epoch, self.course.step)

    def _refuse_another_place(self) -> None:
        """Raise where processes have not read the same checkpoint."""
        if self.fabric.world_size == 1:
            return
        done = float(self.course.steps_done)
        ends = self.fabric.all_reduce(torch.tensor([done, -done], device=self.fabric.device), reduce_op="max")
        if float(ends[0]) != -float(ends[1]):
            raise FileError(f"{self.place.folder}: every node must see the same folder; put it on a shared disk")

    def _one_epoch(self, stop: Stop) -> None:
        course, recipe, size = self.course, self.recipe, self.recipe.crop.size
        batches = list(islice(self.learning.sampler.batches(course.epoch), recipe.batches_per_epoch))
        left = batches[course.step :]
        world, started = self.fabric.world_size, time.monotonic()
        for batch, clips in batches_with_clips(
            self.crops,
            left,
            None if not recipe.augmentation.off else size,
            self.fabric.global_rank,
            world,
            self.readers,
        ):
            share = (course.epoch + (course.step + 0.5) / len(batches)) / recipe.epochs
            loss, rate = self.learner.step(batch, clips, course.epoch, course.step, share)
            course.step += 1
            course.steps_done += 1
            course.losses.append(loss)
            now = time.monotonic()
            self._speeds.append((sum(map(len, batch.rows)), now - started))
            started = now
            self._tell_step(batches, loss, rate)
            if stop.agreed(self.fabric):
                self._stop(stop)
            if self.first and now - self._saved_at > _SECONDS_BETWEEN_CHECKPOINTS:
                self._save()
        self._end_epoch(len(batches), stop)
        if stop.agreed(self.fabric):
            self._stop(stop)

    def _end_epoch(self, steps: int, stop: Stop) -> None:
        course = self.course
        loss, metrics = float(np.mean(course.losses)), Metrics()
        if self.first and self.judging is not None and self.judged_crops is not None:
            self._save()  # validation may be long; other processes wait for it, a single one need not
            alone = self.fabric.world_size == 1
            try:
                metrics = validate(
                    self.learner, self.judging, self.judged_crops, lambda: alone and stop.signal is not None
                )
            except Interrupted:
                self._stop(stop)
        course.epoch, course.step, course.losses = course.epoch + 1, 0, []
        if not self.first:
            return
        monitor = self.recipe.validation.monitor
        if metrics and better(metrics, course.best, monitor):
            course.best, course.best_epoch, course.best_metrics = metrics.get(monitor), course.epoch, metrics
            tensors, _ = pack(self.learner.encoder, self.learner.optimizer)
            weights = {name: tensor for name, tensor in tensors.items() if name.startswith("model.")}
            save_state(self.place.best, weights, {"epoch": course.epoch, "validation": metrics})
        elif metrics and course.best_epoch is None:
            course.best_metrics = metrics
            _log.warning("validation: %s is not defined on these videos; the last epoch will count", monitor)
        values = {
            "epoch": course.epoch,
            "steps": steps,
            "loss": loss,
            **metrics,
            "validation_loss": metrics.get("loss"),
        }
        self.place.log("epochs.csv", EPOCH_COLUMNS, {**values, "loss": loss})
        if self.loggers is not None:
            named: Metrics = {f"validation/{name}": value for name, value in metrics.items()}
            self.loggers.log({"train/epoch_loss": loss, **named}, course.steps_done)
        self._save()
        said = "".join(f", {name} {value:.3f}" for name, value in metrics.items() if value is not None)
        _log.info(
            "epoch %d: loss %.3f%s", course.epoch, loss, said.replace(", ", "; validation: ", 1).replace("_", " ")
        )
        self.watch(Moment(course.epoch, self.recipe.epochs, 0, steps, loss, self._speed(), metrics))

    def _tell_step(self, batches: Sequence[Batch], loss: float, rate: float) -> None:
        if not self.first:
            return
        course, speed = self.course, self._speed()
        row = {"epoch": course.epoch + 1, "step": course.step, "loss": loss, "learning_rate": rate}
        self.place.log("steps.csv", STEP_COLUMNS, {**row, "crops_per_second": speed})
        if self.loggers is not None:
            self.loggers.log({"train/loss": loss, "train/learning_rate": rate}, course.steps_done)
        self.watch(Moment(course.epoch, self.recipe.epochs, course.step, len(batches), loss, speed))

    def _speed(self) -> float:
        return sum(crops for crops, _ in self._speeds) / max(sum(seconds for _, seconds in self._speeds), 1e-9)

    def _patience_is_over(self) -> bool:
        course, patience = self.course, self.recipe.validation.patience
        over = patience is not None and course.best_epoch is not None and course.epoch - course.best_epoch >= patience
        if self.fabric.world_size == 1:
            return over
        # Only the first process knows how validation went.
        flag = torch.tensor(float(self.first and over), device=self.fabric.device)
        return bool(self.fabric.all_reduce(flag, reduce_op="max"))

    def _save(self) -> None:
        tensors, optimizer = pack(self.learner.encoder, self.learner.optimizer)
        precision = self.fabric.strategy.precision.state_dict()
        values = {"course": asdict(self.course), "optimizer": optimizer, "precision": precision}
        save_state(self.place.last, tensors, values)
        self._saved_at = time.monotonic()

    def _stop(self, stop: Stop) -> None:
        if self.first:
            self._save()
            self.place.draw()
        self.fabric.barrier()  # a process that ends before the first has written takes it with it
        course = self.course
        raise Stopped(
            f"{self.place.folder}: stopped in epoch {course.epoch + 1} after {course.step} of its steps; "
            "--resume goes on from there",
            stop.signal or 0,
        )
