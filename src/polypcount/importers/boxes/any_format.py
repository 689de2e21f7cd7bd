"""Boxes in any format: detecting the format, and reading the boxes of one recording."""

import dataclasses
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polypcount.corpus import Corpus, FrameFiles, is_corpus
from polypcount.errors import DataError, FileError, first_line
from polypcount.importers.boxes.coco import FRAME_KEYS
from polypcount.importers.reading import (
    Options,
    Problems,
    Work,
    decimals,
    last_number,
    list_files,
    load_json,
    subfolders,
)
from polypcount.importers.registry import FORMATS, read_format
from polypcount.machine import available_cores
from polypcount.storage import check, separator_of

_BY_SUFFIX = {".csv": "csv", ".txt": "mot", ".xml": "cvat", ".json": "coco"}
_ONE_FILE_SUFFIXES = frozenset({".csv", ".json"})
_ONE_FILE_FORMATS = ("coco", "coco-results", "frames-json", "csv")
_BY_NAME = ("coco", "voc", "yolo")  # formats in which the number at the end of a file name is the frame
_FIRST_BYTES = 1 << 16
_MOT_COLUMNS = (7, 9, 10)
_NO_BOXES = "classes.txt"
_ROOT = re.compile(r"<(annotations?)[\s>/]")


def read_boxes(
    path: str | os.PathLike[str],
    boxes_format: str | None = None,
    *,
    width: int | None = None,
    height: int | None = None,
    image_names: Sequence[str] | None = None,
    **settings: object,
) -> Corpus:
    """Read the boxes of a recording. A JSON file is parsed only once.

    Args:
        path: A corpus folder, or a file or folder in one of `FORMATS`. A folder with one .json or .csv file stands for
            that file.
        boxes_format: Name of the format, or "corpus"; None detects it from the content.
        width: Width of the recording's frames in pixels. YOLO needs it; other formats use it if the file has no width.
        height: Height, likewise.
        image_names: File names of the recording's images in frame order, where it is a folder of images; empty for a
            frame without an image. In VOC, YOLO and COCO without frame ids, boxes belong to images by name. They are
            put on the image whose name ends in the same number. This needs names that all end in different numbers, and
            no `first_frame`. In a file of several videos, boxes without such an image come after the last frame.
        settings: Fields of `Options` for the file, such as `first_frame`, `box` and `ids`; None for the default of the
            format.

    Raises:
        FileError: The boxes cannot be read, or their format cannot be detected.
        DataError: There is no such format, it has no use for one of the settings, or a box is for an image that is
            not there.
    """
    target = Path(os.path.abspath(path))
    work = Work(Problems(), available_cores(), cache=False)
    name = boxes_format or guess_format(target, work.load_json)
    plain = {name: str(value) if isinstance(value, os.PathLike) else value for name, value in settings.items()}
    given = {setting: value for setting, value in plain.items() if value is not None}
    if name == "corpus":
        if given:
            raise DataError(f"{target} is a corpus; {min(given)} is a setting for other formats", mend=min(given))
        return Corpus.load(target)
    if name in _ONE_FILE_FORMATS:
        target = boxes_file(target)
    by_number = image_names and "first_frame" not in given and name in _BY_NAME
    frames = _frames_by_number(image_names) if image_names and by_number else None
    size: dict[str, Any] = {"width": width, "height": height}
    defaults = {**({} if frames is None else {"first_frame": 0}), **(size if name == "yolo" else {})}
    options = check(Options, {**defaults, **given}, name)
    try:
        corpus = read_format(name, target, options, work)
    except FileError as problem:
        if "skip_bad" not in problem.mend:
            raise
        others = [setting for setting in problem.mend if setting != "skip_bad"]
        raise FileError(f"{problem} (polypcount import can skip bad entries)", mend=others) from None
    if "width" in FORMATS[name].takes:
        videos = tuple(v if v.width else dataclasses.replace(v, **size) for v in corpus.videos)
        corpus = dataclasses.replace(corpus, videos=videos)
    # The frame ids of a COCO file are used, even if the names of its images have other numbers.
    by_id = name == "coco" and any(key in image for image in work.load_json(target)["images"] for key in FRAME_KEYS)
    return corpus if frames is None or by_id else _on_images(corpus, frames, target)


def _frames_by_number(image_names: Sequence[str]) -> dict[int, int] | None:
    """Frame of each image by the number that its name ends in; None if a name has no number or two have the same."""
    numbers = {frame: last_number(Path(name).stem) for frame, name in enumerate(image_names) if name}
    frames = {number: frame for frame, number in numbers.items() if number is not None}
    return frames if len(frames) == len(numbers) else None


