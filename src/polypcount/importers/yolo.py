"""YOLO text, one file a frame: `class cx cy width height`, then perhaps `score`, then perhaps `id`.

A sixth number above 1, or with `--ids`, is an id without a score, as ultralytics writes tracks by default.

The four numbers are parts of the image's width and height, so the size must be known: from `--size`, from
`seqinfo.ini` in the folder (see `seqinfo.py`), or from the images in `--images`, which have the names of the text
files. The frame is the number at the end of the file name, from 1 (`--first-frame`); a file without lines is a frame
without boxes. All classes are taken for polyps. Ids are polyps, -1 says that there is none; `--ids track` makes them
tracks. `classes.txt` is passed over.

The path is the folder of one video, or a folder of such folders.

`write` gives a folder per video with a file of seven columns, as trackers write them, for each frame that has boxes
(labels to train a detector on have only the first five columns), and `seqinfo.ini` for the size, length and
frame rate of the video and for the names of polyps that are not called `<video>_<n>`. There is one id: in a video
without polyps it is the track, otherwise tracks are lost. So are polyps without boxes. Coordinates come back to within
a thousandth of a pixel.
"""

import dataclasses
from pathlib import Path

import numpy as np

from polypcount.corpus import Corpus
from polypcount.errors import DataError, FileError
from polypcount.importers.decimals import decimal, shortest, whole
from polypcount.importers.files import IMAGE_SUFFIXES, list_files, read_text, subfolders
from polypcount.importers.identities import join, numbers_for_polyps
from polypcount.importers.numbering import last_number
from polypcount.importers.options import Options
from polypcount.importers.pixels import image_size
from polypcount.importers.problems import Problems
from polypcount.importers.rows import Box, Rows, to_xyxy
from polypcount.importers.seqinfo import FILE_NAME, SequenceInfo, read_sequence_info, write_sequence_info
from polypcount.importers.texts import safe_names, shown
from polypcount.importers.videos import check_options, frame_of, name_of
from polypcount.importers.work import Task, Work

_LARGEST_BYTES = 1 << 24
_PASSED_OVER = "classes.txt"
_TRACKS = {"ids": "track"}


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read the text files of one or several videos."""
    if not path.is_dir():
        raise FileError(f"{path}: a folder of text files is expected, found a file")
    here = _weight(path)
    weights = {path: here} if here else {folder: _weight(folder) for folder in subfolders(path)}
    folders = [folder for folder, weight in weights.items() if weight]
    if not folders:
        raise FileError(f"{path} holds no text files, nor folders that do")
    check_options(options, len(folders), path)
    tasks = []
    for folder in folders:
        images = _images_of(folder, options, alone=len(folders) == 1)
        inputs = (folder, *([images] if images else []))
        tasks.append(Task((folder, images, options), inputs, weight=weights[folder]))
    return join(work.read_all(_read_video, tasks), path)


def _weight(folder: Path) -> int:
    """How many files describe a video in a folder; 0 where it holds none."""
    texts = list_files(folder, frozenset({".txt"}))
    return sum(text.name != _PASSED_OVER for text in texts) + (folder / FILE_NAME).is_file()


def _images_of(folder: Path, options: Options, alone: bool) -> Path | None:
    """The folder with the images of a video: the one given, or the one in it of the same name."""
    if options.images is None:
        return None
    for images in (options.images / folder.resolve().name, *([options.images] if alone else [])):
        if images.is_dir():
            return images
    raise FileError(f"{options.images} has no folder {folder.resolve().name} with the images of that video")


def _read_video(folder: Path, images: Path | None, options: Options, problems: Problems) -> Corpus:
    info = read_sequence_info(folder, name_of(folder), problems)
    facts = info.facts.with_options(options)
    first_frame = 1 if options.first_frame is None else options.first_frame
    image_of = {image.stem: image for image in list_files(images, IMAGE_SUFFIXES)} if images else {}
    if image_of and not (facts.width and facts.height):
        width, height = image_size(next(iter(image_of.values())))
        facts = dataclasses.replace(facts, width=width, height=height)
    info = SequenceInfo(facts, info.polyps, info.notes)
    rows = Rows(problems)
    file_at: dict[int, Path] = {}
    for path in list_files(folder, frozenset({".txt"})):
        number = last_number(path.stem)
        if number is None:
            if path.name != _PASSED_OVER:
                problems.bad(path, "a name that ends in the number of the frame is expected")
            continue
        frame = frame_of(path, number, first_frame, facts.frame_count, problems)
        if frame is None:
            continue
        if frame in file_at:
            problems.bad(path, f"frame {number} has a file already, {file_at[frame].name}")
            continue
        file_at[frame] = path
        _read_frame(path, frame, image_of, info, options, rows)
    return _corpus(rows, info, max(file_at, default=-1), images, image_of, options)


def _read_frame(
    path: Path, frame: int, image_of: dict[str, Path], info: SequenceInfo, options: Options, rows: Rows
) -> None:
    """Read one file; a file that is no text, or whose image is not there, is reported as a whole."""
    try:
        lines = read_text(path, _LARGEST_BYTES).split("\n")
        if not any(line.strip() for line in lines):
            return
        size = _size_of(path, image_of, info, options)
    except FileError as problem:
        rows.problems.failed(problem)
        return
    tracks = (options.ids or info.notes.get("ids")) == "track"
    for number, line in enumerate(lines, start=1):
        where = f"{path}:{number}"
        values = _numbers(line, where, options.ids is not None, rows.problems) if line.strip() else None
        if values is not None:
            box, score, identity = values
            polyp = info.polyp(identity) if identity >= 0 and not tracks else None
            rows.add(where, frame, _in_pixels(box, size), score, polyp, identity if tracks else -1)


def _size_of(path: Path, image_of: dict[str, Path], info: SequenceInfo, options: Options) -> tuple[int, int]:
    """Width and height of the image that a file belongs to: those that the user gives, its own, or the video's."""
    if image_of and not (options.width and options.height):
        if path.stem not in image_of:
            raise FileError(f"{path}: an image of this name is expected in the folder of images")
        return image_size(image_of[path.stem])
    if not (info.facts.width and info.facts.height):
        raise FileError(f"{path}: the size of the images is not known; set --size or --images")
    return info.facts.width, info.facts.height


