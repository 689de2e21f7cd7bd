"""What is kept: files named after all that they were made from, so that what is there need not be made again."""

import hashlib
import json
from pathlib import Path
from typing import Any

from polypcount.errors import FileError
from polypcount.whole import whole_file

FORMAT_VERSION = 1  # another one where the same settings are to give other results


def key_of(*about: Any) -> str:
    """SHA-256 over JSON values."""
    return hashlib.sha256(json.dumps([FORMAT_VERSION, *about], sort_keys=True).encode()).hexdigest()


def place_of(folder: Path, name: str, seed: int | None, key: str) -> Path:
    """A path for what has this key, without a suffix. seed: None for what does not depend on it."""
    return folder / "-".join([name, *([] if seed is None else [str(seed)]), key[:8]])


def write_text(path: Path, text: str) -> None:
    """A text file, whole."""
    with whole_file(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, values: Any) -> None:
    """A JSON file, whole."""
    write_text(path, json.dumps(values, indent=1, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """What `write_json` has written."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        raise FileError(f"{path} cannot be read ({problem}); remove it, and it is made again") from None
