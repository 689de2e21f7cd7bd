"""From views of polyps to a trained encoder: targets, loss, samplers, recipes and the loop."""

from polypcount.training.augment import augment
from polypcount.training.large_batches import backward_in_pieces, gather_rows
from polypcount.training.loop import Moment, Stopped
from polypcount.training.loss import soft_contrastive_loss, temporal_contrastive_loss
from polypcount.training.processes import Machine
from polypcount.training.recipe import Augmentation, Recipe
from polypcount.training.recipe_file import load_recipe, recipe_names, recipe_text
from polypcount.training.targets import identity_targets, instance_targets, temporal_targets
from polypcount.training.train_encoder import train

__all__ = [
    "Augmentation",
    "Machine",
    "Moment",
    "Recipe",
    "Stopped",
    "augment",
    "backward_in_pieces",
    "gather_rows",
    "identity_targets",
    "instance_targets",
    "load_recipe",
    "recipe_names",
    "recipe_text",
    "soft_contrastive_loss",
    "temporal_contrastive_loss",
    "temporal_targets",
    "train",
]
