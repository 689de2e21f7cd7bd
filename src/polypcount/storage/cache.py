"""Caches of what can be computed again: their folder, and the key of each result."""

import contextlib
import hashlib
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np


def cache_folder() -> Path:
    """The folder for all caches; the environment variable `POLYPCOUNT_CACHE` moves it."""
    if moved := os.environ.get("POLYPCOUNT_CACHE"):
        return Path(moved).expanduser()
    import platformdirs

    return platformdirs.user_cache_path("polypcount", appauthor=False)


def content_key(*parts: Any) -> str:
    """The key of a result in a cache: SHA-256, as hexadecimal text, of everything that decides the result.

    Args:
        parts: JSON values, numpy arrays and bytes, in a fixed order. Begin with the name and version of the result,
            and raise the version whenever the same input is to give another result.
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            if part.dtype.hasobject:
                raise TypeError("an array of Python objects has no fixed bytes; give its values as a list")
            digest.update(f"array {part.dtype.str} {part.shape}\n".encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        elif isinstance(part, bytes):
            digest.update(f"bytes {len(part)}\n".encode())
            digest.update(part)
        else:
            digest.update(f"json {json.dumps(part, sort_keys=True)}\n".encode())
    return digest.hexdigest()


def remove_unused(folder: Path, days: float) -> None:
    """Remove files and folders in a cache that have not been changed for so many days."""
    with contextlib.suppress(OSError):  # the folder is missing, or another process is removing the same
        for entry in folder.iterdir():
            if time.time() - entry.stat().st_mtime > days * 24 * 3600:
                if entry.is_dir():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)
