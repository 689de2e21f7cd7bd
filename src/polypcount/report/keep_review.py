"""What people decided about a count outlives a new count of the same recording."""

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from polypcount.errors import FileError, first_line
from polypcount.report.review_file import CORRECTED, DECISIONS

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_OF_DECISIONS = frozenset(f"{DECISIONS}{suffix}" for suffix in ("", "-wal", "-shm", "-journal"))


def is_of_review(name: str) -> bool:
    """Whether a file, by its path in the folder of a report, was written by a review."""
    return name in _OF_DECISIONS or name.startswith(f"{CORRECTED}/")


@contextlib.contextmanager
def held(folder: Path, *, alone: bool) -> Iterator[None]:
    """Keep a folder from being replaced while the block lasts.

    Decisions are files beside each other, and SQLite opens each by its path: half of them must not be those of a folder
    that has been moved away.

    Args:
        folder: Folder of a report.
        alone: Whether nobody else may hold it meanwhile, as whoever replaces it needs; waits for that.

    Raises:
        OSError: It is not there.
    """
    if fcntl is None:
        yield
        return
    while True:
        handle = os.open(folder, os.O_RDONLY)
        try:
            with contextlib.suppress(OSError):  # a shared disk without locks
                fcntl.flock(handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            if os.path.samestat(os.fstat(handle), folder.stat()):  # otherwise it was replaced while this waited
                yield
                return
        finally:
            os.close(handle)


@contextlib.contextmanager
def review_kept(folder: Path) -> Iterator[Callable[[Path], None]]:
    """Give a function that copies what a review wrote in a folder to another folder.

    Inside the block nobody else can decide: whoever tries waits, and then finds the folder that has replaced it.

    Raises:
        FileError: The decisions cannot be read.
    """

    def copy(new: Path) -> None:
        if (folder / DECISIONS).is_file():
            _copy_decisions(folder / DECISIONS, new / DECISIONS)
        if (folder / CORRECTED).is_dir():
            shutil.copytree(folder / CORRECTED, new / CORRECTED)

    with held(folder, alone=True) if folder.is_dir() else contextlib.nullcontext():
        yield copy


def _copy_decisions(path: Path, new: Path) -> None:
    try:
        with contextlib.closing(sqlite3.connect(path)) as source, contextlib.closing(sqlite3.connect(new)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode = WAL")
    except sqlite3.Error as problem:
        raise FileError(f"{path} cannot be read: {first_line(problem)}; the report is not replaced") from None
    new.chmod(0o600)
