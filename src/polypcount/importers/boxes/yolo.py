"""YOLO text, one file for each frame: `class cx cy width height`, then perhaps `score`, then perhaps `id`.

A sixth number above 1, or with the option `ids`, is an id without a score, as ultralytics writes tracks by default.

The four numbers are shares of the image's width and height, so the size must be known: from the options, from
`seqinfo.ini` in the folder (see `seqinfo.py`), or from the images in the option `images`, which have the names of the
text files. The frame is the number at the end of the file name, from 1 (option `first_frame`); a file without lines is
a frame without boxes. All classes are taken as polyps. Ids are polyps, -1 means that there is none; with
`ids="track"`, they are tracks. `classes.txt` is ignored.

The path is the folder of one video, or a folder of such folders.

`write` gives a folder for each video. For each frame with boxes it has a file of seven columns, as trackers write them.
(Labels to train a detector on have only the first five columns.) Its `seqinfo.ini` has the size, length and frame rate
of the video, and the names of polyps that are not called `<video>_<n>`. A box has one id: the polyp or, in a video
without polyps, the track. So tracks of videos with polyps are lost, and so are polyps without boxes. Coordinates read
back to within a thousandth of a pixel.
"""

import dataclasses
from pathlib import Path

import numpy as np

from polypcount.corpus import IMAGE_SUFFIXES, Corpus
from polypcount.errors import DataError, FileError
from polypcount.importers.boxes.seqinfo import FILE_NAME, read_sequence_info, write_sequence_info
from polypcount.importers.reading import (
    BoxNumbers,
    BoxRows,
    ImportTask,
    Options,
    Problems,
    Work,
    check_options,
    decimals,
    files_by_frame,
    image_size,
    join,
    last_number,
    list_files,
    numbers_for_polyps,
    safe_names,
    shortest,
    to_xyxy,
    video_folders,
    whole,
)
from polypcount.storage import read_text, shown

_IGNORED = "classes.txt"
_TRACKS = {"ids": "track"}


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read the text files of one or several videos."""
    folders = video_folders(path, lambda folder: len(_texts(folder)) + (folder / FILE_NAME).is_file(), "text")
    check_options(options, len(folders), path)
    tasks = []
    for folder, weight in folders.items():
        images = _images_of(folder, options, alone=len(folders) == 1)
        tasks.append(ImportTask((folder, images, options), (folder, *([images] if images else [])), weight=weight))
    return join(work.read_all(_read_video, tasks), path)


def _texts(folder: Path) -> list[Path]:
    return [text for text in list_files(folder, [".txt"]) if text.name != _IGNORED]


def _images_of(folder: Path, options: Options, alone: bool) -> Path | None:
    """The folder with the images of a video: the given folder, or the folder in it with the video's name."""
    if options.images is None:
        return None
    for images in (options.images / folder.resolve().name, *([options.images] if alone else [])):
        if images.is_dir():
            return images
    raise FileError(f"{options.images} has no folder {folder.resolve().name} with the images of that video")


def _read_video(folder: Path, images: Path | None, options: Options, problems: Problems) -> Corpus:
    info = read_sequence_info(folder, options, problems)
    first_frame = 1 if options.first_frame is None else options.first_frame
    image_of = {image.stem: image for image in list_files(images, IMAGE_SUFFIXES)} if images else {}
    facts = info.facts
    if image_of and not facts.size:
        width, height = image_size(next(iter(image_of.values())))
        facts = dataclasses.replace(facts, width=width, height=height)
    rows = BoxRows(problems)
    files = files_by_frame(_texts(folder), first_frame, facts.frame_count, problems)
    as_tracks = (options.ids or info.notes.get("ids")) == "track"
    for frame, path in files.items():
        try:
            boxes = read_labels(path, problems, has_ids=options.ids is not None)
            size = _size_of(path, image_of, facts.size, options) if boxes else (0, 0)
        except FileError as problem:
            problems.failed(problem)
            continue
        for where, shares, score, identity in boxes:
            polyp = info.polyp(identity) if identity >= 0 and not as_tracks else None
            rows.add(where, frame, in_pixels(shares, size), score, polyp, identity if as_tracks else -1)
    name_at: dict[int, str] = {}
    for stem, image in image_of.items() if options.source is None else ():
        number = last_number(stem)
        frame = -1 if number is None else number - first_frame
        if frame >= 0 and (facts.frame_count is None or frame < facts.frame_count):
            name_at.setdefault(frame, image.name)
    return rows.to_corpus(facts.video(options, max([-1, *files, *name_at]) + 1, images), files=name_at)