def _numbers(line: str, where: str, has_ids: bool, problems: Problems) -> tuple[Box, float, int] | None:
    """Box as written, score and id of a line.

    has_ids: the user says that there are ids, so a lone sixth number is one.
    """
    texts = line.split()
    numbers = [decimal(text) for text in texts]
    known = [number for number in numbers if number is not None]
    identity: int | None = -1
    score = known[5] if len(known) > 5 else 1.0
    if len(texts) == 7:
        identity = whole(texts[6])
    elif len(texts) == 6 and (has_ids or score > 1) and (lone := whole(texts[5])) is not None:
        identity, score = lone, 1.0
    if not 5 <= len(texts) <= 7 or len(known) < len(texts) or identity is None or score > 1:
        expected = "class cx cy width height, then perhaps a score up to 1 and a whole number as id"
        problems.bad(where, f"{expected} are expected, found {shown(line.strip())}")
        return None
    return (known[1], known[2], known[3], known[4]), score, identity


def _in_pixels(box: Box, size: tuple[int, int]) -> Box:
    (x, y, across, down), (width, height) = box, size
    return to_xyxy((x * width, y * height, across * width, down * height), "cxcywh")


def _corpus(
    rows: Rows, info: SequenceInfo, last: int, images: Path | None, image_of: dict[str, Path], options: Options
) -> Corpus:
    first_frame = 1 if options.first_frame is None else options.first_frame
    name_at: dict[int, str] = {}
    for stem, image in image_of.items():
        number = last_number(stem)
        if number is not None and number >= first_frame and options.source is None:
            name_at.setdefault(number - first_frame, image.name)
    if info.facts.frame_count is not None:
        name_at = {frame: name for frame, name in name_at.items() if frame < info.facts.frame_count}
    made = info.facts.video(options, max([last, *name_at]) + 1, images)
    return rows.to_corpus(made, files=(list(name_at), list(name_at.values())) if name_at else None)


def write(corpus: Corpus, folder: Path) -> None:
    """Write a folder of text files per video."""
    names = safe_names(video.id for video in corpus.videos)
    for row, (video, name) in enumerate(zip(corpus.videos, names, strict=True)):
        boxes = corpus.boxes.take(np.r_[corpus.boxes.of_video(row)])
        if len(boxes) and not (video.width and video.height):
            raise DataError(
                f"video {video.id}: YOLO text needs the width and height of the images, which are not known"
            )
        numbers, named = numbers_for_polyps(corpus, row)
        tracks = not numbers and bool((boxes.track >= 0).any())
        home = folder / name
        home.mkdir()
        write_sequence_info(home, video, named, _TRACKS if tracks else {})
        lines: dict[int, list[str]] = {}
        ids = boxes.track.tolist() if tracks else [numbers.get(polyp, -1) for polyp in boxes.polyp.tolist()]
        sides = boxes.xyxy.astype(np.float64) / np.tile([video.width or 1, video.height or 1], 2)
        middles, lengths = (sides[:, :2] + sides[:, 2:]) / 2, sides[:, 2:] - sides[:, :2]
        written = np.hstack([middles, lengths]).tolist()
        for frame, box, score, identity in zip(boxes.frame.tolist(), written, shortest(boxes.score), ids, strict=True):
            line = " ".join(["0", *map(repr, box), score, str(identity)])
            lines.setdefault(frame, []).append(line)
        for frame, content in lines.items():
            (home / f"{frame + 1:06d}.txt").write_text("\n".join(content) + "\n", encoding="utf-8")
