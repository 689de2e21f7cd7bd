"""An encoder that is ready to encode, whatever engine computes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.encoder.engines import FrameModel, SequenceModel
from polypcount.encoder.spec import EncoderSpec
from polypcount.errors import DataError, FileError

_FRAMES_AT_ONCE = 32
# Limits the attention matrices, which hold (t + 1)^2 numbers for each row, head and layer.
_ATTENTION_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Encoder:
    """A trained encoder, ready to encode; `load_encoder` makes it.

    Attributes:
        folder: Where it is kept.
        spec: Its architecture and the images that it expects.
        fingerprint: SHA-256 of its weights and spec, as hexadecimal text; `Embeddings` carry it.
        description: All of `encoder.json`: recipe, metrics, hash of the training data, version of polypcount.
        engine: What computes it: `onnx`, `openvino` or `torch`.
        frame_model: The frame model, opened by that engine.
        sequence_model: The sequence model, opened by that engine.
    """

    folder: Path
    spec: EncoderSpec
    fingerprint: str
    description: Mapping[str, Any] = field(repr=False)
    engine: str
    frame_model: FrameModel = field(repr=False)
    sequence_model: SequenceModel = field(repr=False)

    def encode_frames(self, crops: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Crops uint8[n, size, size, 3], RGB -> features float32[n, f]; normalises as the spec says."""
        size = self.spec.preprocessing.crop.size
        if crops.dtype != np.uint8 or crops.ndim != 4 or crops.shape[1:] != (size, size, 3):
            raise DataError(
                f"crops must be uint8[n, {size}, {size}, 3] for the encoder {self.folder},"
                f" found {crops.dtype}{list(crops.shape)}"
            )
        features = np.empty((len(crops), self.spec.feature_size), np.float32)
        for start in range(0, len(crops), _FRAMES_AT_ONCE):
            part = slice(start, start + _FRAMES_AT_ONCE)
            self._fill(features[part], self.frame_model(crops[part]))
        return features

    def encode_sequences(self, features: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Features float32[b, t, f], mask bool[b, t] (True: there is a frame) -> vectors float32[b, d]."""
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
            self._fill(vectors[part], self.sequence_model(features[part], mask[part]))
        return vectors

    def _fill(self, rows: NDArray[np.float32], output: NDArray[np.float32]) -> None:
        """Copy, checking the shape: not every ONNX file states it, and numpy would repeat a single column silently."""
        if output.shape != rows.shape:
            raise FileError(
                f"{self.folder}: a model gives an array of shape {list(output.shape)}, and the spec asks for "
                f"{list(rows.shape)}; save the encoder again"
            )
        rows[:] = output
