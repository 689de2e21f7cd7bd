"""An encoder on disk: a folder with `encoder.json`, which names the folder of model files that counts.

    encoder.json       format, version, spec, recipe, training data hash, metrics, fingerprint, hashes of the files
    model-1a2b3c4d/    encoder.safetensors  frame.onnx (images -> features)  sequence.onnx (features, mask -> vectors)

Where encoder.safetensors is left out to save space, as in the bundled encoder, every engine but torch still runs it;
its hash is part of the fingerprint all the same.

Saving writes a new model folder beside the old one and then renames one new `encoder.json` over the old. A process
killed before that leaves the old encoder, after it the new one. Other files in the folder are left alone.
"""

import contextlib
import hashlib
import json
import secrets
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polypcount.encoder import engine_onnx, engine_openvino
from polypcount.encoder.engines import FrameModel, SequenceModel, refuse_unusable
from polypcount.encoder.manifest import (
    FORMAT,
    FORMAT_VERSION,
    FRAME,
    MANIFEST,
    MODEL_NAME,
    SEQUENCE,
    WEIGHTS,
    fingerprint_of,
    read_manifest,
)
from polypcount.encoder.runtime import Encoder
from polypcount.encoder.spec import EncoderSpec
from polypcount.errors import DataError, FileError
from polypcount.version import __version__
from polypcount.whole import flush

if TYPE_CHECKING:
    from polypcount.encoder.model import TrackletEncoder

_WRITING_SECONDS, _FINISHING_SECONDS = 3600, 60


def save_encoder(
    encoder: "TrackletEncoder",
    folder: str | Path,
    *,
    recipe: Mapping[str, Any] | None = None,
    data_hash: str | None = None,
    metrics: Mapping[str, Any] | None = None,
) -> Path:
    """Write the encoder, with both ONNX models checked against torch; returns the folder.

    Args:
        encoder: what to save; it stays as it is.
        folder: new, or with an encoder in it, which is replaced.
        recipe: how it was trained, as JSON.
        data_hash: content hash of the corpus that it was trained on.
        metrics: what it reached, as JSON; None for what is undefined.
    """
    import safetensors.torch

    from polypcount.encoder.export import export_encoder

    folder = Path(folder)
    refuse_unsuitable(folder)
    described = {"recipe": dict(recipe or {}), "metrics": dict(metrics or {}), "data_hash": data_hash}
    _refuse_other_than_json(described)
    frame, sequence = export_encoder(encoder)
    tensors = {name: values.detach().cpu().contiguous() for name, values in encoder.state_dict().items()}
    files = {WEIGHTS: safetensors.torch.save(tensors), FRAME: frame, SEQUENCE: sequence}
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "fingerprint": fingerprint_of(encoder.spec, hashes[WEIGHTS]),
        "spec": encoder.spec.to_dict(),
        **described,
        "polypcount_version": __version__,
        "files": hashes,
    }
    write_folder(folder, manifest, files)
    return folder


def load_encoder(folder: str | Path | None = None, *, threads: int | None = None, engine: str = "onnx") -> Encoder:
    """Read an encoder to run.

    Args:
        folder: that `save_encoder` has written; the encoder that comes with polypcount, if not given.
        threads: for each call; all available cores if not given, with torch those that it is set to.
        engine: `onnx` (ONNX Runtime, on CUDA where it has that), `torch` (likewise), `openvino` (processor, fp32), or
            `openvino-int8` (processor; the frame model in 8 bits, calibrated by `embed`). Only `torch` needs torch.
    """
    refuse_unusable(engine)
    if folder is None:
        from polypcount.encoder.bundle import bundled_folder

        folder = bundled_folder()
    folder = Path(folder)
    described, spec, files = read_folder(folder, (WEIGHTS,)) if engine == "torch" else read_onnx(folder)
    frames, sequences = _models(folder, described, spec, files, threads, engine)
    return Encoder(folder, spec, described["fingerprint"], described, engine, frames, sequences)


def load_torch(folder: str | Path) -> "TrackletEncoder":
    """Read an encoder as a torch module, in evaluation mode, to train it further or to run it on a GPU."""
    folder = Path(folder)
    described, spec, files = read_folder(folder, (WEIGHTS,))
    return _torch_module(folder, described, spec, files[WEIGHTS])


def _models(
    folder: Path,
    described: dict[str, Any],
    spec: EncoderSpec,
    files: Mapping[str, bytes],
    threads: int | None,
    engine: str,
) -> tuple[FrameModel, SequenceModel]:
    home = folder / described["model"]
    if engine == "torch":
        from polypcount.encoder.engine_torch import open_torch

        return open_torch(_torch_module(folder, described, spec, files[WEIGHTS]), threads)
    opening = engine_onnx if engine == "onnx" else engine_openvino
    return (
        opening.open_frames(files[FRAME], home / FRAME, spec, threads),
        opening.open_sequences(files[SEQUENCE], home / SEQUENCE, spec, threads),
    )


def _torch_module(folder: Path, described: dict[str, Any], spec: EncoderSpec, weights: bytes) -> "TrackletEncoder":
    import safetensors
    import safetensors.torch
    import torch

    from polypcount.encoder.model import TrackletEncoder
    from polypcount.encoder.weights import fit_weights

    path = folder / described["model"] / WEIGHTS
    try:
        tensors = safetensors.torch.load(weights)
        _refuse_other_sizes(spec, tensors)
        with torch.random.fork_rng(devices=[]):  # the random weights, overwritten below, cost the caller no numbers
            encoder = TrackletEncoder(spec)
    except safetensors.SafetensorError as problem:
        raise FileError(f"{path} is damaged or not a safetensors file: {problem}") from problem
    except DataError as problem:
        raise FileError(f"{folder / MANIFEST}: {problem}") from problem
    fit_weights(encoder, tensors, path)
    return encoder.eval()


