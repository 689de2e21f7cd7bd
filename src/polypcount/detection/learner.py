"""The detector while it learns: one step of the optimiser, averaged weights, validation, and what is kept."""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from polypcount.detection.changed_frames import FrameBatch, changed_frames
from polypcount.detection.frames import LearningPixels, Rows, batches_with_frames, frame_batches
from polypcount.detection.keep import keep_detector
from polypcount.detection.loss import loss_parts
from polypcount.detection.network import DetectorNetwork, points_of
from polypcount.detection.recipe import DetectorRecipe
from polypcount.detection.validate import average_precision
from polypcount.encoder.lite0 import MEAN, STD
from polypcount.errors import DataError
from polypcount.training.learner import DIVERGED, set_learning_rate
from polypcount.training.loop import ValidationScores


class Averaged(nn.Module):
    """A network and the average of its weights over the last steps, which detects better.

    Args:
        network: What learns. The average begins with its weights.
    """

    steps: Tensor

    def __init__(self, network: DetectorNetwork) -> None:
        super().__init__()
        self.network = network
        self.average = copy.deepcopy(network).requires_grad_(False)
        self.register_buffer("steps", torch.zeros(()))

    @torch.no_grad()
    def follow(self, most: float) -> None:
        """Move the average towards the weights; `most` of it stays, and less in the first steps."""
        self.steps += 1
        stays = min(most, float((1 + self.steps) / (10 + self.steps)))
        pairs = zip(self.average.parameters(), self.network.parameters(), strict=True)
        for mean, weight in pairs:
            mean.lerp_(weight, 1 - stays)


@dataclass
class DetectorLesson:
    """A detector with its data; see `Lesson`.

    Attributes:
        recipe: What to learn, and how.
        fabric: Lightning Fabric, already launched.
        model: The network and its average.
        learning: The frames to learn from.
        validation: The frames to validate on, or None.
        readers: Threads that read frames.
    """

    recipe: DetectorRecipe
    fabric: Any
    model: Averaged
    learning: LearningPixels
    validation: LearningPixels | None
    readers: int

    def __post_init__(self) -> None:
        self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.model.train()
        fix_blocks(self.model.network, self.recipe.model.fixed_blocks)
        self._module, self.optimizer = self.fabric.setup(self.model.network, _new_optimizer(self.model, self.recipe))
        self.model.to(self.fabric.device)
        settings = self.recipe.model
        self._points = points_of(settings.width, settings.height).to(self.fabric.device)

    @property
    def validates(self) -> bool:
        """Whether there are frames to validate on."""
        return self.validation is not None

    def batches(self, epoch: int) -> list[Rows]:
        """The frames of an epoch, in batches."""
        return frame_batches(len(self.learning.frames), self.recipe.batch, self.recipe.seed, epoch)

    def reading(self, batches: Sequence[Rows]) -> Iterator[tuple[Rows, FrameBatch]]:
        """Each batch with this process's share of its frames."""
        rank, world = self.fabric.global_rank, self.fabric.world_size
        return batches_with_frames(self.learning, batches, rank, world, self.readers)

    def images_of(self, batch: Rows) -> int:
        """How many frames a batch has."""
        return len(batch)

    def step(self, batch: Rows, pixels: FrameBatch, epoch: int, step: int, progress: float) -> tuple[float, float]:  # noqa: ARG002
        """Learn from one batch. The loss is that of the whole batch, however many processes share it."""
        recipe, settings = self.recipe, self.recipe.model
        seed = [recipe.seed, epoch, step, self.fabric.global_rank]
        rate = set_learning_rate(self.optimizer, recipe.optimizer, progress)
        on_device = pixels._replace(**{name: getattr(pixels, name).to(self.fabric.device) for name in _TENSORS})
        images, truth = changed_frames(on_device, recipe.changes, settings.width, settings.height, seed)
        found = self._module(normalised(images))
        parts = loss_parts(found, truth, self._points)
        # Averaging gradients over processes then gives the gradient of the whole batch.
        quality, masks = (self._of_all(total).clamp(min=1.0) for total in (parts.quality, parts.masks))
        weights = recipe.loss
        loss = (parts.score + weights.box * parts.box) / quality + weights.mask * parts.mask / masks
        self.optimizer.zero_grad()
        self.fabric.backward(loss)
        norm = self.fabric.clip_gradients(
            self._module, self.optimizer, max_norm=recipe.optimizer.clip or math.inf, error_if_nonfinite=False
        )
        whole = float(self._of_all(loss.detach()))
        scaled = bool(self.fabric.strategy.precision.state_dict())  # 16 bits: the scaler skips a step that overflows
        if not math.isfinite(whole) or not (scaled or bool(torch.isfinite(norm))):
            raise DataError(f"epoch {epoch + 1}, step {step + 1}: {DIVERGED}")
        self.optimizer.step()
        self.model.follow(recipe.average)
        return whole, rate

    def validate(self, between: Callable[[], object]) -> ValidationScores:
        """Average precision at an IoU of 0.5 of the averaged weights."""
        assert self.validation is not None
        return {"ap50": average_precision(self.model.average, self.validation, self.recipe, between)}

    def better(self, scores: ValidationScores, best: float | None) -> bool:
        """Whether the average precision is higher."""
        value = scores["ap50"]
        return self.recipe.validation.monitor == "last" or (value is not None and (best is None or value > best))

    def keep(self, folder: Path, data_hash: str, metrics: dict[str, Any]) -> None:
        """Write the detector with the averaged weights."""
        keep_detector(self.model.average, folder, self.recipe, data_hash=data_hash, metrics=metrics)

    def _of_all(self, value: Tensor) -> Tensor:
        """The mean over processes."""
        if self.fabric.world_size == 1:
            return value.detach()
        mean: Tensor = self.fabric.all_reduce(value.detach(), reduce_op="mean")
        return mean


_TENSORS = ("images", "masks", "has_mask")


def normalised(images: Tensor) -> Tensor:
    """Images float[n, 3, h, w] from 0 to 1 as the network takes them."""
    mean, std = (torch.tensor(values, device=images.device).view(3, 1, 1) for values in (MEAN, STD))
    return ((images - mean) / std).contiguous(memory_format=torch.channels_last)


def fix_blocks(network: DetectorNetwork, count: int) -> None:
    """Keep the first blocks of the backbone, and its stem, as they are; none for 0."""
    backbone = network.backbone
    if count:
        backbone.stem.requires_grad_(False)
        backbone.blocks[:count].requires_grad_(False)


def _new_optimizer(model: Averaged, recipe: DetectorRecipe) -> torch.optim.Optimizer:
    """The optimiser; those of the backbone have their own rate, and biases no decay."""
    settings, network = recipe.optimizer, model.network
    of_backbone = {id(parameter) for parameter in network.backbone.parameters()}
    groups = []
    for backbone in (False, True):
        for bias in (False, True):
            chosen = [
                parameter
                for parameter in network.parameters()
                if parameter.requires_grad
                and (id(parameter) in of_backbone) == backbone
                and (parameter.ndim == 1) == bias
            ]
            decay = {"weight_decay": 0.0} if bias else {}
            groups.append({"params": chosen, "factor": settings.backbone_factor if backbone else 1.0, **decay})
    kind = torch.optim.AdamW if settings.name == "adamw" else torch.optim.Adam
    return kind(groups, lr=settings.lr, weight_decay=settings.weight_decay)
