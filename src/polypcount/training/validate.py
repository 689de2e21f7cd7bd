"""How good the encoder is on videos that it does not learn from."""

import math
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polypcount.errors import DataError
from polypcount.evaluation import reidentification_scores, retrieval_scores
from polypcount.training.batches import Rows
from polypcount.training.clips import Clips, Frames, batches_with_clips, read_clips
from polypcount.training.data import TrainingData
from polypcount.training.learner import DIVERGED, Learner, batch_targets, encode_clips
from polypcount.training.loss import soft_contrastive_loss

Metrics = dict[str, float | None]
_FRAMES_AT_ONCE = 256


class Interrupted(Exception):
    """Somebody wants the training to stop now."""


def validate(learner: Learner, data: TrainingData, store: Frames, asked_to_stop: Callable[[], bool] = bool) -> Metrics:
    """Loss over batches that are always the same, and retrieval; None for what is undefined.

    The loss is that of the recipe. Retrieval compares the vectors that are counted with, before the head.
    asked_to_stop: looked at between batches; raises `Interrupted`.
    """
    learner.encoder.eval()
    try:
        with torch.inference_mode():
            loss = _loss(learner, data, store, asked_to_stop)
            vectors = _vectors(learner, data.queries.rows, store, asked_to_stop)
    finally:
        learner.set_training()
    if not np.isfinite(vectors).all() or math.isinf(loss):
        raise DataError(DIVERGED)
    polyp = data.queries.polyp
    found, pairs = retrieval_scores(vectors, polyp), reidentification_scores(vectors, polyp)
    scores = {
        "loss": loss,
        "mean_average_precision": found.mean_average_precision,
        "hit_rate_1": found.hit_rate_1,
        "auroc": pairs.auroc,
    }
    return {name: value if math.isfinite(value) else None for name, value in scores.items()}


def better(metrics: Metrics, best: float | None, monitor: str) -> bool:
    """Whether the monitored value is better than the best so far; a loss when lower, the others when higher."""
    if monitor == "last":
        return True
    value = metrics[monitor]
    if value is None:
        return False
    return best is None or (value < best if monitor == "loss" else value > best)


def _loss(learner: Learner, data: TrainingData, store: Frames, asked_to_stop: Callable[[], bool]) -> float:
    size = learner.encoder.spec.preprocessing.crop.size
    batches = list(islice(data.sampler.batches(0), learner.recipe.validation.batches))
    losses = []
    for batch, clips in batches_with_clips(store, batches, size, rank=0, world=1, threads=1):
        if asked_to_stop():
            raise Interrupted
        with learner.fabric.autocast():
            views = [learner.encoder.head(_encoded(learner, part)) for part in clips.split(_FRAMES_AT_ONCE)]
        targets = batch_targets(batch, learner.recipe.loss).to(learner.fabric.device)
        losses.append(float(soft_contrastive_loss(torch.cat(views).float(), targets, learner.recipe.loss.temperature)))
    return float(np.mean(losses)) if losses else math.nan


def _encoded(learner: Learner, clips: Clips) -> Tensor:
    return encode_clips(learner.encoder, learner.images(clips, None), clips.mask.to(learner.fabric.device))


def _vectors(
    learner: Learner, queries: Sequence[Rows], store: Frames, asked_to_stop: Callable[[], bool]
) -> NDArray[np.float32]:
    size, frames = learner.encoder.spec.preprocessing.crop.size, learner.recipe.validation.frames
    each = max(1, _FRAMES_AT_ONCE // frames)
    vectors: list[Any] = [np.empty((0, learner.encoder.spec.d), np.float32)]
    for start in range(0, len(queries), each):
        if asked_to_stop():
            raise Interrupted
        clips = read_clips(store, queries[start : start + each], size)
        with learner.fabric.autocast():
            found = _encoded(learner, clips)
        vectors.append(found.float().cpu().numpy())
    return np.concatenate(vectors)