def refuse_unsuitable(folder: Path) -> None:
    """Raise `FileError` where an encoder must not be saved: on a file, or over an `encoder.json` that is not ours."""
    if folder.is_symlink() and not folder.exists():
        raise FileError(f"{folder} is a link to nowhere; choose a new folder")
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file; an encoder is saved to a folder")
    if (folder / MANIFEST).exists():
        try:
            read_manifest(folder)
        except FileError as problem:
            raise FileError(f"{problem}; it is not replaced, choose a new folder") from None


def write_folder(folder: Path, manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """Write model files and the description that names them, whole or not at all; an encoder there is replaced."""
    name = f"model-{secrets.token_hex(4)}"
    unfinished = folder / f".{name}"
    replaced = _model_named_by(folder)
    try:
        unfinished.mkdir(parents=True)
        content = json.dumps({**manifest, "model": name}, indent=2, allow_nan=False).encode() + b"\n"
        for file_name, data in {**files, MANIFEST: content}.items():
            (unfinished / file_name).write_bytes(data)
            flush(unfinished / file_name)
        flush(unfinished)
        unfinished.rename(folder / name)
        (folder / name / MANIFEST).replace(folder / MANIFEST)
        flush(folder)
    except BaseException as problem:
        shutil.rmtree(unfinished, ignore_errors=True)
        if _model_named_by(folder) != name:
            shutil.rmtree(folder / name, ignore_errors=True)
        if isinstance(problem, OSError):
            raise FileError(f"{folder}: the encoder could not be saved: {problem.strerror or problem}") from problem
        raise
    _remove_leftovers(folder, current=name, replaced=replaced)


def read_onnx(folder: Path) -> tuple[dict[str, Any], EncoderSpec, dict[str, bytes]]:
    """As `read_folder`, both ONNX models, and the weights where they are there, so that they are checked too."""
    return read_folder(folder, (FRAME, SEQUENCE), where_there=(WEIGHTS,))


def read_folder(
    folder: Path, names: tuple[str, ...], *, where_there: tuple[str, ...] = ()
) -> tuple[dict[str, Any], EncoderSpec, dict[str, bytes]]:
    """The description, the spec in it, and these model files, which must have the recorded hashes."""
    while True:
        described = read_manifest(folder)
        try:
            return described, *_read_files(folder, described, names, where_there)
        except FileError:
            # Another process may have saved while we read, and removed the model that we had been told of.
            if _model_named_by(folder) in (None, described["model"]):
                raise


def _read_files(
    folder: Path, described: dict[str, Any], names: tuple[str, ...], where_there: tuple[str, ...]
) -> tuple[EncoderSpec, dict[str, bytes]]:
    try:
        spec = EncoderSpec.from_dict(described["spec"])
    except DataError as problem:
        raise FileError(f"{folder / MANIFEST}: {problem}") from None
    files = {}
    for name in (*names, *where_there):
        path = folder / described["model"] / name
        try:
            files[name] = path.read_bytes()
        except FileNotFoundError:
            if name in where_there:
                continue
            raise FileError(_missing(path)) from None
        except OSError as problem:
            raise FileError(f"{path} cannot be read: {problem.strerror or problem}") from problem
        if hashlib.sha256(files[name]).hexdigest() != described["files"][name]:
            raise FileError(
                f"{path} was changed after saving: its SHA-256 is not the recorded one; copy the folder again"
            )
    if fingerprint_of(spec, described["files"][WEIGHTS]) != described["fingerprint"]:
        raise FileError(f"{folder / MANIFEST} was changed after saving: spec and weights do not give its fingerprint")
    return spec, files


def _missing(path: Path) -> str:
    if path.name == WEIGHTS and path.with_name(FRAME).exists():
        return (
            f"{path} is missing: this encoder has no torch weights, so it cannot be trained further, "
            "and runs with the engines onnx, openvino and openvino-int8"
        )
    return f"{path} is missing: the encoder is not complete; copy the whole folder again"


def _refuse_other_than_json(described: Mapping[str, Any]) -> None:
    for key, value in described.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as problem:
            raise DataError(f"{key} of an encoder must be plain JSON, None for what is undefined: {problem}") from None


def _refuse_other_sizes(spec: EncoderSpec, tensors: Mapping[str, Any]) -> None:
    """Raise `DataError` where the weights have other sizes than the spec, before memory is taken for the latter."""
    expected = {"sequence.project.weight": [spec.d, spec.feature_size]}
    if spec.pooling == "cls":
        expected |= {f"sequence.transformer.layers.{i}.linear1.weight": [spec.ff, spec.d] for i in range(spec.layers)}
    for name, shape in expected.items():
        if name not in tensors or list(tensors[name].shape) != shape:
            found = list(tensors[name].shape) if name in tensors else "none"
            raise DataError(f"the spec asks for weights {name} of shape {shape}, found {found}")


def _model_named_by(folder: Path) -> str | None:
    try:
        return str(read_manifest(folder)["model"])
    except FileError:
        return None


def _remove_leftovers(folder: Path, current: str, replaced: str | None) -> None:
    """Remove the model just replaced, and what a killed save left; a save at work right now is left alone."""
    with contextlib.suppress(OSError):  # another save may be tidying up too
        for entry in folder.iterdir():
            name = entry.name.removeprefix(".")
            if not MODEL_NAME.fullmatch(name) or name == current:
                continue
            # A save that is writing has a hidden folder; it shows the folder only for the moment before it is done.
            patience = _WRITING_SECONDS if entry.name.startswith(".") else _FINISHING_SECONDS
            if name == replaced or time.time() - entry.stat().st_mtime > patience:
                shutil.rmtree(entry, ignore_errors=True)
