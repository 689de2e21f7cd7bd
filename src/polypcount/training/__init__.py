"""From views of polyps to a trained encoder: pair targets and the loss."""

from polypcount.training.large_batches import backward_in_pieces, gather_rows
from polypcount.training.loss import soft_contrastive_loss, temporal_contrastive_loss
from polypcount.training.targets import identity_targets, instance_targets, temporal_targets

__all__ = [
    "backward_in_pieces",
    "gather_rows",
    "identity_targets",
    "instance_targets",
    "soft_contrastive_loss",
    "temporal_contrastive_loss",
    "temporal_targets",
]
