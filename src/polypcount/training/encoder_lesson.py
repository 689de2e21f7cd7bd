"""What the training loop asks of an encoder: its batches, a step, validation, and what is kept at the end."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from polypcount.encoder import save_encoder
from polypcount.training.batches import Batch, Clips, ClipSource, batches_with_clips
from polypcount.training.data import TrainingData
from polypcount.training.learner import Learner
from polypcount.training.loop import ValidationScores
from polypcount.training.recipe import Recipe
from polypcount.training.validate import better, validate


@dataclass
class EncoderLesson:
    """An encoder with its data; see `Lesson`.

    Attributes:
        learner: The network while it learns.
        learning: The data for training.
        crops: Pixels or features of the data for training.
        validation: The data for validation, or None.
        validation_crops: Pixels or features of the data for validation.
        readers: Threads that read crops.
    """

    learner: Learner
    learning: TrainingData
    crops: ClipSource
    validation: TrainingData | None
    validation_crops: ClipSource | None
    readers: int

    @property
    def recipe(self) -> Recipe:
        """What to learn, and how."""
        return self.learner.recipe

    @property
    def fabric(self) -> Any:
        """Lightning Fabric."""
        return self.learner.fabric

    @property
    def model(self) -> nn.Module:
        """The encoder."""
        return self.learner.encoder

    @property
    def optimizer(self) -> Any:
        """What changes its weights."""
        return self.learner.optimizer

    @property
    def validates(self) -> bool:
        """Whether there are data for validation."""
        return self.validation is not None

    def batches(self, epoch: int) -> list[Batch]:
        """The batches of an epoch."""
        return list(self.learning.sampler.batches(epoch))

    def reading(self, batches: Sequence[Batch]) -> Iterator[tuple[Batch, Clips]]:
        """Each batch with the clips of this process's share of it."""
        size = self.recipe.crop.size if self.recipe.augmentation.off else None
        rank, world = self.fabric.global_rank, self.fabric.world_size
        return batches_with_clips(self.crops, batches, size, rank, world, self.readers)

    def step(self, batch: Batch, pixels: Clips, epoch: int, step: int, progress: float) -> tuple[float, float]:
        """Learn from one batch."""
        return self.learner.step(batch, pixels, epoch, step, progress)

    def images_of(self, batch: Batch) -> int:
        """How many crops a batch has."""
        return sum(map(len, batch.rows))

    def validate(self, between: Callable[[], object]) -> ValidationScores:
        """The loss and retrieval on the data for validation."""
        assert self.validation is not None
        assert self.validation_crops is not None
        return validate(self.learner, self.validation, self.validation_crops, between)

    def better(self, scores: ValidationScores, best: float | None) -> bool:
        """Whether the monitored value is better."""
        return better(scores, best, self.recipe.validation.monitor)

    def keep(self, folder: Path, data_hash: str, metrics: dict[str, Any]) -> None:
        """Save the encoder."""
        values = self.recipe.model_dump(mode="json")
        save_encoder(self.learner.encoder.eval(), folder, recipe=values, data_hash=data_hash, metrics=metrics)
