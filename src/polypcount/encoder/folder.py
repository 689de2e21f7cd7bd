"""An encoder on disk: a folder with `encoder.json`, which names the current folder of model files.

    encoder.json       format, version, spec, recipe, training data hash, metrics, fingerprint, hashes of the files
    model-1a2b3c4d/    encoder.safetensors  frame.onnx (images -> features)  sequence.onnx (features, mask -> vectors)

encoder.safetensors may be left out to save space, as in the bundled encoder. Then every engine except torch can run it.
The hash of this file is part of the fingerprint in any case.
"""

import hashlib
import importlib.util
import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polypcount.encoder import engine_onnx, engine_openvino
from polypcount.encoder.engines import refuse_unusable
from polypcount.encoder.manifest import (
    FOLDER,
    FRAME,
    MANIFEST,
    SEQUENCE,
    WEIGHTS,
    EncoderManifest,
    fingerprint_of,
)
from polypcount.encoder.runtime import Encoder
from polypcount.encoder.spec import EncoderSpec
from polypcount.errors import DataError, FileError, first_line
from polypcount.storage import read_bytes
from polypcount.version import __version__

if TYPE_CHECKING:
    from polypcount.encoder.model import TrackletEncoder

_log = logging.getLogger(__name__)
_TOLERANCE = 1e-4
_LARGEST_FILE = 1 << 31  # the limit of the ONNX format


@dataclass(frozen=True)
class StoredEncoder:
    """What is read from an encoder folder.

    Attributes:
        home: The folder of its model files.
        manifest: All of `encoder.json`.
        spec: The checked spec.
        files: Content of model files by name, each with the recorded hash.
    """

    home: Path
    manifest: EncoderManifest
    spec: EncoderSpec
    files: Mapping[str, bytes]


