"""Which format a file or folder of boxes has."""

import re
from pathlib import Path

from polypcount.corpus import is_corpus
from polypcount.errors import FileError, first_line
from polypcount.importers import FORMATS
from polypcount.importers.coco_file import load_json
from polypcount.importers.decimals import decimal
from polypcount.importers.files import list_files, subfolders

_BY_SUFFIX = {".csv": "csv", ".txt": "mot", ".xml": "cvat", ".json": "coco"}
_ONE_FILE = frozenset({".csv", ".json"})  # of formats that have all boxes in one file
_FIRST_BYTES = 1 << 16
_MOT_COLUMNS = (7, 9, 10)
_NO_BOXES = "classes.txt"
_ROOT = re.compile(r"<(annotations?)[\s>/]")


def guess_format(path: Path) -> str:
    """The format of a file or folder of boxes: by what is in it, or by the end of its name where that does not tell."""
    if is_corpus(path):
        return "corpus"
    if not path.exists():
        raise FileError(f"{path} does not exist; a file or folder of boxes was expected")
    place = boxes_file(path)
    found = _of_folder(place) if place.is_dir() else _of_file(place)
    if found is None and place.is_dir() and list_files(place, _ONE_FILE):
        raise FileError(f"{path} holds several files of boxes; give the one that belongs to the recording")
    if found is None:
        able = ", ".join(item.name for item in FORMATS.values() if "video" in item.takes)
        raise FileError(f"{path}: what format these boxes have cannot be told; say it with --format: {able}")
    return found


def boxes_file(path: Path) -> Path:
    """The one .json or .csv file of a folder, as exports have it; otherwise the path itself."""
    if not path.is_dir():
        return path
    found = list_files(path, frozenset(_BY_SUFFIX))
    return found[0] if len(found) == 1 and found[0].suffix.lower() in _ONE_FILE else path


def _of_folder(folder: Path) -> str | None:
    for place in (folder, *subfolders(folder)):
        if any((place / name).is_file() for name in ("gt/gt.txt", "det/det.txt")):
            return "mot"
        if files := list_files(place, frozenset({".xml"})):
            return _of_file(files[0])
        if texts := [file for file in list_files(place, frozenset({".txt"})) if file.name != _NO_BOXES]:
            # A frame without boxes is an empty file.
            filled = next((file for file in texts if file.stat().st_size), None)
            return "mot" if filled is not None and _is_mot(_beginning(filled), among_others=True) else "yolo"
    return None


def _of_file(path: Path) -> str | None:
    text = _beginning(path)
    if text.startswith("["):
        return "coco-results"
    if text.startswith("{"):  # what tells is at the top level, and may stand at the end
        keys = load_json(path).keys()
        return "frames-json" if "frames" in keys and "annotations" not in keys else "coco"
    if root := _ROOT.search(text):
        return "voc" if root[1] == "annotation" else "cvat"
    if "frame" in [name.strip(' "') for name in text.partition("\n")[0].split(",")]:
        return "csv"
    return "mot" if _is_mot(text) else _BY_SUFFIX.get(path.suffix.lower())


def _is_mot(text: str, *, among_others: bool = False) -> bool:
    """Whether a text begins with a line of MOT. among_others: seven numbers without commas may as well be YOLO's."""
    line = text.partition("\n")[0]
    values = line.split(",") if "," in line else line.split()
    known = len(values) in _MOT_COLUMNS and all(decimal(value) is not None for value in values)
    return known and not (among_others and "," not in line and len(values) == _MOT_COLUMNS[0])


def _beginning(path: Path) -> str:
    """The first characters of a file, without white space before them."""
    if not path.is_file():  # reading a pipe would wait for ever
        raise FileError(f"{path} is not a file")
    try:
        with path.open("rb") as file:
            return file.read(_FIRST_BYTES).decode("utf-8-sig", errors="replace").lstrip()
    except OSError as problem:
        raise FileError(f"{path} cannot be read: {first_line(problem)}") from None
