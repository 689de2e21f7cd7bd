"""SUN: 100 polyps, each in its own case, and 13 negative cases.

    <positives>/case1/<long name>.jpg    <positives>/annotation_txt/case1.txt
    <negatives>/case1/<long name>.jpg

A line of a text file is `<file name> xmin,ymin,xmax,ymax,class`, class 0 for a polyp. File names such as
`..._001-1_a10_ayy_image0001.jpg` tell the order by three numbers: before the `-`, after `_a`, and after `_image`. Image
numbers begin anew in each clip, that is for each new pair of the first two.
"""

import re
from pathlib import Path

from polypcount.corpus import IMAGE_SUFFIXES, Corpus, Video, concatenate
from polypcount.errors import FileError
from polypcount.importers.reading import (
    BoxNumbers,
    BoxRows,
    ImportTask,
    Options,
    Problems,
    Work,
    all_folders,
    decimals,
    first_file,
    image_size,
    list_files,
)
from polypcount.storage import read_text

_CASE = re.compile(r"case\d+")
_ORDER = re.compile(r"(\d{1,9})-[^-]*?_a(\d{1,9})[^-]*?_image(\d{1,9})$")
_FPS = 30.0


def read(path: Path, options: Options, work: Work) -> Corpus:  # noqa: ARG001
    """Read every case below the folder; cases with a file in `annotation_txt` are positive, others negative.

    The polyp of a positive case has the case's name. Frames are numbered in time order, with one number left free
    where a new clip begins, so that no tracklet spans two clips.
    """
    texts: dict[str, Path] = {}
    cases: list[Path] = []
    for folder in all_folders(path):
        if _CASE.fullmatch(folder.name):
            cases.append(folder)
        elif folder.name == "annotation_txt":
            for text in list_files(folder, [".txt"]):
                if _CASE.fullmatch(text.stem) and (other := texts.setdefault(text.stem, text)) != text:
                    raise FileError(f"{text} and {other} are for the same case; keep one")
    tasks = []
    for name, text in texts.items():
        images = _images_of(text, [case for case in cases if case.name == name])
        if images:
            cases.remove(images)
        tasks.append(_task(name, images, text, 500))
    tasks += [_task(images.name, images, None, 8000) for images in cases]
    if not tasks:
        raise FileError(f"{path} has no case folders such as case1, nor an annotation_txt folder")
    return concatenate(work.read_all(_read_case, tasks))


def _task(name: str, images: Path | None, text: Path | None, weight: int) -> ImportTask:
    """The task of one case: it reads the text, the names of the images, and the size of the first one."""
    first = first_file(images, IMAGE_SUFFIXES) if images else None
    inputs = tuple(file for file in (text, first) if file)
    return ImportTask((name, images, text), inputs, (images,) if images else (), weight)


def _images_of(text: Path, folders: list[Path]) -> Path | None:
    """The image folder of a text file: the one beside `annotation_txt`, or another that has its images.

    Parts of the download are sometimes unpacked side by side, and negative cases have the same names.
    """
    beside = text.parent.parent / text.stem
    if beside in folders:
        return beside
    named = next((line.strip().rpartition(" ")[0] for line in read_text(text).splitlines() if line.strip()), "")
    holding = [folder for folder in folders if named and "/" not in named and (folder / named).is_file()]
    return holding[0] if len(holding) == 1 else None


def _read_case(case: str, images: Path | None, text: Path | None, problems: Problems) -> Corpus:
    """Read one case; `images` or `text` may be missing."""
    name = f"sun-{case}" if text else f"sun-negative-{case}"
    pictures = {picture.name: picture for picture in list_files(images, IMAGE_SUFFIXES)} if images else {}
    size = image_size(next(iter(pictures.values()))) if pictures else None
    lines = _lines(text, problems) if text else {}
    keys: dict[str, tuple[int, ...]] = {}
    for file in {**pictures, **lines}:
        if match := _ORDER.search(Path(file).stem):
            keys[file] = tuple(map(int, match.groups()))
        else:
            path = pictures.get(file, text)
            problems.bad(f"{path}", f"the file name must end like 001-1_a10_ayy_image0001, found {file!r}")
    frame_of = _numbered(keys)
    rows = BoxRows(problems, clamp=size)
    for file, (line, box, kind) in lines.items():
        where = f"{text}:{line}"
        if pictures and file not in pictures:
            problems.bad(where, f"there is no image {file} in {images}")
        elif file in frame_of and kind == 0:
            rows.add(where, frame_of[file], box, polyp=name)
    if text and len(pictures) > len(lines):
        problems.remark(f"video {name}: {len(lines):,} lines for {len(pictures):,} images")
    if others := sum(kind not in (0, 1) for _, _, kind in lines.values()):
        problems.remark(f"video {name}: {others:,} boxes of unknown classes are left out")
    width, height = size or (None, None)
    video = Video(
        id=name,
        frame_count=max(frame_of.values(), default=-1) + 1,
        fps=_FPS,
        width=width,
        height=height,
        source=str(images) if images else None,
        dataset="sun",
    )
    return rows.to_corpus(video, files={frame: file for file, frame in frame_of.items() if file in pictures})


def _numbered(keys: dict[str, tuple[int, ...]]) -> dict[str, int]:
    """Frame of each file in time order; a new clip leaves one number free."""
    frame_of: dict[str, int] = {}
    frame, clip = -1, None
    for file in sorted(keys, key=lambda file: (keys[file], file)):
        frame += 1 if clip in (None, keys[file][:2]) else 2
        clip = keys[file][:2]
        frame_of[file] = frame
    return frame_of


def _lines(path: Path, problems: Problems) -> dict[str, tuple[int, BoxNumbers, int]]:
    """Line number, box and class by file name."""
    lines: dict[str, tuple[int, BoxNumbers, int]] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        file, _, values = line.strip().rpartition(" ")
        numbers = decimals(values.split(","))
        if not line.strip():
            continue
        if len(numbers) != 5:
            problems.bad(
                f"{path}:{number}", f"'<file name> xmin,ymin,xmax,ymax,class' is expected, found {line[:80]!r}"
            )
        elif not file or file in lines:
            problems.bad(f"{path}:{number}", f"each image must be named once, found {file!r}")
        else:
            x1, y1, x2, y2, kind = numbers
            lines[file] = (number, (x1, y1, x2, y2), int(kind))
    return lines
