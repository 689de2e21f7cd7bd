"""What an encoder is, apart from its weights: plain values that are kept as JSON."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from polypcount.errors import DataError
from polypcount.video import CropRule

_SMALLEST_IMAGE = 8
_LARGEST = {"feature_size": 65536, "d": 8192, "layers": 64, "heads": 256, "ff": 65536}


@dataclass(frozen=True)
class Preprocessing:
    """How a box in a frame becomes the image that the backbone sees.

    Attributes:
        crop: which part of the frame, and how it becomes a square.
        mean: of red, green and blue, on pixel values 0..1; subtracted.
        std: of red, green and blue, on pixel values 0..1; what remains is divided by it.
    """

    crop: CropRule = field(default_factory=CropRule)
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)

    def __post_init__(self) -> None:
        if not isinstance(self.crop, CropRule):
            raise DataError(f"crop must be a CropRule, found {_shown(self.crop)}")
        if self.crop.size < _SMALLEST_IMAGE:
            raise DataError(f"crop.size must be at least {_SMALLEST_IMAGE} pixels, found {self.crop.size}")
        for name in ("mean", "std"):
            values = getattr(self, name)
            if not isinstance(values, list | tuple) or len(values) != 3 or not all(map(_is_number, values)):
                raise DataError(f"{name} must be three numbers, for red, green and blue, found {_shown(values)}")
            object.__setattr__(self, name, tuple(map(float, values)))
        if min(self.std) <= 0:
            raise DataError(f"std must be above 0, found {list(self.std)}")


@dataclass(frozen=True)
class EncoderSpec:
    """The architecture of a tracklet encoder and the images that it expects.

    Attributes:
        backbone: name that `load_backbone` was given.
        feature_size: numbers per frame, from the backbone.
        backbone_config: what a transformers backbone is built from, as JSON; None for the built-in ones.
        d: numbers per tracklet.
        layers: of the transformer over the frames.
        heads: of each of its layers.
        ff: width inside its layers.
        dropout: in training.
        pooling: `cls` (transformer) or `mean` (mean of the projected frames).
        positions: whether the transformer is told the order of the frames.
        preprocessing: from box to image.
    """

    backbone: str
    feature_size: int
    backbone_config: Mapping[str, Any] | None = None
    d: int = 128
    layers: int = 3
    heads: int = 8
    ff: int = 2048
    dropout: float = 0.1
    pooling: Literal["cls", "mean"] = "cls"
    positions: bool = False
    preprocessing: Preprocessing = field(default_factory=Preprocessing)

    def __post_init__(self) -> None:
        if not isinstance(self.backbone, str) or not self.backbone:
            raise DataError(f"backbone must be a name, found {_shown(self.backbone)}")
        if not isinstance(self.backbone_config, Mapping | None):
            raise DataError(f"backbone_config must be a JSON object or null, found {_shown(self.backbone_config)}")
        for name in ("feature_size", "d", "layers", "heads", "ff"):
            _whole(self, name)
        _number(self, "dropout", above=-1e-9, most=0.99)
        _one_of(self, "pooling", ("cls", "mean"))
        if not isinstance(self.positions, bool):
            raise DataError(f"positions must be true or false, found {_shown(self.positions)}")
        if not isinstance(self.preprocessing, Preprocessing):
            raise DataError(f"preprocessing must be a Preprocessing, found {_shown(self.preprocessing)}")
        if self.backbone_config is not None:
            object.__setattr__(self, "backbone_config", dict(self.backbone_config))

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        values = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}
        values["backbone_config"] = None if self.backbone_config is None else dict(self.backbone_config)
        plain = dataclasses.asdict(self.preprocessing)
        values["preprocessing"] = {**plain, "mean": list(self.preprocessing.mean), "std": list(self.preprocessing.std)}
        return values

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """From `to_dict`; keys that are unknown, missing or of another kind raise `DataError`, which names the key."""
        _check_keys(cls, values, "spec")
        images = values["preprocessing"]
        _check_keys(Preprocessing, images, "spec.preprocessing")
        _check_keys(CropRule, images["crop"], "spec.preprocessing.crop")
        if not _is_number(images["crop"]["scale"]):
            raise DataError(f"spec.preprocessing.crop.scale must be a number, found {_shown(images['crop']['scale'])}")
        preprocessing = Preprocessing(**{**images, "crop": CropRule(**images["crop"])})
        return cls(**{**values, "preprocessing": preprocessing})


def _check_keys(kind: type[Any], values: Any, where: str) -> None:
    if not isinstance(values, dict):
        raise DataError(f"{where} must be a JSON object, found {_shown(values)}")
    expected = {entry.name for entry in dataclasses.fields(kind)}
    if missing := sorted(expected - set(values)):
        raise DataError(f"{where}.{missing[0]} is missing")
    if unknown := sorted(set(values) - expected):
        raise DataError(f"{where}.{unknown[0][:50]} is unknown; known are {', '.join(sorted(expected))}")


def _whole(owner: object, name: str, least: int = 1) -> None:
    value = getattr(owner, name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _LARGEST[name]:
        raise DataError(f"{name} must be a whole number from {least} to {_LARGEST[name]}, found {_shown(value)}")


def _number(owner: object, name: str, above: float, most: float) -> None:
    value = getattr(owner, name)
    if not _is_number(value) or not above < value <= most:
        raise DataError(f"{name} must be a number from {max(above, 0.0):g} to {most:g}, found {_shown(value)}")
    object.__setattr__(owner, name, float(value))


def _one_of(owner: object, name: str, allowed: tuple[str, ...]) -> None:
    if getattr(owner, name) not in allowed:
        raise DataError(f"{name} must be {' or '.join(allowed)}, found {_shown(getattr(owner, name))}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9 and math.isfinite(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