def _on_images(corpus: Corpus, frames: Mapping[int, int], path: Path) -> Corpus:
    """The corpus with frame numbers in place of image numbers."""
    numbers, row = np.unique(corpus.boxes.frame, return_inverse=True)
    missing = [number for number in numbers.tolist() if number not in frames]
    if missing and len(corpus.videos) == 1:
        raise DataError(
            f"{path} has boxes for image number {missing[0]}, and no image of the recording has a name that ends in "
            "it; give the folder that the boxes were drawn on"
        )
    count = max(frames.values(), default=-1) + 1
    frame = np.array([frames.get(number, count + number) for number in numbers.tolist()], np.int32)[row]
    length = max(count, int(frame.max(initial=-1)) + 1)
    return dataclasses.replace(
        corpus,
        videos=tuple(dataclasses.replace(video, frame_count=length) for video in corpus.videos),
        boxes=dataclasses.replace(corpus.boxes, frame=frame),
        files=FrameFiles.empty(),
    )


def guess_format(path: Path, load: Callable[[Path], Any] = load_json) -> str:
    """The format of boxes, detected from the content or, if that is not enough, from the suffix of the name.

    Args:
        path: A file or folder.
        load: Parses a JSON file.
    """
    if is_corpus(path):
        return "corpus"
    if not path.exists():
        raise FileError(f"{path} does not exist; a file or folder of boxes was expected")
    source = boxes_file(path)
    name = _of_folder(source, load) if source.is_dir() else _of_file(source, load)
    if name is None and source.is_dir() and list_files(source, _ONE_FILE_SUFFIXES):
        raise FileError(f"{path} holds several files of boxes; give the one that belongs to the recording")
    if name is None:
        names = ", ".join(item.name for item in FORMATS.values() if "video" in item.takes)
        raise FileError(f"{path}: the format of the boxes is not clear; it can be one of {names}", mend="boxes_format")
    return name


def boxes_file(path: Path) -> Path:
    """The only .json or .csv file of a folder, as in exports; otherwise the path itself."""
    if not path.is_dir():
        return path
    files = list_files(path, frozenset(_BY_SUFFIX))
    return files[0] if len(files) == 1 and files[0].suffix.lower() in _ONE_FILE_SUFFIXES else path


def _of_folder(folder: Path, load: Callable[[Path], Any]) -> str | None:
    for candidate in (folder, *subfolders(folder)):
        if any((candidate / name).is_file() for name in ("gt/gt.txt", "det/det.txt")):
            return "mot"
        if files := list_files(candidate, [".xml"]):
            return _of_file(files[0], load)
        if texts := [file for file in list_files(candidate, [".txt"]) if file.name != _NO_BOXES]:
            # A frame without boxes is an empty file.
            filled = next((file for file in texts if file.stat().st_size), None)
            return "mot" if filled is not None and _is_mot(_beginning(filled), among_others=True) else "yolo"
    return None


def _of_file(path: Path, load: Callable[[Path], Any]) -> str | None:
    text = _beginning(path)
    if text.startswith("["):
        return "coco-results"
    if text.startswith("{"):  # the keys at the top level decide, and may be at the end
        keys = load(path).keys()
        if "annotations" in keys or "images" in keys:
            return "coco"
        return "frames-json" if "frames" in keys else None
    if root := _ROOT.search(text):
        return "voc" if root[1] == "annotation" else "cvat"
    if "frame" in [name.strip(' "\r') for name in text.partition("\n")[0].split(separator_of(text))]:
        return "csv"
    return "mot" if _is_mot(text) else _BY_SUFFIX.get(path.suffix.lower())


def _is_mot(text: str, *, among_others: bool = False) -> bool:
    """Whether a text begins with a line of MOT. among_others: seven numbers without commas may as well be YOLO's."""
    line = text.partition("\n")[0]
    values = line.split(",") if "," in line else line.split()
    has_mot_columns = len(decimals(values)) in _MOT_COLUMNS
    return has_mot_columns and not (among_others and "," not in line and len(values) == _MOT_COLUMNS[0])


def _beginning(path: Path) -> str:
    """The first characters of a file, without white space before them."""
    if not path.is_file():  # reading a pipe would wait for ever
        raise FileError(f"{path} is not a file")
    try:
        with path.open("rb") as file:
            return file.read(_FIRST_BYTES).decode("utf-8-sig", errors="replace").lstrip()
    except OSError as problem:
        raise FileError(f"{path} cannot be read: {first_line(problem)}") from None
