"""Which views of a batch should be near each other, and how much: a matrix of pair targets.

A matrix of targets [n, n] has a row for each view as anchor: the share of its similarity that each other view is to
have. A row adds up to 1, or to 0 where the anchor has no positive; a view is never its own positive.
"""

import math

import torch
from torch import Tensor

from polypcount.errors import DataError


def instance_targets(instances: Tensor) -> Tensor:
    """Self-supervised: the other views of the same sample share the target equally.

    instances: int[n], the sample of each view. With two views of each, `soft_contrastive_loss` is NT-Xent.
    """
    return _shares(_matches("instances", instances).to(torch.get_default_dtype()))


def identity_targets(labels: Tensor) -> Tensor:
    """Supervised: the other views of the same polyp share the target equally.

    labels: int[n], the polyp of each view.
    """
    return _shares(_matches("labels", labels).to(torch.get_default_dtype()))


def temporal_targets(labels: Tensor, positions: Tensor, decay: float = 1.0) -> Tensor:
    """Temporally-aware: the other views of the same polyp share the target by their nearness in time.

        p[i, j] = match[i, j] * exp(-decay * d[i, j]) / sum over k of match[i, k] * exp(-decay * d[i, k])

    with d[i, j] = abs(positions[i] - positions[j]): equation 2 of the paper, whose lambda is `decay`.

    labels: int[n], the polyp of each view.
    positions: float[n], when it was seen, as a share of the time from the polyp's first to its last frame.
    """
    matches = _matches("labels", labels)
    if positions.shape != labels.shape:
        raise DataError(f"positions must have one value a view, {list(labels.shape)}, found {list(positions.shape)}")
    if not positions.is_floating_point() or not bool(torch.isfinite(positions).all()):
        raise DataError("positions must be finite floating point numbers; a view without a polyp has none")
    if not 0 <= decay < math.inf:
        raise DataError(f"decay must be a number of at least 0, found {decay}")
    distance = (positions[:, None] - positions).abs()
    # Only ratios within a row count. Measured from the nearest positive, the weights cannot all vanish.
    nearest = distance.masked_fill(~matches, torch.inf).amin(dim=1, keepdim=True)
    weight = torch.exp(-decay * (distance - nearest.nan_to_num(posinf=0.0)))
    return _shares(torch.where(matches, weight, torch.zeros_like(weight)))


def _matches(name: str, groups: Tensor) -> Tensor:
    """Which two different views have the same number, bool[n, n]."""
    if groups.ndim != 1 or groups.is_floating_point() or groups.dtype == torch.bool:
        raise DataError(f"{name} must be whole numbers [n], found {groups.dtype} {list(groups.shape)}")
    if len(groups) and bool((groups < 0).any()):
        raise DataError(
            f"{name} must be at least 0, found {int(groups.min())}: a view of no known polyp has no positives"
        )
    return (groups[:, None] == groups) & ~torch.eye(len(groups), dtype=torch.bool, device=groups.device)


def _shares(weight: Tensor) -> Tensor:
    """Rows divided by their sums; rows of zeros stay."""
    total = weight.sum(dim=1, keepdim=True)
    return weight / torch.where(total > 0, total, torch.ones_like(total))
