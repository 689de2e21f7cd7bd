"""`encoder.json`, the description of an encoder: what must be in it, and the fingerprint."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from polypcount.encoder.spec import EncoderSpec
from polypcount.errors import FileError

FORMAT = "polypcount-encoder"
FORMAT_VERSION = 1
MANIFEST = "encoder.json"
WEIGHTS, FRAME, SEQUENCE = "encoder.safetensors", "frame.onnx", "sequence.onnx"
MODEL_NAME = re.compile(r"model-[0-9a-f]{8}")
_HASH = re.compile(r"[0-9a-f]{64}")
_LARGEST_JSON_BYTES = 1 << 24


def fingerprint_of(spec: EncoderSpec, weights_hash: str) -> str:
    """SHA-256 over the spec, as JSON with sorted keys, and the SHA-256 of the weights file."""
    text = json.dumps(spec.to_dict(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"polypcount encoder, 1\n{text}\n{weights_hash}\n".encode()).hexdigest()


def read_manifest(folder: Path) -> dict[str, Any]:
    """The description, every entry of the right kind; spec, recipe and metrics are not looked into."""
    path = folder / MANIFEST
    try:
        described = read_json(path, "the description of an encoder", FORMAT, FORMAT_VERSION)
    except (FileNotFoundError, NotADirectoryError):
        what = "does not exist"
        if folder.exists():
            what = f"is not an encoder folder: it has no {MANIFEST}" if folder.is_dir() else "is a file, not a folder"
        if (folder / "run.json").exists():
            raise FileError(
                f"{folder} holds a training that is not finished; go on with "
                f"polypcount train CORPUS --out {folder} --resume"
            ) from None
        raise FileError(f"{folder} {what}; give a folder that polypcount train has written") from None
    _check_entries(path, described)
    return described


def read_json(path: Path, what: str, kind: str, newest: int) -> dict[str, Any]:
    """A JSON object whose `format` is `kind`, of a `format_version` up to `newest`; further entries are not checked.

    what: the file is, for messages. Where there is none, `FileNotFoundError` or `NotADirectoryError` goes through.
    """
    try:
        if path.stat().st_size > _LARGEST_JSON_BYTES:
            raise FileError(f"{path} is too large to be {what}")
        described = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as problem:
        raise FileError(f"{path} cannot be read: {problem.strerror or problem}") from problem
    except (ValueError, RecursionError) as problem:
        raise FileError(f"{path} is not valid JSON: {problem}") from problem
    if not isinstance(described, dict) or described.get("format") != kind:
        raise FileError(f'{path} is not {what}: "format" must be "{kind}"')
    found = described.get("format_version")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise FileError(f"{path}: format_version must be a whole number from 1, found {str(found)[:50]!r}")
    if found > newest:
        raise FileError(f"{path} has format version {found}, this polypcount reads up to {newest}: upgrade polypcount")
    return described


def _check_entries(path: Path, described: dict[str, Any]) -> None:
    files = described.get("files")
    hashes = {name: files.get(name) if isinstance(files, dict) else None for name in (WEIGHTS, FRAME, SEQUENCE)}
    for key, value in {"fingerprint": described.get("fingerprint"), **hashes}.items():
        if not isinstance(value, str) or not _HASH.fullmatch(value):
            raise FileError(f"{path}: the SHA-256 of {key} must be 64 hexadecimal digits, found {str(value)[:50]!r}")
    model = described.get("model")
    if not isinstance(model, str) or not MODEL_NAME.fullmatch(model):
        raise FileError(f"{path}: model must be a name such as model-1a2b3c4d, found {str(model)[:50]!r}")
    for key in ("recipe", "metrics"):
        if not isinstance(described.get(key), dict):
            raise FileError(f"{path}: {key} must be a JSON object, found {str(described.get(key))[:50]!r}")


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number")
