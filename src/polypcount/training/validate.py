"""How good the encoder is on videos that it does not learn from."""

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polypcount.errors import DataError
from polypcount.evaluation import reidentification_scores, retrieval_scores
from polypcount.training.batches import Clips, ClipSource, batches_with_clips, read_clips
from polypcount.training.data import TrainingData
from polypcount.training.learner import DIVERGED, Learner, batch_targets, encode_clips
from polypcount.training.loop import ValidationScores
from polypcount.training.loss import soft_contrastive_loss

_FRAMES_AT_ONCE = 256


def validate(
    learner: Learner, data: TrainingData, source: ClipSource, between: Callable[[], object] = bool
) -> ValidationScores:
    """The loss of the recipe over batches that are always the same, and retrieval; None for what is undefined.

    Retrieval compares the vectors that counting uses, before the head.

    Args:
        learner: The encoder; it is in training mode again afterwards.
        data: The data for validation.
        source: Crops or features of the data.
        between: Called before each batch; it may raise to end the validation.
    """
    learner.encoder.eval()
    try:
        with torch.inference_mode():
            loss = _loss(learner, data, source, between)
            vectors = _vectors(learner, data, source, between)
    finally:
        learner.set_training()
    if not np.isfinite(vectors).all() or math.isinf(loss):
        raise DataError(DIVERGED)
    retrieval = retrieval_scores(vectors, data.query_polyp)
    scores = {
        "loss": loss,
        "mean_average_precision": retrieval.mean_average_precision,
        "hit_rate_1": retrieval.hit_rate_1,
        "auroc": reidentification_scores(vectors, data.query_polyp).auroc,
    }
    return {name: value if math.isfinite(value) else None for name, value in scores.items()}


def better(scores: ValidationScores, best: float | None, monitor: str) -> bool:
    """Whether the monitored value is better than the best so far: lower for a loss, higher for the others."""
    if monitor == "last":
        return True
    value = scores[monitor]
    if value is None:
        return False
    return best is None or (value < best if monitor == "loss" else value > best)


def _loss(learner: Learner, data: TrainingData, source: ClipSource, between: Callable[[], object]) -> float:
    size, settings = learner.encoder.spec.preprocessing.crop.size, learner.recipe.loss
    batches = list(data.sampler.batches(0))
    losses = []
    pairs = batches_with_clips(source, batches, size, rank=0, world=1, threads=1)
    for batch, clips in pairs:
        between()
        with learner.fabric.autocast():
            views = [learner.encoder.head(_encoded(learner, part)) for part in clips.split(_FRAMES_AT_ONCE)]
        targets = batch_targets(batch, settings).to(learner.fabric.device)
        losses.append(float(soft_contrastive_loss(torch.cat(views).float(), targets, settings.temperature)))
    return float(np.mean(losses)) if losses else math.nan


def _vectors(
    learner: Learner, data: TrainingData, source: ClipSource, between: Callable[[], object]
) -> NDArray[np.float32]:
    size, queries = learner.encoder.spec.preprocessing.crop.size, data.queries
    at_once = max(1, _FRAMES_AT_ONCE // learner.recipe.validation.frames)
    vectors = [np.empty((0, learner.encoder.spec.d), np.float32)]
    for start in range(0, len(queries), at_once):
        between()
        clips = read_clips(source, queries[start : start + at_once], size)
        with learner.fabric.autocast():
            vectors.append(_encoded(learner, clips).float().cpu().numpy())
    return np.concatenate(vectors)


def _encoded(learner: Learner, clips: Clips) -> Tensor:
    return encode_clips(learner.encoder, learner.images(clips, None), clips.mask.to(learner.fabric.device))
