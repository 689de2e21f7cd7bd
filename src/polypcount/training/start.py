"""The encoder with which a training begins."""

from pathlib import Path

import torch

from polypcount.encoder import Preprocessing, TrackletEncoder, load_torch, new_encoder
from polypcount.encoder.weights import fit_weights
from polypcount.errors import DataError
from polypcount.training.recipe import Recipe

_SHAPE = ("d", "layers", "heads", "ff", "pooling", "positions")


def new_model(recipe: Recipe, *, download: bool = False) -> TrackletEncoder:
    """The encoder of the recipe; weights that the recipe does not name are random, by its seed.

    Args:
        recipe: The recipe.
        download: Whether published weights may be downloaded if they are not on this machine.
    """
    settings, weights = recipe.model, recipe.model.weights
    start = None if settings.start is None else load_torch(settings.start)
    donor = load_torch(weights) if isinstance(weights, str) and Path(weights).is_dir() else None
    overwritten = donor is not None or (start is not None and weights is True)
    torch.manual_seed(recipe.seed)
    encoder = new_encoder(
        settings.backbone,
        weights=False if overwritten else weights,
        download=download,
        **settings.model_dump(include={*_SHAPE, "dropout"}),
    )
    mean, std = encoder.backbone.mean, encoder.backbone.std
    if settings.normalise == "none":
        mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    images = Preprocessing(crop=recipe.crop, mean=mean, std=std)
    encoder.spec = encoder.spec.model_copy(update={"preprocessing": images})
    if donor is not None:
        if (name := donor.spec.backbone) != encoder.spec.backbone:
            raise DataError(f"model.weights {weights}: its backbone is {name}, not {encoder.spec.backbone}")
        fit_weights(encoder.backbone, donor.backbone.state_dict(), f"model.weights {weights}")
    if start is not None:
        for key in ("backbone", *_SHAPE):
            old, new = getattr(start.spec, key), getattr(encoder.spec, key)
            if old != new:
                raise DataError(
                    f"model.start {settings.start}: its {key} is {old}, and the recipe's is {new}; "
                    f"set model.{key}={old}, or start from another encoder"
                )
        fit_weights(encoder, start.state_dict(), f"model.start {settings.start}")
    return encoder
