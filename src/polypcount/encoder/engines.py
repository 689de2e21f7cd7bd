"""What every engine has in common: the two models that it opens, their shapes, and the packages that it needs."""

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polypcount.encoder.spec import EncoderSpec, Preprocessing
from polypcount.errors import DataError, FileError, PolypcountError

ENGINES = ("auto", "onnx", "openvino", "torch")
_REQUIREMENTS = {"openvino": "polypcount[fast]", "torch": "polypcount[train]"}

# Names of inputs or outputs in their order, and the length of each axis; a letter if any length is allowed.
_Shapes = Mapping[str, tuple[int | str, ...]]
ModelShapes = tuple[_Shapes, _Shapes]  # inputs and outputs of a model


class FrameModel(Protocol):
    """The backbone, with the conversion from pixels to numbers."""

    def __call__(self, crops: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Crops uint8[n, size, size, 3], RGB -> features float32[n, f]."""


class SequenceModel(Protocol):
    """The model that turns the frames of a tracklet into one vector."""

    def __call__(self, features: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Features float32[b, t, f], mask bool[b, t] (True: there is a frame) -> vectors float32[b, d]."""


def refuse_unusable(engine: str) -> None:
    """Raise where there is no such engine, or its package is not installed."""
    if engine not in ENGINES:
        raise DataError(f"engine must be one of {', '.join(ENGINES)}, found {engine!r}")
    if engine in _REQUIREMENTS and importlib.util.find_spec(engine) is None:
        raise PolypcountError(
            f"the engine {engine} needs the package {engine}, which is missing: pip install '{_REQUIREMENTS[engine]}'"
        )


def normalised(crops: NDArray[np.uint8], images: Preprocessing) -> NDArray[np.float32]:
    """Crops uint8[n, h, w, 3] -> float32[n, 3, h, w]: (x / 255 - mean) / std of each colour."""
    std = np.array(images.std)
    scale = (1 / (255 * std)).astype(np.float32)
    shift = (np.array(images.mean) / std).astype(np.float32)
    return np.ascontiguousarray((crops * scale - shift).transpose(0, 3, 1, 2))


def frame_shapes(spec: EncoderSpec) -> ModelShapes:
    """Inputs and outputs of the frame model."""
    size = spec.preprocessing.crop.size
    return {"images": ("n", 3, size, size)}, {"features": ("n", spec.feature_size)}


def sequence_shapes(spec: EncoderSpec) -> ModelShapes:
    """Inputs and outputs of the sequence model."""
    return {"features": ("b", "t", spec.feature_size), "mask": ("b", "t")}, {"vectors": ("b", spec.d)}


def refuse_other_model(source: object, expected: ModelShapes, actual: Sequence[Mapping[str, Sequence[Any]]]) -> None:
    """Raise `FileError` where a model has other inputs or outputs.

    Args:
        source: File name of the model, for the message.
        expected: Shapes by the spec.
        actual: Shapes by the model. An axis of unknown length is not an int. A shape without axes is unknown.
    """
    names, actual_names = ([tuple(shapes) for shapes in ends] for ends in (expected, actual))
    if names != actual_names:
        raise FileError(f"{source} is the ONNX model of something else: expected {names}, found {actual_names}")
    for shapes, actual_shapes in zip(expected, actual, strict=True):
        for name, shape in shapes.items():
            axes = list(actual_shapes[name])
            pairs = [pair for pair in zip(shape, axes, strict=False) if all(isinstance(axis, int) for axis in pair)]
            if axes and (len(axes) != len(shape) or any(a != b for a, b in pairs)):
                raise FileError(
                    f"{source}: {name} must have the shape [{', '.join(map(str, shape))}] of the spec, "
                    f"found [{', '.join(map(str, axes))}]; save the encoder again"
                )
