"""MOTChallenge text: ground truth, output of a tracker, or detections.

A line is `frame,id,x,y,width,height,...`, with frames from 1 (option `first_frame`). Boxes are in pixels and taken as
they are: like TrackEval and CVAT, and unlike motmetrics, we do not subtract 1 from x and y.

- A file called gt.txt, or one of 9 columns with 0 or 1 in the 7th and none below 0 in the 9th: ground truth. The 7th
  number says whether the row counts (rows with 0 are left out, with a remark), and ids are polyps.
- 7, 9 or 10 columns otherwise: the 7th number is the score, an id from 0 is a track, -1 means that there is none.

The option `ids` overrides what ids are. The path is a text file, a sequence folder (`gt/gt.txt`, or else `det/det.txt`,
with `seqinfo.ini`, see `seqinfo.py`), or a folder of such sequences or text files.

`write` gives a sequence folder for each video. Boxes with a polyp go to `gt/gt.txt`, which has no place for scores and
tracks. Those without one go to `det/det.txt` with both, and `seqinfo.ini` notes that the two files belong together. A
polyp called `<video>_<n>` has the number n; names of others are listed in `seqinfo.ini`. Polyps without boxes are lost.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from polypcount.corpus import Boxes, Corpus
from polypcount.errors import FileError
from polypcount.importers.boxes.seqinfo import FILE_NAME, SequenceInfo, read_sequence_info, write_sequence_info
from polypcount.importers.reading import (
    BoxNumbers,
    BoxRows,
    ImportTask,
    Options,
    Problems,
    Work,
    check_options,
    corners_and_sides,
    decimal,
    decimals,
    frame_of,
    join,
    list_files,
    numbers_for_polyps,
    safe_names,
    shortest,
    subfolders,
    to_xyxy,
    whole,
)
from polypcount.storage import read_text, shown, write_text

_GROUND_TRUTH, _DETECTIONS = "gt/gt.txt", "det/det.txt"
_BOTH_FILES = "gt det"
_GROUND_TRUTH_COLUMNS = 9
_COLUMNS = (7, _GROUND_TRUTH_COLUMNS, 10)


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read text files of one or several videos."""
    videos = _videos(path)
    check_options(options, len(videos), path)
    tasks = []
    for folder, files in videos:
        weight = 1 + sum(file.stat().st_size for file in files) // 50_000
        tasks.append(ImportTask((folder, files, options), (*files, folder / FILE_NAME), weight=weight))
    return join(work.read_all(_read_sequence, tasks), path)


def _videos(path: Path) -> list[tuple[Path, tuple[Path, ...]]]:
    """Folder and text files of each video; for a single text file, the folder is the file itself."""
    if path.is_file():
        sequence = path.resolve().parent.parent
        inside = path.name in ("gt.txt", "det.txt") and (sequence / FILE_NAME).is_file()
        return [(sequence if inside else path, (path,))]
    if _is_sequence(path):
        return [(path, _files_of(path))]
    videos = [(folder, _files_of(folder)) for folder in subfolders(path) if _is_sequence(folder)]
    videos += [(file, (file,)) for file in list_files(path, [".txt"])]
    if not videos:
        raise FileError(f"{path} holds neither {_GROUND_TRUTH} nor {_DETECTIONS}, nor sequences that do")
    return videos


def _files_of(folder: Path) -> tuple[Path, ...]:
    return tuple(folder / name for name in (_GROUND_TRUTH, _DETECTIONS) if (folder / name).is_file())


def _is_sequence(folder: Path) -> bool:
    return bool(_files_of(folder)) or (folder / FILE_NAME).is_file()


def _read_sequence(folder: Path, files: tuple[Path, ...], options: Options, problems: Problems) -> Corpus:
    info = read_sequence_info(folder, options, problems)
    if len(files) == 2 and info.notes.get("boxes") != _BOTH_FILES:
        problems.remark(f"video {info.facts.id}: {files[1]} is not read, since there is ground truth")
        files = files[:1]
    rows = BoxRows(problems)
    for file in files:
        _read_file(file, info, options, rows)
    return rows.to_corpus(info.facts.video(options, rows.last_frame() + 1))


