"""An encoder that runs through ONNX Runtime, without torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.encoder.spec import EncoderSpec
from polypcount.errors import DataError, FileError
from polypcount.machine import available_cores

FRAME_NAMES = (("images",), "features")
SEQUENCE_NAMES = (("features", "mask"), "vectors")
_FRAMES_AT_ONCE = 32
# Bounds the attention matrices, which hold (t + 1)^2 numbers for each row, head and layer.
_ATTENTION_AT_ONCE = 1 << 20


def open_session(content: bytes, source: object, names: tuple[tuple[str, ...], str], threads: int | None = None) -> Any:
    """An `onnxruntime.InferenceSession` over a model whose inputs and output have these names."""
    import onnxruntime  # type: ignore[import-untyped, unused-ignore]

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is raised; the library would print it as well
    options.intra_op_num_threads = threads or available_cores()
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as problem:  # its errors share no parent
        raise FileError(f"{source} is damaged or not an ONNX model; save the encoder again") from problem
    found = (tuple(entry.name for entry in session.get_inputs()), session.get_outputs()[0].name)
    if found != names:
        raise FileError(f"{source} is the ONNX model of something else: expected {names}, found {found}")
    return session


@dataclass(frozen=True)
class Encoder:
    """A trained encoder, ready to encode; `load_encoder` makes it.

    Attributes:
        folder: where it is kept.
        spec: its architecture and the images that it expects.
        fingerprint: SHA-256 of its weights and spec, as hexadecimal text; `Embeddings` carry it.
        description: all of `encoder.json`: recipe, metrics, hash of the training data, version of polypcount.
    """

    folder: Path
    spec: EncoderSpec
    fingerprint: str
    description: Mapping[str, Any] = field(repr=False)
    _frame: Any = field(repr=False)
    _sequence: Any = field(repr=False)

    def encode_frames(self, crops: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Crops uint8[n, size, size, 3], red first -> features float32[n, f]; normalises as the spec says."""
        preprocessing = self.spec.preprocessing
        size = preprocessing.crop.size
        if crops.dtype != np.uint8 or crops.ndim != 4 or crops.shape[1:] != (size, size, 3):
            raise DataError(
                f"crops must be uint8[n, {size}, {size}, 3] for the encoder {self.folder},"
                f" found {crops.dtype}{list(crops.shape)}"
            )
        std = np.array(preprocessing.std)
        scale = (1 / (255 * std)).astype(np.float32)
        shift = (np.array(preprocessing.mean) / std).astype(np.float32)
        features = np.empty((len(crops), self.spec.feature_size), np.float32)
        for start in range(0, len(crops), _FRAMES_AT_ONCE):
            part = crops[start : start + _FRAMES_AT_ONCE]
            images = np.ascontiguousarray((part * scale - shift).transpose(0, 3, 1, 2))
            features[start : start + len(part)] = self._frame.run(None, {"images": images})[0]
        return features

    def encode_sequences(self, features: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Features float32[b, t, f], mask bool[b, t] (True: a frame is there) -> vectors float32[b, d]."""
        if features.ndim != 3 or features.shape[2] != self.spec.feature_size or features.dtype.kind != "f":
            raise DataError(
                f"features must be float32[b, t, {self.spec.feature_size}] for the encoder {self.folder},"
                f" found {features.dtype}{list(features.shape)}"
            )
        if mask.dtype != np.bool_ or mask.shape != features.shape[:2]:
            raise DataError(
                f"mask must be bool{list(features.shape[:2])} like the features, found {mask.dtype}{list(mask.shape)}"
            )
        if len(empty := np.flatnonzero(~mask.any(axis=1))):
            raise DataError(f"tracklet {empty[0]} of the batch has no frame; leave out tracklets without frames")
        features = features.astype(np.float32, copy=False)
        if len(odd := np.argwhere(mask & ~np.isfinite(features).all(axis=2))):
            raise DataError(
                f"features of tracklet {odd[0][0]}, frame {odd[0][1]} must be finite, found NaN or infinity"
            )
        vectors = np.empty((len(features), self.spec.d), np.float32)
        rows = max(1, _ATTENTION_AT_ONCE // (mask.shape[1] + 1) ** 2)
        for start in range(0, len(features), rows):
            part = slice(start, start + rows)
            vectors[part] = self._sequence.run(None, {"features": features[part], "mask": mask[part]})[0]
        return vectors
