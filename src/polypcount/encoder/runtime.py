"""An encoder that is ready to encode, whatever engine computes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.encoder.engines import INT8, Calibration, FrameModel, SequenceModel
from polypcount.encoder.spec import EncoderSpec
from polypcount.errors import DataError, FileError

_FRAMES_AT_ONCE = 32
# Bounds the attention matrices, which hold (t + 1)^2 numbers for each row, head and layer.
_ATTENTION_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Encoder:
    """A trained encoder, ready to encode; `load_encoder` makes it.

    Attributes:
        folder: where it is kept.
        spec: its architecture and the images that it expects.
        fingerprint: SHA-256 of its weights and spec, as hexadecimal text; `Embeddings` carry it.
        description: all of `encoder.json`: recipe, metrics, hash of the training data, version of polypcount.
        engine: what computes it, one of `ENGINES`.
        frame_model: of that engine; in fp32 as long as int8 is not calibrated.
        sequence_model: of that engine.
        calibration: what int8 costs; None before it is calibrated, and with other engines.
    """

    folder: Path
    spec: EncoderSpec
    fingerprint: str
    description: Mapping[str, Any] = field(repr=False)
    engine: str
    frame_model: FrameModel = field(repr=False)
    sequence_model: SequenceModel = field(repr=False)
    calibration: Calibration | None = None

    @property
    def needs_calibration(self) -> bool:
        """Whether frames cannot be encoded before int8 is calibrated, as `embed` does."""
        return self.engine == INT8 and self.calibration is None

    def encode_frames(self, crops: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Crops uint8[n, size, size, 3], red first -> features float32[n, f]; normalises as the spec says."""
        size = self.spec.preprocessing.crop.size
        if crops.dtype != np.uint8 or crops.ndim != 4 or crops.shape[1:] != (size, size, 3):
            raise DataError(
                f"crops must be uint8[n, {size}, {size}, 3] for the encoder {self.folder},"
                f" found {crops.dtype}{list(crops.shape)}"
            )
        if self.needs_calibration:
            raise DataError(f"the engine {INT8} is calibrated with crops before it encodes them; embed does that")
        features = np.empty((len(crops), self.spec.feature_size), np.float32)
        for start in range(0, len(crops), _FRAMES_AT_ONCE):
            part = crops[start : start + _FRAMES_AT_ONCE]
            features[start : start + len(part)] = self._of_shape(
                self.frame_model(part), (len(part), self.spec.feature_size)
            )
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
            found = self.sequence_model(features[part], mask[part])
            vectors[part] = self._of_shape(found, vectors[part].shape)
        return vectors

    def _of_shape(self, found: NDArray[np.float32], shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Not every ONNX file tells the shape that it will give; numpy would repeat a single column silently."""
        if found.shape != shape:
            raise FileError(
                f"{self.folder}: a model gives an array of shape {list(found.shape)}, and the spec asks for "
                f"{list(shape)}; save the encoder again"
            )
        return found