def _read_file(path: Path, info: SequenceInfo, options: Options, rows: BoxRows) -> None:
    first_frame = 1 if options.first_frame is None else options.first_frame
    ignored = 0
    lines = read_text(path).split("\n")
    is_truth = path.name == "gt.txt" or _looks_like_truth(lines)
    ids = options.ids or ("polyp" if is_truth else "track")
    for number, line in enumerate(lines, start=1):
        where = f"{path}:{number}"
        values = _numbers(line, where, rows.problems) if line.strip() else None
        if values is None:
            continue
        frame_number, identity, box, seventh = values
        frame = frame_of(where, frame_number, first_frame, info.facts.frame_count, rows.problems)
        if frame is None:
            continue
        if is_truth and seventh == 0:
            ignored += 1
            continue
        polyp = info.polyp(identity) if ids == "polyp" and identity >= 0 else None
        track = identity if ids == "track" else -1
        rows.add(where, frame, to_xyxy(box, options.box or "xywh"), 1.0 if is_truth else seventh, polyp, track)
    if ignored:
        rows.problems.remark(f"{path}: {ignored:,} rows are left out, since their 7th number says not to count them")


def _looks_like_truth(lines: Sequence[str]) -> bool:
    """Whether every line has 9 columns, of which the 7th is a flag and the 9th a visibility.

    Some trackers write 9 columns too: a score in the 7th, and -1 in the last.
    """
    rows = [_texts(line) for line in lines if line.strip()]
    return bool(rows) and all(
        len(row) == _GROUND_TRUTH_COLUMNS and decimal(row[6]) in (0, 1) and (decimal(row[8]) or 0) >= 0 for row in rows
    )


def _texts(line: str) -> list[str]:
    return line.split(",") if "," in line else line.split()


def _numbers(line: str, where: str, problems: Problems) -> tuple[int, int, BoxNumbers, float] | None:
    """Frame number, id, box and 7th number of a line."""
    texts = _texts(line)
    frame, identity = [whole(text) for text in texts[:2]] if len(texts) in _COLUMNS else (None, None)
    numbers = decimals(texts[2:7])
    if frame is None or identity is None or not numbers:
        expected = "7, 9 or 10 numbers with commas between, whole numbers for frame and id"
        problems.bad(where, f"{expected} are expected, found {shown(line.strip())}")
        return None
    x, y, width, height, seventh = numbers
    return frame, identity, (x, y, width, height), seventh


def write(corpus: Corpus, folder: Path) -> None:
    """Write a sequence folder for each video."""
    for row, (video, name) in enumerate(zip(corpus.videos, safe_names(v.id for v in corpus.videos), strict=True)):
        numbers, named = numbers_for_polyps(corpus, row)
        boxes = corpus.boxes.take(np.r_[corpus.boxes.of_video(row)])
        truth, rest = boxes.take(boxes.polyp >= 0), boxes.take(boxes.polyp < 0)
        ids = [numbers[polyp] for polyp in truth.polyp.tolist()]
        _write_lines(folder / name / _GROUND_TRUTH, truth, ids, ["1,1,1"] * len(truth))
        if len(rest):
            endings = [f"{score},-1,-1,-1" for score in shortest(rest.score)]
            _write_lines(folder / name / _DETECTIONS, rest, rest.track.tolist(), endings)
        write_sequence_info(folder / name, video, named, {"boxes": _BOTH_FILES} if len(rest) else {})


def _write_lines(path: Path, boxes: Boxes, ids: Sequence[int], endings: Sequence[str]) -> None:
    lines = []
    for row in zip(boxes.frame.tolist(), ids, corners_and_sides(boxes.xyxy), endings, strict=True):
        frame, identity, box, ending = row
        numbers = ",".join(repr(side).removesuffix(".0") for side in box)
        lines.append(f"{frame + 1},{identity},{numbers},{ending}\n")
    write_text(path, "".join(lines))
