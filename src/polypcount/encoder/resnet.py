"""Residual networks in the naming of torchvision (`resnet50.pth`), brought to the ResNet of transformers."""

import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from polypcount.errors import FileError

_STEM = {"conv1": "embedder.embedder.convolution", "bn1": "embedder.embedder.normalization"}
_SHORTCUT = {"0": "convolution", "1": "normalization"}
_BLOCK = re.compile(r"layer([1-4])\.(\d+)\.(?:(conv|bn)([1-3])|downsample\.([01]))\.(\w+)")


def is_torchvision_resnet(weights: Mapping[str, Tensor]) -> bool:
    """Whether the tensor names are those of a torchvision ResNet."""
    return "conv1.weight" in weights and "layer1.0.conv1.weight" in weights


def resnet_config(weights: Mapping[str, Tensor], source: object) -> dict[str, Any]:
    """The transformers configuration of the network that these torchvision weights are for."""
    depths = []
    for stage in range(1, 5):
        blocks = {int(found[2]) for name in weights if (found := _BLOCK.fullmatch(name)) and int(found[1]) == stage}
        if not blocks or blocks != set(range(len(blocks))):
            raise FileError(f"{source}: layer{stage} of the ResNet is not complete: found blocks {sorted(blocks)}")
        depths.append(len(blocks))
    bottleneck = "layer1.0.conv3.weight" in weights
    last = "conv3" if bottleneck else "conv2"
    widths = [_outputs(weights, f"layer{stage}.0.{last}.weight", source) for stage in range(1, 5)]
    return {
        "model_type": "resnet",
        "num_channels": 3,
        "embedding_size": _outputs(weights, "conv1.weight", source),
        "hidden_sizes": widths,
        "depths": depths,
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
    if not (found := _BLOCK.fullmatch(name)):
        return name
    stage, block, kind, number, shortcut, rest = found.groups()
    layer = f"encoder.stages.{int(stage) - 1}.layers.{block}"
    if shortcut:
        return f"{layer}.shortcut.{_SHORTCUT[shortcut]}.{rest}"
    return f"{layer}.layer.{int(number) - 1}.{'convolution' if kind == 'conv' else 'normalization'}.{rest}"


def _outputs(weights: Mapping[str, Tensor], name: str, source: object) -> int:
    if name not in weights or weights[name].ndim != 4:
        raise FileError(f"{source}: {name} of the ResNet is missing or not a convolution")
    return int(weights[name].shape[0])