def save_encoder(
    encoder: "TrackletEncoder",
    folder: str | Path,
    *,
    recipe: Mapping[str, Any] | None = None,
    data_hash: str | None = None,
    metrics: Mapping[str, Any] | None = None,
) -> Path:
    """Write the encoder, with both ONNX models checked against torch.

    Args:
        encoder: What to save; it stays as it is.
        folder: New, or with an encoder in it, which is replaced.
        recipe: How it was trained, as JSON.
        data_hash: Content hash of the corpus that it was trained on.
        metrics: What it reached, as JSON; None for what is undefined.

    Returns:
        The folder.
    """
    import safetensors.torch

    from polypcount.encoder.export import export_encoder

    folder = Path(folder)
    FOLDER.refuse_unsuitable(folder)
    origin = {"recipe": dict(recipe or {}), "metrics": dict(metrics or {}), "data_hash": data_hash}
    try:
        json.dumps(origin, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as problem:
        raise DataError(f"recipe and metrics must be plain JSON, None for what is undefined: {problem}") from None
    frame, sequence = export_encoder(encoder)
    tensors = {name: values.detach().cpu().contiguous() for name, values in encoder.state_dict().items()}
    files = {WEIGHTS: safetensors.torch.save(tensors), FRAME: frame, SEQUENCE: sequence}
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    spec = encoder.spec.model_dump(mode="json")
    fingerprint = fingerprint_of(spec, hashes[WEIGHTS])
    values = {"fingerprint": fingerprint, "spec": spec, **origin, "polypcount_version": __version__, "files": hashes}
    write_folder(folder, values, files)
    return folder


def load_encoder(folder: str | Path | None = None, *, threads: int | None = None, engine: str = "auto") -> Encoder:
    """Read an encoder to run.

    Args:
        folder: A folder that `save_encoder` has written; by default the bundled encoder.
        threads: For each call; by default all available cores, with torch as many as it is set to.
        engine: `onnx` (ONNX Runtime, on CUDA where it has that), `openvino` (on the processor), `torch` (on CUDA where
            it has that; the only one that needs torch), or `auto`: the engine in the environment variable
            `POLYPCOUNT_ENGINE`. If it is not set: OpenVINO where it is installed and gives the same vectors as ONNX
            Runtime, otherwise ONNX Runtime.
    """
    if engine == "auto":
        engine = os.environ.get("POLYPCOUNT_ENGINE", engine)
    refuse_unusable(engine)
    if folder is None:
        from polypcount.encoder.bundle import bundled_folder

        folder = bundled_folder()
    folder = Path(folder)
    stored = _read(folder, (WEIGHTS,)) if engine == "torch" else read_onnx(folder)

    def opened(name: str) -> Encoder:
        if name == "torch":
            from polypcount.encoder.engine_torch import open_torch

            frames, sequences = open_torch(_torch_module(stored), threads)
        else:
            room = engine_openvino if name == "openvino" else engine_onnx
            frames = room.open_frames(stored.files[FRAME], stored.home / FRAME, stored.spec, threads)
            sequences = room.open_sequences(stored.files[SEQUENCE], stored.home / SEQUENCE, stored.spec, threads)
        described = stored.manifest.model_dump()
        return Encoder(folder, stored.spec, stored.manifest.fingerprint, described, name, frames, sequences)

    return _best(opened) if engine == "auto" else opened(engine)


def load_torch(folder: str | Path) -> "TrackletEncoder":
    """Read an encoder as a torch module, in evaluation mode, to train it further or to run it on a GPU."""
    return _torch_module(_read(Path(folder), (WEIGHTS,)))


def read_onnx(folder: Path) -> StoredEncoder:
    """Both ONNX models of an encoder, and its weights if the folder has them, so that they are checked too."""
    return _read(folder, (FRAME, SEQUENCE), optional=(WEIGHTS,))


def write_folder(folder: Path, values: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """Write model files and the manifest, whole or not at all; an encoder that is there is replaced."""

    def fill(home: Path) -> None:
        for name, content in files.items():
            (home / name).write_bytes(content)

    FOLDER.write(folder, fill, values)


def _best(opened: Callable[[str], Encoder]) -> Encoder:
    """The encoder with OpenVINO where that can be trusted, otherwise with ONNX Runtime."""
    onnx = opened("onnx")
    if importlib.util.find_spec("openvino") is None or len(engine_onnx.best_providers()) > 1:  # a GPU is faster
        return onnx
    expected = _trial(onnx)  # first, since ONNX Runtime limits the memory of a model that asks for too much
    try:
        openvino = opened("openvino")
        difference = float(np.abs(_trial(openvino) - expected).max())
    except Exception as problem:  # OpenVINO raises errors of many kinds for an operation that it does not have
        _log.info("ONNX Runtime is used, since OpenVINO fails: %s", first_line(problem))
        return onnx
    if difference <= _TOLERANCE:
        return openvino
    _log.info("ONNX Runtime is used, since the vectors of OpenVINO differ by %.1e", difference)
    return onnx


def _trial(encoder: Encoder) -> NDArray[np.float32]:
    """Vectors of a tracklet of two crops of noise, and of its first crop alone; always the same crops."""
    size = encoder.spec.preprocessing.crop.size
    crops = np.random.default_rng(0).integers(0, 256, (2, size, size, 3), np.uint8)
    features = np.stack([encoder.encode_frames(crops)] * 2)
    return encoder.encode_sequences(features, np.array([[True, True], [True, False]]))


def _read(folder: Path, names: tuple[str, ...], optional: tuple[str, ...] = ()) -> StoredEncoder:
    """The manifest, the spec in it, and these model files, which must have the recorded hashes."""
    if (folder / "run.json").exists() and not (folder / MANIFEST).exists():
        raise FileError(f"{folder} holds a training that is not finished; go on with polypcount train")

    def load(manifest: EncoderManifest, home: Path) -> StoredEncoder:
        try:
            spec = EncoderSpec(**manifest.spec)
        except DataError as problem:
            raise FileError(f"{folder / MANIFEST}: {first_line(problem)}") from None
        present = [name for name in (*names, *optional) if name in names or (home / name).exists()]
        files = {name: _content(home / name, manifest.files[name]) for name in present}
        if fingerprint_of(manifest.spec, manifest.files[WEIGHTS]) != manifest.fingerprint:
            raise FileError(f"{folder / MANIFEST} was changed after saving: its fingerprint is not that of its spec")
        return StoredEncoder(home, manifest, spec, files)

    return FOLDER.read(folder, load)


def _content(path: Path, sha256: str) -> bytes:
    if not path.exists():
        what = "the encoder is not complete; copy the whole folder again"
        if path.name == WEIGHTS and path.with_name(FRAME).exists():
            raise FileError(
                f"{path.parent} has no torch weights: this encoder runs with the engines onnx and openvino, and "
                "cannot be trained further",
                mend="engine",
            )
        raise FileError(f"{path} is missing: {what}")
    content = read_bytes(path, _LARGEST_FILE)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise FileError(f"{path} was changed after saving: its SHA-256 is not the recorded one; copy the folder again")
    return content


def _torch_module(stored: StoredEncoder) -> "TrackletEncoder":
    import safetensors.torch
    import torch

    from polypcount.encoder.model import TrackletEncoder
    from polypcount.encoder.weights import fit_weights

    path = stored.home / WEIGHTS
    try:
        tensors = safetensors.torch.load(stored.files[WEIGHTS])
    except Exception as problem:  # beside its own error, the library raises others for odd types and sizes
        raise FileError(f"{path} is damaged or not a safetensors file: {first_line(problem)}") from problem
    try:
        _refuse_other_sizes(stored.spec, tensors)
        with torch.random.fork_rng(devices=[]):  # building the encoder must not change the caller's random state
            encoder = TrackletEncoder(stored.spec)
    except DataError as problem:
        raise FileError(f"{path}: {problem}") from problem
    fit_weights(encoder, tensors, path)
    return encoder.eval()


def _refuse_other_sizes(spec: EncoderSpec, tensors: Mapping[str, Any]) -> None:
    """Raise `DataError` where the weights have other sizes than the spec, before memory is allocated."""
    expected = {"sequence.project.weight": [spec.d, spec.feature_size]}
    if spec.pooling == "cls":
        expected |= {f"sequence.transformer.layers.{i}.linear1.weight": [spec.ff, spec.d] for i in range(spec.layers)}
    for name, shape in expected.items():
        actual = list(tensors[name].shape) if name in tensors else "none"
        if actual != shape:
            raise DataError(f"the spec asks for weights {name} of shape {shape}, found {actual}")
