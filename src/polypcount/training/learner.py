"""The network while it learns: pixels to vectors, vectors to a loss, and one step of the optimiser."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from polypcount.encoder import TrackletEncoder
from polypcount.errors import DataError
from polypcount.training.augment import augment
from polypcount.training.batches import Batch, Clips
from polypcount.training.large_batches import backward_in_pieces, gather_rows
from polypcount.training.loss import soft_contrastive_loss
from polypcount.training.recipe import LossSettings, OptimizerSettings, Recipe
from polypcount.training.targets import identity_targets, instance_targets, temporal_targets

DIVERGED = (
    "the training has diverged, its numbers are not finite; start a new run with a lower optimizer.lr, with "
    "optimizer.clip=1, or with full precision"
)
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class ViewEncoder(nn.Module):
    """The encoder and its head in one module, for DDP: frames and mask to what the loss compares, float[n, d]."""

    def __init__(self, encoder: TrackletEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, frames: Tensor, mask: Tensor) -> Tensor:
        """Like `encode_clips`, but after the head."""
        vectors: Tensor = self.encoder.head(encode_clips(self.encoder, frames, mask))
        return vectors


def encode_clips(encoder: TrackletEncoder, frames: Tensor, mask: Tensor) -> Tensor:
    """Vectors float[n, d] of normalised images float[n, t, 3, h, w] or features float[n, t, f]; mask bool[n, t]."""
    if frames.ndim == 3:
        return encoder.encode_sequences(frames, mask)
    vectors: Tensor = encoder(frames, mask)
    return vectors


class Learner:
    """One process's part in learning.

    Args:
        fabric: Lightning Fabric, already launched.
        encoder: The network, which is changed.
        recipe: What to learn, and how.
        views_at_once: How many views are encoded at a time; None for all.
    """

    def __init__(self, fabric: Any, encoder: TrackletEncoder, recipe: Recipe, views_at_once: int | None) -> None:
        self.fabric, self.recipe, self.views_at_once = fabric, recipe, views_at_once
        self.encoder = encoder
        # Convolutions take half the time in this memory format, on processors and on GPUs with half precision.
        encoder.backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.set_training()
        self.module, self.optimizer = fabric.setup(ViewEncoder(encoder), new_optimizer(encoder, recipe.optimizer))

    def set_training(self) -> None:
        """Set training mode, except for modules that stay fixed."""
        set_training(self.encoder, self.recipe)

    def step(self, batch: Batch, clips: Clips, epoch: int, step: int, progress: float) -> tuple[float, float]:
        """Learn from one batch, of which this process has some clips.

        All random numbers depend only on the recipe's seed, the epoch, the step and the process. So a checkpoint needs
        no random state.

        Args:
            batch: The whole batch.
            clips: This process's share of it.
            epoch: From 0.
            step: From 0, in the epoch.
            progress: Share of the training that is done.

        Returns:
            The loss and the learning rate.
        """
        seed = [self.recipe.seed, epoch, step, self.fabric.global_rank]
        state = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> np.uint64(1))
        torch.manual_seed(state)
        rate = set_learning_rate(self.optimizer, self.recipe.optimizer, progress)
        frames = self.images(clips, torch.Generator().manual_seed(state))
        mask = clips.mask.to(self.fabric.device)
        targets = batch_targets(batch, self.recipe.loss).to(self.fabric.device)

        def loss_of(vectors: Tensor) -> Tensor:
            return soft_contrastive_loss(gather_rows(vectors), targets, self.recipe.loss.temperature)

        self.optimizer.zero_grad()
        loss = self._backward(frames, mask, loss_of)
        largest = self.recipe.optimizer.clip or math.inf
        norm = self.fabric.clip_gradients(self.module, self.optimizer, max_norm=largest, error_if_nonfinite=False)
        scaled = bool(self.fabric.strategy.precision.state_dict())  # 16 bits: the scaler skips a step that overflows
        if not math.isfinite(loss) or not (scaled or bool(torch.isfinite(norm))):
            raise DataError(f"epoch {epoch + 1}, step {step + 1}: {DIVERGED}")
        self.optimizer.step()
        return loss, rate

    def images(self, clips: Clips, generator: torch.Generator | None) -> Tensor:
        """Normalised images float[n, t, 3, size, size] on the device, augmented if there is a generator.

        Features float32[n, t, f] are returned as they are.
        """
        on_device = clips.images.to(self.fabric.device, non_blocking=True)
        if clips.are_features:
            return on_device
        rule = self.encoder.spec.preprocessing
        if generator is not None and not self.recipe.augmentation.off:
            images = augment(on_device, self.recipe.augmentation, rule.crop.size, generator)
        else:
            images = on_device.permute(0, 1, 4, 2, 3).float().div_(255)
        mean, std = (torch.tensor(values, device=images.device).view(3, 1, 1) for values in (rule.mean, rule.std))
        return images.sub_(mean).div_(std)

    def _backward(self, frames: Tensor, mask: Tensor, loss_of: Any) -> float:
        if self.views_at_once is None or self.views_at_once >= len(mask):
            loss = loss_of(self.module(frames, mask))
            self.fabric.backward(loss)
            return float(loss.detach())
        loss = backward_in_pieces(
            lambda piece: self.module(*piece),
            list(zip(*(torch.split(whole, self.views_at_once) for whole in (frames, mask)), strict=True)),
            loss_of,
            backward=self.fabric.backward,
            quietly=lambda: self.fabric.no_backward_sync(self.module),
        )
        return float(loss)


def set_training(encoder: TrackletEncoder, recipe: Recipe) -> None:
    """Set training mode, except for modules that stay fixed by the recipe."""
    encoder.train()
    if recipe.optimizer.backbone_factor == 0:
        encoder.backbone.eval().requires_grad_(False)
    if recipe.model.batch_norm == "fixed":
        for module in encoder.modules():
            if isinstance(module, _BATCH_NORMS):
                module.eval()


def batch_targets(batch: Batch, settings: LossSettings) -> Tensor:
    """Pair targets of a whole batch, float[n, n]."""
    if settings.targets == "instance":
        return instance_targets(torch.from_numpy(batch.sample))
    polyp = torch.from_numpy(batch.polyp)
    if settings.targets == "identity":
        return identity_targets(polyp)
    return temporal_targets(polyp, torch.from_numpy(batch.position), settings.decay)


def new_optimizer(encoder: TrackletEncoder, settings: OptimizerSettings) -> torch.optim.Optimizer:
    """The optimiser of all weights that are trained; those of the backbone are a separate group."""
    groups = [{"params": [*encoder.sequence.parameters(), *encoder.head.parameters()], "factor": 1.0}]
    if settings.backbone_factor > 0:
        groups.append({"params": list(encoder.backbone.parameters()), "factor": settings.backbone_factor})
    kind = torch.optim.AdamW if settings.name == "adamw" else torch.optim.Adam
    return kind(groups, lr=settings.lr, weight_decay=settings.weight_decay)


def set_learning_rate(optimizer: Any, settings: OptimizerSettings, progress: float) -> float:
    """Set and return the learning rate after a share of the training: lr * `schedule_factor`."""
    rate = settings.lr * schedule_factor(settings, progress)
    for group in optimizer.param_groups:
        group["lr"] = rate * group["factor"]
    return rate


def schedule_factor(settings: OptimizerSettings, progress: float) -> float:
    """From 0 to 1: constant 1; or p / warmup, then (1 + cos(pi * (p - warmup) / (1 - warmup))) / 2."""
    if settings.schedule == "constant":
        return 1.0
    if progress < settings.warmup:
        return progress / settings.warmup
    return (1 + math.cos(math.pi * (progress - settings.warmup) / max(1 - settings.warmup, 1e-9))) / 2
