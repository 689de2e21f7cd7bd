"""The encoder that a recipe begins with."""

import dataclasses
from pathlib import Path

import torch

from polypcount.encoder import Preprocessing, TrackletEncoder, load_torch, new_encoder
from polypcount.encoder.weights import fit_weights
from polypcount.errors import DataError
from polypcount.training.recipe import Recipe


def new_model(recipe: Recipe, *, download: bool = False) -> TrackletEncoder:
    """The encoder of the recipe, with random numbers by its seed where no weights are given.

    download: whether published weights that are not on this machine may be fetched.
    """
    settings = recipe.model
    before = None if settings.start is None else load_torch(settings.start)
    donor = _donor(settings.weights)
    overwritten = donor is not None or (before is not None and settings.weights is True)
    torch.manual_seed(recipe.seed)
    encoder = new_encoder(
        settings.backbone,
        weights=False if overwritten else settings.weights,
        download=download,
        **settings.model_dump(include={"d", "layers", "heads", "ff", "dropout", "pooling", "positions"}),
    )
    mean, std = (encoder.backbone.mean, encoder.backbone.std)
    if settings.normalise == "none":
        mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    encoder.spec = dataclasses.replace(encoder.spec, preprocessing=Preprocessing(recipe.crop, mean, std))
    if donor is not None:
        if (found := donor.spec.backbone) != encoder.spec.backbone:
            raise DataError(f"model.weights {settings.weights}: its backbone is {found}, not {encoder.spec.backbone}")
        fit_weights(encoder.backbone, donor.backbone.state_dict(), f"model.weights {settings.weights}")
    if before is not None:
        _go_on_from(encoder, before, f"model.start {settings.start}")
    return encoder


def _donor(weights: bool | str) -> TrackletEncoder | None:
    return load_torch(weights) if isinstance(weights, str) and Path(weights).is_dir() else None


def _go_on_from(encoder: TrackletEncoder, before: TrackletEncoder, source: str) -> None:
    for name in ("backbone", "feature_size", "d", "layers", "heads", "ff", "pooling", "positions"):
        mine, theirs = getattr(encoder.spec, name), getattr(before.spec, name)
        if mine != theirs:
            raise DataError(
                f"{source}: its {name} is {theirs}, and the recipe's is {mine}; "
                f"set model.{name}={theirs}, or start from another"
                if name != "feature_size"
                else f"{source}: its backbone gives {theirs} features, and the recipe's {mine}"
            )
    fit_weights(encoder, before.state_dict(), source)