def _size_of(path: Path, image_of: dict[str, Path], size: tuple[int, int] | None, options: Options) -> tuple[int, int]:
    """Width and height of the image of a text file: those that the user gives, its own, or those of the video."""
    if image_of and not (options.width and options.height):
        if path.stem not in image_of:
            raise FileError(f"{path}: an image of this name is expected in the folder of images")
        return image_size(image_of[path.stem])
    if size is None:
        raise FileError(f"{path}: the size of the images is not known", mend=("width", "height", "images"))
    return size


def read_labels(path: Path, problems: Problems, has_ids: bool = False) -> list[tuple[str, BoxNumbers, float, int]]:
    """Read one text file; bad lines are reported.

    Args:
        path: The file.
        problems: Where bad lines are reported.
        has_ids: A lone sixth number is an id.

    Returns:
        For each line its position in the file, its box as cx, cy, width and height in shares of the image, its score,
        and its id or -1.
    """
    boxes = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        texts = line.split()
        numbers = decimals(texts)
        identity: int | None = -1
        score = numbers[5] if len(numbers) > 5 else 1.0
        if len(texts) == 7:
            identity = whole(texts[6])
        elif len(texts) == 6 and (has_ids or score > 1) and (lone := whole(texts[5])) is not None:
            identity, score = lone, 1.0
        if 5 <= len(numbers) <= 7 and identity is not None and score <= 1:
            _, x, y, width, height = numbers[:5]
            boxes.append((f"{path}:{number}", (x, y, width, height), score, identity))
        elif texts:
            expected = "class cx cy width height, then perhaps a score up to 1 and a whole number as id"
            problems.bad(f"{path}:{number}", f"{expected} are expected, found {shown(line.strip())}")
    return boxes


def in_pixels(shares: BoxNumbers, size: tuple[int, int]) -> BoxNumbers:
    """Left, top, right, bottom in an image of this width and height, from cx, cy, width, height in shares of it."""
    (x, y, across, down), (width, height) = shares, size
    return to_xyxy((x * width, y * height, across * width, down * height), "cxcywh")


def write(corpus: Corpus, folder: Path) -> None:
    """Write a folder of text files for each video."""
    names = safe_names(video.id for video in corpus.videos)
    for row, (video, name) in enumerate(zip(corpus.videos, names, strict=True)):
        boxes = corpus.boxes.take(np.r_[corpus.boxes.of_video(row)])
        if len(boxes) and not (video.width and video.height):
            raise DataError(
                f"video {video.id}: YOLO text needs the width and height of the images, which are not known"
            )
        numbers, named = numbers_for_polyps(corpus, row)
        tracks = not numbers and bool((boxes.track >= 0).any())
        write_sequence_info(folder / name, video, named, _TRACKS if tracks else {})
        ids = boxes.track.tolist() if tracks else [numbers.get(polyp, -1) for polyp in boxes.polyp.tolist()]
        sides = boxes.xyxy.astype(np.float64) / np.tile([video.width or 1, video.height or 1], 2)
        written = np.hstack([(sides[:, :2] + sides[:, 2:]) / 2, sides[:, 2:] - sides[:, :2]]).tolist()
        lines: dict[int, str] = {}
        for frame, box, score, identity in zip(boxes.frame.tolist(), written, shortest(boxes.score), ids, strict=True):
            lines[frame] = lines.get(frame, "") + " ".join(["0", *map(repr, box), score, str(identity)]) + "\n"
        for frame, text in lines.items():
            (folder / name / f"{frame + 1:06d}.txt").write_text(text, encoding="utf-8")
