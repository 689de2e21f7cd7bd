"""Files and folders that are being written: their hidden names, and what killed processes have left under such names.

A process holds a lock on what it writes. The system ends the lock with the process, however that ends. So what has the
name of something unfinished, and no lock, was left by a process that was killed.
"""

import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from polypcount.errors import FileError, first_line

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_NAME = re.compile(r"\..*\.[0-9a-f]{8}\.unfinished", re.DOTALL)
_OLD_SECONDS = 24 * 3600  # where the disk has no locks, what is older than this is nobody's
_looked_at: set[str] = set()  # folders whose leftovers this process has removed


@contextlib.contextmanager
def unfinished(path: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    """Give a hidden name beside `path` to write to; what is left there after the block is removed.

    Args:
        path: What it will become.
        make: Makes the empty file or folder of the given name.
    """
    here = os.path.abspath(path.parent)
    if here not in _looked_at:  # once is enough, and a folder may get a hundred thousand files
        _looked_at.add(here)
        remove_leftovers(path.parent)
    while True:
        name = path.with_name(f".{path.name[:50]}.{secrets.token_hex(4)}.unfinished")
        make(name)
        with _held(name) as is_there:
            if is_there:
                try:
                    yield name
                finally:
                    remove(name)
                return


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes have left in a folder; a folder that was being replaced gets its name back."""
    with contextlib.suppress(OSError):  # it is missing, or not ours to read
        for name in [entry.name for entry in os.scandir(folder) if is_unfinished(entry.name)]:
            with abandoned(folder / name) as is_abandoned:
                if is_abandoned:
                    put_back(folder / name, folder)
                    remove(folder / name)


def is_unfinished(name: str) -> bool:
    """Whether a file name is that of something unfinished."""
    return _NAME.fullmatch(name) is not None


def put_back(unfinished_folder: Path, folder: Path) -> None:
    """Give folders that were moved aside, and not replaced, their names back."""
    for aside in sorted(unfinished_folder.glob("old-*/*"), reverse=True):
        if not os.path.lexists(folder / aside.name):
            with contextlib.suppress(OSError):
                aside.rename(folder / aside.name)


def remove(path: Path) -> None:
    """Remove a file or a folder with all its content, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _held(path: Path) -> Iterator[bool]:
    """Lock a new file or folder, where the disk has locks. False if another process took it for a leftover before."""
    if fcntl is None:
        yield True
        return
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        yield False
        return
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield path.exists()
    finally:
        os.close(handle)


@contextlib.contextmanager
def abandoned(path: Path) -> Iterator[bool]:
    """Whether no process writes a file or folder. Nobody can begin to while the block lasts."""
    try:
        handle = None if fcntl is None else os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        yield False
        return
    try:
        yield _is_free(handle, path)
    finally:
        if handle is not None:
            os.close(handle)


def _is_free(handle: int | None, path: Path) -> bool:
    try:
        if handle is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except BlockingIOError:
        return False
    except OSError:  # a shared disk without locks
        pass
    with contextlib.suppress(OSError):
        return time.time() - path.stat().st_mtime > _OLD_SECONDS
    return False


@contextlib.contextmanager
def only_writer(folder: Path, doing: str, lock: str = "") -> Iterator[None]:
    """Keep other processes from doing the same in a folder at the same time. The lock ends with the process.

    Args:
        folder: Made if it is missing, and removed again if it is still empty after the block.
        doing: What is done there, for the message: "training".
        lock: A file in the folder to lock; by default the folder itself, which some shared disks cannot lock.

    Raises:
        FileError: Another process is at work there, or the folder cannot be made.
    """
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = None if fcntl is None else os.open(folder / lock, os.O_RDWR | os.O_CREAT if lock else os.O_RDONLY)
    except OSError as problem:
        raise FileError(f"{folder} cannot be written: {first_line(problem)}") from None
    try:
        if handle is not None:
            with contextlib.suppress(OSError):  # a shared disk without locks
                _lock_for(doing, handle, folder)
        yield
    finally:
        if handle is not None:
            os.close(handle)
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()


def _lock_for(doing: str, handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FileError(f"{folder}: another process is {doing} there; wait for it, or stop it") from None
