"""One contrastive loss for every kind of pair target."""

import logging

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from polypcount.errors import DataError
from polypcount.training.targets import temporal_targets

_log = logging.getLogger(__name__)


def soft_contrastive_loss(z: Tensor, targets: Tensor, temperature: float = 0.25) -> Tensor:
    """Cross-entropy between pair targets and the similarities of a batch, a scalar.

        q[i, j] = exp(z_i . z_j / temperature) / sum over k != i of exp(z_i . z_k / temperature)
        loss = mean over rows i of (- sum over j != i of targets[i, j] * log q[i, j])

    with every z_i scaled to length 1: equations 1 and 3 of the paper. Rows without a positive are left out of the mean,
    and their number is logged.

    Args:
        z: float[n, d].
        targets: float[n, n]. Each row adds up to 1, or to 0 without a positive; the diagonal is ignored.
        temperature: Above 0.

    Raises:
        DataError: No row has a positive, or the shapes or values do not fit.
    """
    if z.ndim != 2 or targets.shape != (len(z), len(z)):
        raise DataError(
            f"z must have the shape [n, d] and targets [n, n], found {list(z.shape)} and {list(targets.shape)}"
        )
    if not temperature > 0:
        raise DataError(f"the temperature must be above 0, found {temperature}")
    if not bool((torch.isfinite(targets) & (targets >= 0)).all()):
        raise DataError("targets must be finite and at least 0")
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    shares = targets.to(torch.promote_types(z.dtype, torch.float32)).masked_fill(itself, 0)
    counted = shares.sum(dim=1) > 0
    if not bool(counted.any()):
        raise DataError(
            f"none of the {len(z)} views of the batch has a positive: the sampler must give at least 2 views of a polyp"
        )
    if not bool(counted.all()):
        _log.info("%d of %d views of the batch have no positive and are left out", int((~counted).sum()), len(z))
    unit = _unit(z.to(shares.dtype))
    similarity = (unit @ unit.T / temperature).masked_fill(itself, -torch.inf)
    log_share = log_softmax(similarity, dim=1).masked_fill(itself, 0)
    return -(shares * log_share).sum(dim=1)[counted].mean()


def temporal_contrastive_loss(
    embeddings: Tensor, labels: Tensor, positions: Tensor, temperature: float = 0.25, decay: float = 1.0
) -> Tensor:
    """The paper's loss, equations 1 to 3: `soft_contrastive_loss` with `temporal_targets`.

    Args:
        embeddings: float[n, d].
        labels: int[n], the polyp of each view.
        positions: float[n], time of each view: 0 at the first frame of its polyp, 1 at the last.
        temperature: Above 0.
        decay: The paper's lambda; 0 gives the supervised loss.
    """
    return soft_contrastive_loss(embeddings, temporal_targets(labels, positions, decay), temperature)


def _unit(z: Tensor) -> Tensor:
    """Rows of length 1; a zero row stays zero, without a gradient that is not finite."""
    # Dividing by the largest entry, as a constant, avoids overflow in squares and does not change the direction.
    largest = z.detach().abs().amax(dim=1, keepdim=True)
    scaled = z / torch.where(largest > 0, largest, torch.ones_like(largest))
    square = scaled.square().sum(dim=1, keepdim=True)
    return scaled / torch.where(square > 0, square, torch.ones_like(square)).sqrt()
