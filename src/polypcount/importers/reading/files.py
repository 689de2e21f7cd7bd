"""Files and folders of unknown origin: errors name them, and links do not lead in circles."""

import json
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from polypcount.errors import FileError, first_line
from polypcount.natural import natural_key
from polypcount.storage import read_text

_DEEPEST_FOLDER = 32


def load_json(path: Path) -> Any:
    """The value in a JSON file. NaN and infinity are accepted: other programs write them where they do no harm.

    Raises:
        FileError: The file is missing, unreadable, too large or not valid JSON.
    """
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise FileError(f"{path} is not valid JSON: {first_line(problem)}") from None


def entries_of(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Entries of a folder, in no order."""
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError as problem:
        raise FileError(f"{folder} cannot be listed: {first_line(problem)}") from None


def list_files(folder: Path, suffixes: Collection[str]) -> list[Path]:
    """Files directly in a folder with one of these suffixes, in natural order; hidden ones are passed over."""
    return _listed(folder, lambda entry: os.path.splitext(entry.name)[1].lower() in suffixes and entry.is_file())


def first_file(folder: Path, suffixes: Collection[str]) -> Path | None:
    """The first of `list_files`, or None. The other files are not looked at, only their names."""
    names = (entry.name for entry in entries_of(folder))
    fitting = [name for name in names if name[0] != "." and os.path.splitext(name)[1].lower() in suffixes]
    return next((folder / name for name in sorted(fitting, key=natural_key) if os.path.isfile(folder / name)), None)


def subfolders(folder: Path) -> list[Path]:
    """Folders directly in a folder, in natural order; hidden ones are passed over."""
    return _listed(folder, lambda entry: entry.is_dir())


def _listed(folder: Path, matches: Callable[[os.DirEntry[str]], bool]) -> list[Path]:
    names = []
    for entry in entries_of(folder):
        try:
            if not entry.name.startswith(".") and matches(entry):
                entry.name.encode()
                names.append(entry.name)
        except OSError as problem:  # a link that leads to itself
            raise FileError(f"{folder / entry.name} cannot be followed: {first_line(problem)}") from None
        except UnicodeEncodeError:
            raise FileError(f"{folder}: the name {entry.name!a} is no valid text; rename it") from None
    return [folder / name for name in sorted(names, key=natural_key)]


def all_folders(folder: Path, above: tuple[Path, ...] = ()) -> Iterator[Path]:
    """The folder and those below it, in natural order. A link that leads back up is an error, not an endless walk."""
    here = folder.resolve()
    if here in above:
        raise FileError(f"{folder} is a link back to a folder that it lies in; remove the link")
    if len(above) > _DEEPEST_FOLDER:
        raise FileError(f"{folder}: folders nested more than {_DEEPEST_FOLDER} deep")
    yield folder
    for below in subfolders(folder):
        yield from all_folders(below, (*above, here))


def files_by_stem(root: Path, suffixes: Collection[str]) -> dict[str, Path]:
    """Files in a folder and below it by their names without extension; two of one name are an error."""
    files: dict[str, Path] = {}
    for folder in all_folders(root):
        for path in list_files(folder, suffixes):
            if (other := files.setdefault(path.stem, path)) != path:
                raise FileError(f"{path} has the same name as {other}; keep one")
    return files
