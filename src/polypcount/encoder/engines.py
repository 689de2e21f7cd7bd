"""What every engine has in common: the two models that it opens, their shapes, and the packages that it needs."""

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polypcount.encoder.spec import EncoderSpec, Preprocessing
from polypcount.errors import DataError, FileError, PolypcountError

ENGINES = ("onnx", "torch", "openvino", "openvino-int8")
INT8 = "openvino-int8"
_NEEDS = {
    "onnx": (("onnxruntime",), "polypcount"),
    "torch": (("torch", "safetensors"), "polypcount[train]"),
    "openvino": (("openvino",), "polypcount[fast]"),
    INT8: (("openvino", "nncf"), "polypcount[fast]"),
}

Shapes = Mapping[str, tuple[int | str, ...]]
"""Names of inputs or outputs in their order, and the length of each axis; a letter for one that is free."""


class FrameModel(Protocol):
    """The backbone, with the way from pixels to numbers."""

    def __call__(self, crops: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Crops uint8[n, size, size, 3], red first -> features float32[n, f]."""


class SequenceModel(Protocol):
    """What turns the frames of a tracklet into one vector."""

    def __call__(self, features: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Features float32[b, t, f], mask bool[b, t] (True: a frame is there) -> vectors float32[b, d]."""


@dataclass(frozen=True)
class Calibration:
    """What int8 costs, measured where the frame model was quantised.

    Attributes:
        key: SHA-256 of all that decides the quantised model, as hexadecimal text.
        crops: how many it was calibrated with and measured on.
        mean_cosine: between the int8 and the fp32 features of a crop, a.b / (|a| |b|); the mean over the crops.
        lowest_cosine: the lowest of them.
        weight_bits: 8, or 7 where sums of 8 bits overflow on this processor.
    """

    key: str
    crops: int
    mean_cosine: float
    lowest_cosine: float
    weight_bits: int


def refuse_unusable(engine: str) -> None:
    """Raise where there is no such engine, or a package that it needs is not installed."""
    if engine not in ENGINES:
        raise DataError(f"engine must be one of {', '.join(ENGINES)}, found {engine!r}")
    packages, requirement = _NEEDS[engine]
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise PolypcountError(
                f"the engine {engine} needs the package {package}, which is missing: pip install '{requirement}'"
            )


def normalised(crops: NDArray[np.uint8], images: Preprocessing) -> NDArray[np.float32]:
    """Crops uint8[n, h, w, 3] -> float32[n, 3, h, w]: (x / 255 - mean) / std of each colour."""
    std = np.array(images.std)
    scale = (1 / (255 * std)).astype(np.float32)
    shift = (np.array(images.mean) / std).astype(np.float32)
    return np.ascontiguousarray((crops * scale - shift).transpose(0, 3, 1, 2))


def frame_shapes(spec: EncoderSpec) -> tuple[Shapes, Shapes]:
    """Inputs and outputs of the frame model."""
    size = spec.preprocessing.crop.size
    return {"images": ("n", 3, size, size)}, {"features": ("n", spec.feature_size)}


def sequence_shapes(spec: EncoderSpec) -> tuple[Shapes, Shapes]:
    """Inputs and outputs of the sequence model."""
    return {"features": ("b", "t", spec.feature_size), "mask": ("b", "t")}, {"vectors": ("b", spec.d)}


def refuse_other_model(
    source: object, expected: tuple[Shapes, Shapes], found: tuple[Mapping[str, Sequence[Any]], ...]
) -> None:
    """Raise `FileError` where a model has other inputs or outputs. found: as expected; an axis not known is no int."""
    names = tuple(tuple(shapes) for shapes in expected)
    if (other := tuple(tuple(shapes) for shapes in found)) != names:
        raise FileError(f"{source} is the ONNX model of something else: expected {names}, found {other}")
    for shapes, others in zip(expected, found, strict=True):
        for name, shape in shapes.items():
            axes = list(others[name])
            known = [(a, b) for a, b in zip(shape, axes, strict=False) if isinstance(a, int) and isinstance(b, int)]
            # No axes at all is how a shape that could not be inferred is told.
            if axes and (len(axes) != len(shape) or any(a != b for a, b in known)):
                raise FileError(
                    f"{source}: {name} must have the shape {_shown(shape)} of the spec, found {_shown(axes)};"
                    " save the encoder again"
                )


def _shown(shape: Sequence[Any]) -> str:
    return f"[{', '.join(map(str, shape))}]"
