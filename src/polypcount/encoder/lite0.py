"""EfficientNet-Lite0, a small image network that runs well on a processor, and its published ImageNet weights."""

import re
from collections.abc import Mapping

from torch import Tensor, nn
from torch.nn import functional

FEATURE_SIZE = 1280
# (x - 127) / 128 on pixel values 0..255, here on 0..1.
MEAN, STD = (127 / 255, 127 / 255, 127 / 255), (128 / 255, 128 / 255, 128 / 255)

_STEM_CHANNELS = 32
# expansion, channels, repeats, stride of the first repeat, kernel size
_STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)
_PUBLISHED_NAME = re.compile(r"(?:_blocks\.(\d+)\.)?(\w+)\.(\w+)")
_PARTS = {
    "_conv_stem": "stem.convolution",
    "_bn0": "stem.normalization",
    "_conv_head": "head.convolution",
    "_bn1": "head.normalization",
}
_BLOCK_PARTS = {
    "_expand_conv": "expand.convolution",
    "_bn0": "expand.normalization",
    "_depthwise_conv": "depthwise.convolution",
    "_bn1": "depthwise.normalization",
    "_project_conv": "project.convolution",
    "_bn2": "project.normalization",
}


class SameConvolution(nn.Conv2d):
    """Convolution padded as TensorFlow pads: the output has ceil(size / stride), the odd pixel goes right and below."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        even = kernel // 2 if stride == 1 else 0
        super().__init__(inputs, outputs, kernel, stride, padding=even, groups=groups, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        """float[n, inputs, h, w] -> float[n, outputs, ceil(h / stride), ceil(w / stride)]."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        if stride > 1:
            height, width = (kernel - 1 - (size - 1) % stride for size in images.shape[-2:])
            images = functional.pad(images, (width // 2, width - width // 2, height // 2, height - height // 2))
        return super().forward(images)


class Layer(nn.Module):
    """Convolution, batch normalisation and, unless `activate` is off, ReLU6."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1, *, groups: int = 1, activate: bool = True
    ) -> None:
        super().__init__()
        self.convolution = SameConvolution(inputs, outputs, kernel, stride, groups)
        self.normalization = nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01)
        self.activation = nn.ReLU6() if activate else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        """float[n, inputs, h, w] -> float[n, outputs, ceil(h / stride), ceil(w / stride)]."""
        activated: Tensor = self.activation(self.normalization(self.convolution(images)))
        return activated


class Block(nn.Module):
    """Widen, filter each channel, narrow; the input is added where the shape stays the same."""

    def __init__(self, expansion: int, inputs: int, outputs: int, stride: int, kernel: int) -> None:
        super().__init__()
        width = inputs * expansion
        self.expand = Layer(inputs, width) if expansion > 1 else nn.Identity()
        self.depthwise = Layer(width, width, kernel, stride, groups=width)
        self.project = Layer(width, outputs, activate=False)
        self.adds_input = stride == 1 and inputs == outputs

    def forward(self, images: Tensor) -> Tensor:
        """float[n, inputs, h, w] -> float[n, outputs, ceil(h / stride), ceil(w / stride)]."""
        filtered: Tensor = self.project(self.depthwise(self.expand(images)))
        return filtered + images if self.adds_input else filtered


class Lite0(nn.Module):
    """EfficientNet-Lite0 without its classifier: normalised images float[n, 3, h, w] -> features float[n, 1280]."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = Layer(3, _STEM_CHANNELS, kernel=3, stride=2)
        blocks, inputs = [], _STEM_CHANNELS
        for expansion, outputs, repeats, stride, kernel in _STAGES:
            for repeat in range(repeats):
                blocks.append(Block(expansion, inputs, outputs, 1 if repeat else stride, kernel))
                inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = Layer(inputs, FEATURE_SIZE)

    def forward(self, images: Tensor) -> Tensor:
        """The average over the image of each of the 1280 channels."""
        channels: Tensor = self.head(self.blocks(self.stem(images)))
        return channels.mean(dim=(2, 3))


def rename_published(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The published state dict under the names of `Lite0`; the classifier is left out, unknown names stay."""
    return {_our_name(name): values for name, values in weights.items() if not name.startswith("_fc.")}


def _our_name(name: str) -> str:
    match = _PUBLISHED_NAME.fullmatch(name)
    parts = _BLOCK_PARTS if match and match[1] else _PARTS
    if not match or match[2] not in parts:
        return name
    return f"{f'blocks.{match[1]}.' if match[1] else ''}{parts[match[2]]}.{match[3]}"
