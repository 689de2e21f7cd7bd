"""From views of polyps to a trained encoder: pair targets and the loss."""

from polypcount.training.loss import soft_contrastive_loss, temporal_contrastive_loss
from polypcount.training.targets import identity_targets, instance_targets, temporal_targets

__all__ = [
    "identity_targets",
    "instance_targets",
    "soft_contrastive_loss",
    "temporal_contrastive_loss",
    "temporal_targets",
]
