"""Residual networks: their configurations, without a hub, and weights with torchvision's or transformers' names.

All are of version 1.5: a bottleneck reduces the image in its 3x3 convolution, as in torchvision.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from polypcount.errors import FileError

_BASIC, _BOTTLENECK = ("basic", [64, 128, 256, 512]), ("bottleneck", [256, 512, 1024, 2048])
_NETWORKS = {
    "resnet-18": (_BASIC, [2, 2, 2, 2]),
    "resnet-26": (_BOTTLENECK, [2, 2, 2, 2]),
    "resnet-34": (_BASIC, [3, 4, 6, 3]),
    "resnet-50": (_BOTTLENECK, [3, 4, 6, 3]),
    "resnet-101": (_BOTTLENECK, [3, 4, 23, 3]),
    "resnet-152": (_BOTTLENECK, [3, 8, 36, 3]),
}
RESNETS = tuple(_NETWORKS)
# The newest ImageNet weights of torchvision.
_TORCHVISION_FILES = {
    "resnet-18": "resnet18-f37072fd.pth",
    "resnet-34": "resnet34-b627a593.pth",
    "resnet-50": "resnet50-11ad3fa6.pth",
    "resnet-101": "resnet101-cd907fc2.pth",
    "resnet-152": "resnet152-f82ba261.pth",
}
_STEM = {"embedder.embedder.convolution": "conv1", "embedder.embedder.normalization": "bn1"}
_KIND = {"convolution": "conv", "normalization": "bn"}
_LAYER = re.compile(
    r"encoder\.stages\.(\d+)\.layers\.(\d+)\.(?:layer\.(\d+)|(shortcut))\.(convolution|normalization)\.(\w+)"
)
_BLOCK = re.compile(r"layer([1-4])\.(\d+)\.(?:(conv|bn)([1-3])|downsample\.([01]))\.(\w+)")


def resnet_config(name: str) -> dict[str, Any]:
    """The transformers configuration of a network from `RESNETS`."""
    (kind, sizes), depths = _NETWORKS[name]
    return _config(kind, 64, list(sizes), list(depths))


def config_of_weights(weights: Mapping[str, Tensor], source: object) -> dict[str, Any]:
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
    return _config(
        "bottleneck" if bottleneck else "basic",
        int(weights["conv1.weight"].shape[0]),
        [int(weights[name].shape[0]) for name in convolutions],
        [sum(stage == block[0] for block in blocks) for stage in "1234"],
    )


def _config(kind: str, stem: int, sizes: list[int], depths: list[int]) -> dict[str, Any]:
    return {
        "model_type": "resnet",
        "num_channels": 3,
        "embedding_size": stem,
        "hidden_sizes": sizes,
        "depths": depths,
        "layer_type": kind,
        "hidden_act": "relu",
        "downsample_in_first_stage": False,
        "downsample_in_bottleneck": False,
    }


def without_classifier(weights: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Callable[[str], str]]:
    """The weights of the network proper, and the function that gives their names from those of `ResNetModel`.

    Files have the names of torchvision (timm has the same) or of transformers.
    """
    of_transformers = {name.removeprefix("resnet."): values for name, values in weights.items()}
    if any(name.startswith("embedder.") for name in of_transformers):
        return {name: values for name, values in of_transformers.items() if not name.startswith("classifier.")}, str
    return {name: values for name, values in weights.items() if not name.startswith("fc.")}, torchvision_name


def torchvision_name(name: str) -> str:
    """The name in torchvision of a tensor of transformers' `ResNetModel`."""
    layer, _, rest = name.rpartition(".")
    if layer in _STEM:
        return f"{_STEM[layer]}.{rest}"
    if not (match := _LAYER.fullmatch(name)):
        return name
    stage, block, number, shortcut, kind, rest = match.groups()
    place = f"layer{int(stage) + 1}.{block}"
    if shortcut:
        return f"{place}.downsample.{list(_KIND).index(kind)}.{rest}"
    return f"{place}.{_KIND[kind]}{int(number) + 1}.{rest}"


def find_weights(name: str, path: Path) -> Path:
    """The weights file of a network from `RESNETS`.

    A plain file name that is not in the current folder is also sought in the cache of `torch.hub`, where torchvision
    keeps its downloads.
    """
    kept = Path(torch.hub.get_dir()) / "checkpoints" / path.name
    if path.name == str(path) and not path.exists() and kept.is_file():
        return kept
    if not path.is_file():
        raise FileError(
            f"backbone {name}: a weights file was expected, found {'a folder' if path.is_dir() else 'nothing'} at "
            f"{path}; {where_to_get(name)}",
            mend="model.weights",
        )
    return path


def where_to_get(name: str) -> str:
    """What to do where the weights of a network from `RESNETS` are missing."""
    file = _TORCHVISION_FILES.get(name)
    which = f"torchvision's {file}, from https://download.pytorch.org/models/{file}" if file else "a timm or hub file"
    return f"get {which}, and give its path as model.weights"
