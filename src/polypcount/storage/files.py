"""Files that are there whole or not at all, and JSON files from any source."""

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polypcount.errors import FileError, first_line
from polypcount.storage.leftovers import is_unfinished, unfinished

LARGEST_JSON_BYTES = 1 << 28
LARGEST_TEXT_BYTES = 1 << 30
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def whole_file(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Give a temporary name to write to; when the block ends without an error, that file replaces `path` in one step.

    Missing parent folders are made. If anything fails, or the process is killed, the old file at `path` stays. What a
    killed process has left beside it is removed by the next process that writes to the folder.

    Args:
        path: The file.
        private: Whether only its owner may read it.

    Raises:
        OSError: It cannot be written; `filename` is the path.
    """

    def make(name: Path) -> None:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if private else 0o666))

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished(path, make) as name:
            yield name
            flush(name)
            name.replace(path)
            flush(path.parent)
    except OSError as problem:
        # Libraries name no file, or the temporary one. The block may also fail to read something, which is not renamed.
        name_of_it = problem.filename if isinstance(problem.filename, str) else ""
        if problem.errno in _FULL or is_unfinished(os.path.basename(name_of_it)):
            raise OSError(problem.errno, os.strerror(problem.errno or 0), str(path)) from problem
        raise


def flush(path: Path) -> None:
    """Wait until a file or folder has reached the disk, where the system supports that."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:  # a folder on Windows
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str, *, private: bool = False) -> None:
    """Write a UTF-8 text file, whole. Half characters, as in file names that are not valid text, are escaped.

    Args:
        path: The file.
        text: Its content.
        private: Whether only its owner may read it.
    """
    with whole_file(path, private=private) as name:
        name.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")


def write_json(path: Path, values: Any, indent: int = 1) -> None:
    """Write a JSON file, whole. NaN and infinity are refused: undefined is None."""
    write_text(path, json.dumps(values, indent=indent, allow_nan=False) + "\n")


def read_bytes(path: Path, largest: int = LARGEST_TEXT_BYTES) -> bytes:
    """Read a whole file of at most `largest` bytes.

    Raises:
        FileError: The file is missing, not a regular file, unreadable or too large.
    """
    try:
        if not os.path.isfile(path):
            raise FileError(f"{path} {'is not a file' if os.path.exists(path) else 'does not exist'}")
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except OSError as problem:
        raise FileError(f"{path} cannot be read: {first_line(problem)}") from problem
    if len(data) > largest:
        raise FileError(f"{path} is too large: at most {largest:,} bytes were expected")
    return data


def read_text(path: Path, largest: int = LARGEST_TEXT_BYTES) -> str:
    """Read a UTF-8 text file, with or without a byte order mark, of at most `largest` bytes.

    Raises:
        FileError: As `read_bytes`, or the file is not UTF-8 text.
    """
    try:
        return read_bytes(path, largest).decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise FileError(f"{path} is not UTF-8 text: byte {problem.start} cannot be read") from None


def read_json(path: Path, largest: int = LARGEST_JSON_BYTES) -> Any:
    """Read a JSON file of at most `largest` bytes.

    Raises:
        FileError: As `read_bytes`, or the file is not valid JSON (NaN and infinity are not).
    """
    return parse_json(read_bytes(path, largest), str(path))


def parse_json(text: str | bytes, where: str) -> Any:
    """Parse JSON text; an error begins with `where`, such as a file name.

    Raises:
        FileError: The text is not valid JSON (NaN and infinity are not).
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as problem:
        raise FileError(f"{where} is not valid JSON: {problem}") from problem


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number")
