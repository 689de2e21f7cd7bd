"""Residual networks with torchvision's names (`resnet50.pth`), converted to the ResNet of transformers."""

import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from polypcount.errors import FileError

_STEM = {"conv1": "embedder.embedder.convolution", "bn1": "embedder.embedder.normalization"}
_SHORTCUT = {"0": "convolution", "1": "normalization"}
_BLOCK = re.compile(r"layer([1-4])\.(\d+)\.(?:(conv|bn)([1-3])|downsample\.([01]))\.(\w+)")


def resnet_config(weights: Mapping[str, Tensor], source: object) -> dict[str, Any]:
    """The transformers configuration of the network that these torchvision weights are for.

    Args:
        weights: Tensors by their torchvision names.
        source: Their file, for messages.
    """
    blocks = {match.group(1, 2) for name in weights if (match := _BLOCK.fullmatch(name))}
    bottleneck = "layer1.0.conv3.weight" in weights
    convolutions = [f"layer{stage}.0.conv{3 if bottleneck else 2}.weight" for stage in range(1, 5)]
    if missing := [name for name in ("conv1.weight", *convolutions) if name not in weights or weights[name].ndim != 4]:
        raise FileError(f"{source}: {missing[0]} of a torchvision ResNet is missing or not a convolution")
    return {
        "model_type": "resnet",
        "num_channels": 3,
        "embedding_size": int(weights["conv1.weight"].shape[0]),
        "hidden_sizes": [int(weights[name].shape[0]) for name in convolutions],
        "depths": [sum(stage == block[0] for block in blocks) for stage in "1234"],
        "layer_type": "bottleneck" if bottleneck else "basic",
        "hidden_act": "relu",
        "downsample_in_first_stage": False,
        "downsample_in_bottleneck": False,
    }


def rename_torchvision(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights under the names of transformers' `ResNetModel`; the classifier is left out, unknown names stay."""
    return {_transformers_name(name): values for name, values in weights.items() if not name.startswith("fc.")}


def _transformers_name(name: str) -> str:
    first, _, rest = name.partition(".")
    if first in _STEM:
        return f"{_STEM[first]}.{rest}"
    if not (match := _BLOCK.fullmatch(name)):
        return name
    stage, block, kind, number, shortcut, rest = match.groups()
    layer = f"encoder.stages.{int(stage) - 1}.layers.{block}"
    if shortcut:
        return f"{layer}.shortcut.{_SHORTCUT[shortcut]}.{rest}"
    return f"{layer}.layer.{int(number) - 1}.{'convolution' if kind == 'conv' else 'normalization'}.{rest}"
