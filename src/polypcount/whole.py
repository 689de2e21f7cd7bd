"""Files that are there whole or not at all."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a name to write to; when the block ends well, that file takes the place of `path`, in one step.

    Folders above it are made. If anything fails, or the process is killed, what was at `path` is still there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}")
    try:
        yield unfinished
        flush(unfinished)
        unfinished.replace(path)
        flush(path.parent)
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """See that file or folder has reached the disk, where the system can say so."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:  # a folder on Windows
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
