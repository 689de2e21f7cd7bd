"""Small encoders to save, and a look at what was saved."""

import json
from pathlib import Path
from typing import Any

import torch

from polypcount.encoder import Preprocessing, TrackletEncoder, new_encoder
from polypcount.video import CropRule

SMALL: dict[str, Any] = {
    "d": 16,
    "heads": 2,
    "ff": 32,
    "layers": 2,
    "preprocessing": Preprocessing(crop=CropRule(size=40)),
}
FILES = ("encoder.safetensors", "frame.onnx", "sequence.onnx")


def make(**settings: Any) -> TrackletEncoder:
    """A small encoder whose batch statistics are not the initial ones."""
    encoder = new_encoder("tiny", **{**SMALL, **settings})
    encoder(torch.randn(2, 3, 3, 40, 40), torch.ones(2, 3, dtype=torch.bool))
    return encoder


def manifest(folder: Path) -> dict[str, Any]:
    described: dict[str, Any] = json.loads((folder / "encoder.json").read_text())
    return described
