"""The small detector: EfficientNet-Lite0, a light feature pyramid, and a head without anchors."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from polypcount.encoder.lite0 import MEAN, STD, Layer, Lite0

STRIDES = (8, 16, 32)  # pixels of the input between two points, of each level
_LEVELS = ((4, 40), (10, 112), (15, 320))  # last block of Lite0 with this stride, and its channels
_RARE = 0.01  # score of every point before learning: most points show no polyp
_FIRST_SIDE = 2.0  # strides from a point to each side of its box before learning
_LONGEST = 5.0  # log of the most strides from a point to a side


class Found(NamedTuple):
    """What the network says about n images with p points each.

    Attributes:
        score: float[n, p], logits.
        xyxy: float[n, p, 4], a box for each point, in pixels of the input.
        mask: float[n, h / 8, w / 8], logits of polyp pixels; a side task that only learning uses.
    """

    score: Tensor
    xyxy: Tensor
    mask: Tensor


class Separable(nn.Module):
    """A filter for each channel, a mixture of the channels, and ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 3, stride: int = 1) -> None:
        super().__init__()
        self.filter = nn.Conv2d(inputs, inputs, kernel, stride, kernel // 2, groups=inputs)
        self.mix = nn.Conv2d(inputs, outputs, 1)
        nn.init.kaiming_normal_(self.mix.weight, nonlinearity="relu")
        assert self.mix.bias is not None
        nn.init.zeros_(self.mix.bias)

    def forward(self, features: Tensor) -> Tensor:
        """float[n, inputs, h, w] -> float[n, outputs, h / stride, w / stride]."""
        mixed: Tensor = functional.relu(self.mix(self.filter(features)))
        return mixed


class DetectorNetwork(nn.Module):
    """Normalised images float[n, 3, h, w], sides that are multiples of 32, to a score and a box for each point.

    There is no normalisation layer: that of the backbone is part of its convolutions. So an image's boxes do not depend
    on the other images of the batch, and several processes learn exactly what one learns.

    Args:
        channels: Of the pyramid and the head.
    """

    def __init__(self, channels: int = 96) -> None:
        super().__init__()
        self.channels = channels
        self.backbone = folded(Lite0())
        del self.backbone.head
        self.lateral = nn.ModuleList(nn.Conv2d(width, channels, 1) for _, width in _LEVELS)
        self.down_to = nn.ModuleList(Separable(channels, channels) for _ in STRIDES[:-1])  # after adding the coarser
        self.shrink = nn.ModuleList(Separable(channels, channels, stride=2) for _ in STRIDES[1:])
        self.up_to = nn.ModuleList(Separable(channels, channels) for _ in STRIDES[1:])  # after adding the finer
        self.score_tower = nn.Sequential(*(Separable(channels, channels, 5) for _ in range(2)))
        self.box_tower = nn.Sequential(*(Separable(channels, channels, 5) for _ in range(2)))
        self.score = nn.Conv2d(channels, 1, 1)
        self.sides = nn.Conv2d(channels, 4, 1)
        self.mask = nn.Conv2d(channels, 1, 1)
        for layer, first in ((self.score, -math.log(1 / _RARE - 1)), (self.sides, math.log(_FIRST_SIDE))):
            nn.init.normal_(layer.weight, std=0.01)
            assert layer.bias is not None
            nn.init.constant_(layer.bias, first)

    def forward(self, images: Tensor) -> Found:
        """float[n, 3, h, w] -> `Found`."""
        levels = self._pyramid(images)
        scores, boxes = [], []
        for stride, level in zip(STRIDES, levels, strict=True):
            scores.append(self.score(self.score_tower(level)).flatten(1))
            sides = self.sides(self.box_tower(level)).clamp(max=_LONGEST).exp().flatten(2).transpose(1, 2) * stride
            centre = points_of_level(level.shape[2], level.shape[3], stride, level.device)
            boxes.append(torch.cat([centre - sides[..., :2], centre + sides[..., 2:]], dim=2))
        return Found(torch.cat(scores, 1), torch.cat(boxes, 1), self.mask(levels[0])[:, 0])

    def _pyramid(self, images: Tensor) -> list[Tensor]:
        """The features of each level: first from coarse to fine, then back."""
        features, taken = self.backbone.stem(images), []
        for number, block in enumerate(self.backbone.blocks):
            features = block(features)
            if number in [last for last, _ in _LEVELS]:
                taken.append(features)
        levels = [lateral(level) for lateral, level in zip(self.lateral, taken, strict=True)]
        for k in reversed(range(len(levels) - 1)):
            levels[k] = self.down_to[k](levels[k] + functional.interpolate(levels[k + 1], scale_factor=2.0))
        for k in range(1, len(levels)):
            levels[k] = self.up_to[k - 1](levels[k] + self.shrink[k - 1](levels[k - 1]))
        return levels


class Exported(nn.Module):
    """The network as it is kept in a file: pixels in, boxes out.

    Args:
        network: The trained network.
        calibration: Slope and offset on the logit, so that a score is the chance that its box shows a polyp.
    """

    mean: Tensor
    std: Tensor
    calibration: Tensor

    def __init__(self, network: DetectorNetwork, calibration: tuple[float, float] = (1.0, 0.0)) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("mean", torch.tensor(MEAN).view(3, 1, 1))
        self.register_buffer("std", torch.tensor(STD).view(3, 1, 1))
        self.register_buffer("calibration", torch.tensor(calibration))

    def forward(self, images: Tensor) -> Tensor:
        """Images float[1, 3, h, w] from 0 to 1 -> float[1, 5, p]: centre, width, height in pixels, and score."""
        found = self.network((images - self.mean) / self.std)
        low, high = found.xyxy[..., :2], found.xyxy[..., 2:]
        score = (found.score * self.calibration[0] + self.calibration[1]).sigmoid()
        return torch.cat([(low + high) / 2, high - low, score[..., None]], dim=2).transpose(1, 2)


def folded(backbone: Lite0) -> Lite0:
    """Change a Lite0 so that its batch normalisation, by the statistics of its weights, is part of its convolutions."""
    for layer in backbone.modules():
        if isinstance(layer, Layer) and isinstance(layer.normalization, nn.BatchNorm2d):
            norm, convolution = layer.normalization, layer.convolution
            mean, variance = norm.running_mean, norm.running_var
            assert mean is not None
            assert variance is not None
            with torch.no_grad():
                factor = norm.weight / (variance + norm.eps).sqrt()
                convolution.weight.mul_(factor[:, None, None, None])
                convolution.bias = nn.Parameter(norm.bias - mean * factor)
            layer.register_module("normalization", nn.Identity())
            if isinstance(layer.activation, nn.ReLU6):
                layer.activation = nn.ReLU6(inplace=True)
    return backbone


def points_of_level(height: int, width: int, stride: int, device: torch.device | None = None) -> Tensor:
    """The points of a level, row by row, float[height * width, 2]: x and y in pixels of the input."""
    y, x = torch.meshgrid(
        (torch.arange(height, device=device) + 0.5) * stride,
        (torch.arange(width, device=device) + 0.5) * stride,
        indexing="ij",
    )
    return torch.stack([x.flatten(), y.flatten()], 1)


def points_of(width: int, height: int, strides: Sequence[int] = STRIDES) -> Tensor:
    """The points of all levels for images of this size, float[p, 2]."""
    return torch.cat([points_of_level(height // stride, width // stride, stride) for stride in strides])
