"""Files of unknown origin: bounded in size, errors that name them, folders without loops."""

import csv
import os
from collections.abc import Iterator
from pathlib import Path

from polypcount.corpus import IMAGE_SUFFIXES
from polypcount.errors import FileError
from polypcount.natural import natural_key

_LARGEST_TEXT_BYTES = 1 << 31
_DEEPEST_FOLDER = 32

__all__ = [
    "IMAGE_SUFFIXES",
    "all_folders",
    "files_by_stem",
    "list_files",
    "list_folder",
    "names_in",
    "read_bytes",
    "read_table",
    "read_text",
    "subfolders",
]


def read_bytes(path: Path, largest: int = _LARGEST_TEXT_BYTES) -> bytes:
    """The whole file; a `FileError` where it is missing, not a file, not readable, or larger than `largest`."""
    try:
        if path.exists() and not path.is_file():
            raise FileError(f"{path} is not a file")
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except OSError as problem:
        raise FileError(f"{path} cannot be read: {problem.strerror}") from None
    if len(data) > largest:
        raise FileError(f"{path} is larger than the {largest:,} bytes that such a file may have")
    return data


def read_text(path: Path, largest: int = _LARGEST_TEXT_BYTES) -> str:
    """The whole file as UTF-8 text, with or without a byte order mark."""
    try:
        return read_bytes(path, largest).decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise FileError(f"{path} is not UTF-8 text: byte {problem.start} cannot be read") from None


def read_table(path: Path, required: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    """Rows of a CSV file with a header, as (line number, values by column); these columns must be there."""
    try:
        reader = csv.DictReader(read_text(path).splitlines(), strict=True, restval="")
        header = [name.strip() for name in reader.fieldnames or []]
        reader.fieldnames = header
        rows = [(reader.line_num, {k: v.strip() for k, v in row.items() if k is not None}) for row in reader]
    except csv.Error as problem:
        raise FileError(f"{path}: not readable as CSV: {problem}") from None
    if missing := [name for name in required if name not in header]:
        raise FileError(f"{path}:1: the header lacks {', '.join(missing)}; found {', '.join(header) or 'nothing'}")
    return rows


def list_folder(folder: Path) -> list[os.DirEntry[str]]:
    """Entries of a folder in natural order."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: natural_key(entry.name))
    except OSError as problem:
        raise FileError(f"{folder} cannot be listed: {problem.strerror}") from None


def names_in(folder: Path) -> Iterator[str]:
    """Names of a folder's entries as they come, for folders of tens of thousands, where sorting would tell."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                yield entry.name
    except OSError as problem:
        raise FileError(f"{folder} cannot be listed: {problem.strerror}") from None


def list_files(folder: Path, suffixes: frozenset[str]) -> list[Path]:
    """Files directly in a folder with one of these suffixes, in natural order; hidden ones are passed over."""
    return [
        folder / entry.name
        for entry in list_folder(folder)
        if os.path.splitext(entry.name)[1].lower() in suffixes and _is(entry, "file", folder)
    ]


def subfolders(folder: Path) -> list[Path]:
    """Folders directly in a folder, in natural order; hidden ones are passed over."""
    return [folder / entry.name for entry in list_folder(folder) if _is(entry, "folder", folder)]


def _is(entry: os.DirEntry[str], kind: str, folder: Path) -> bool:
    """Whether an entry that is not hidden is a file or a folder; a link that leads to itself is an error."""
    if entry.name.startswith("."):
        return False
    try:
        found = entry.is_dir() if kind == "folder" else entry.is_file()
        entry.name.encode()
    except OSError as problem:
        raise FileError(f"{folder / entry.name} cannot be followed: {problem.strerror}; remove the link") from None
    except UnicodeEncodeError:
        raise FileError(f"{folder}: the name {entry.name!a} is no valid text; rename it") from None
    return found


def all_folders(root: Path) -> Iterator[Path]:
    """The folder and those below it, in natural order. A link that leads back up is an error, not an endless walk."""
    yield from _folders_below(root, ())


def _folders_below(folder: Path, above: tuple[tuple[int, int], ...]) -> Iterator[Path]:
    try:
        stat = folder.stat()
    except OSError as problem:
        raise FileError(f"{folder} cannot be read: {problem.strerror}") from None
    here = (stat.st_dev, stat.st_ino)
    if here in above:
        raise FileError(f"{folder} is a link back to a folder that it lies in; remove the link")
    if len(above) > _DEEPEST_FOLDER:
        raise FileError(f"{folder}: folders nested more than {_DEEPEST_FOLDER} deep")
    yield folder
    for below in subfolders(folder):
        yield from _folders_below(below, (*above, here))


def files_by_stem(root: Path, suffixes: frozenset[str]) -> dict[str, Path]:
    """Files in a folder and below it by their names without extension; two of one name are an error."""
    found: dict[str, Path] = {}
    for folder in all_folders(root):
        for path in list_files(folder, suffixes):
            if path.stem in found:
                raise FileError(f"{path} has the same name as {found[path.stem]}; which one is meant is not clear")
            found[path.stem] = path
    return found
