"""`encoder.json`, the description of an encoder: its schema, and the fingerprint."""

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from polypcount.storage import Manifest, VersionedFolder

MANIFEST = "encoder.json"
WEIGHTS, FRAME, SEQUENCE = "encoder.safetensors", "frame.onnx", "sequence.onnx"
_Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class EncoderManifest(Manifest):
    """All of `encoder.json`.

    Attributes:
        fingerprint: See `fingerprint_of`.
        spec: An `EncoderSpec` as JSON, exactly as saved, since the fingerprint is over this text.
        recipe: How the encoder was trained.
        metrics: What it reached.
        data_hash: Content hash of the corpus that it was trained on.
        polypcount_version: What wrote it.
        files: SHA-256 of each model file.
        model: Name of the folder of model files.
    """

    FORMAT: ClassVar[str] = "polypcount-encoder"
    KIND: ClassVar[str] = "the description of an encoder"

    fingerprint: _Sha256
    spec: dict[str, Any]
    recipe: dict[str, Any]
    metrics: dict[str, Any]
    data_hash: str | None = None
    polypcount_version: str = ""
    files: dict[str, _Sha256]
    model: str

    @field_validator("files")
    @classmethod
    def _complete(cls, files: dict[str, str]) -> dict[str, str]:
        if set(files) != {WEIGHTS, FRAME, SEQUENCE}:
            raise ValueError(f"the hashes of {WEIGHTS}, {FRAME} and {SEQUENCE} are needed, found those of {[*files]}")
        return files


FOLDER = VersionedFolder("encoder", EncoderManifest, MANIFEST, "model")


def fingerprint_of(spec: Mapping[str, Any], weights_hash: str) -> str:
    """SHA-256 over the spec, as JSON with sorted keys, and the SHA-256 of the weights file."""
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"polypcount encoder, 1\n{text}\n{weights_hash}\n".encode()).hexdigest()
