"""Which views of a batch should be near each other, and how much: a matrix of pair targets.

A matrix of targets [n, n] has a row for each view as anchor: the share of the anchor's similarity that each other view
should have. A row adds up to 1, or to 0 if the anchor has no positive. A view is never its own positive.
"""

import math

import torch
from torch import Tensor

from polypcount.errors import DataError


def instance_targets(instances: Tensor) -> Tensor:
    """Self-supervised: the other views of the same sample share the target equally.

    With two views of each sample, `soft_contrastive_loss` is NT-Xent.

    Args:
        instances: int[n], the sample of each view.
    """
    return _shares(_matches("instances", instances).to(torch.get_default_dtype()))


def identity_targets(labels: Tensor) -> Tensor:
    """Supervised: the other views of the same polyp share the target equally.

    Args:
        labels: int[n], the polyp of each view.
    """
    return _shares(_matches("labels", labels).to(torch.get_default_dtype()))


def temporal_targets(labels: Tensor, positions: Tensor, decay: float = 1.0) -> Tensor:
    """Temporally-aware: of the other views of the same polyp, those nearer in time get a larger share.

        p[i, j] = match[i, j] * exp(-decay * d[i, j]) / sum over k of match[i, k] * exp(-decay * d[i, k])

    with d[i, j] = abs(positions[i] - positions[j]): equation 2 of the paper, whose lambda is `decay`.

    Args:
        labels: int[n], the polyp of each view.
        positions: float[n], time of each view: 0 at the polyp's first frame, 1 at its last.
        decay: At least 0.
    """
    matches = _matches("labels", labels)
    if positions.shape != labels.shape:
        raise DataError(f"positions must have one value a view, {list(labels.shape)}, found {list(positions.shape)}")
    if not positions.is_floating_point() or not bool(torch.isfinite(positions).all()):
        raise DataError("positions must be finite floating point numbers; a view without a polyp has none")
    if not 0 <= decay < math.inf:
        raise DataError(f"decay must be a number of at least 0, found {decay}")
    distance = (positions[:, None] - positions).abs()
    # Only ratios within a row count. Distances are measured from the nearest positive, so that not all weights are 0.
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
