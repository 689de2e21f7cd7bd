"""MOTChallenge text: ground truth, output of a tracker, or detections.

A line is `frame,id,x,y,width,height,...`, with frames from 1 (`--first-frame`). Boxes are in pixels and taken as they
stand: like TrackEval and CVAT, and unlike motmetrics, we do not take 1 off x and y.

- A file called gt.txt, or one of 9 columns with 0 or 1 in the 7th and none below 0 in the 9th: ground truth; the 7th
  number says whether the row counts (rows with 0 are left out, with a remark), and ids are polyps.
- 7, 9 or 10 columns otherwise: the 7th number is the score, an id from 0 is a track, -1 says that there is none.

`--ids` overrides what ids are. The path is a text file, a sequence folder (`gt/gt.txt`, or else `det/det.txt`, with
`seqinfo.ini`, see `seqinfo.py`), or a folder of such sequences or text files.

`write` gives a sequence folder per video. Boxes with a polyp go to `gt/gt.txt`, which has no place for scores and
tracks; those without one go to `det/det.txt` with both, and `seqinfo.ini` notes that the two files are one whole. A
polyp called `<video>_<n>` has the number n; names of others are listed in `seqinfo.ini`. Polyps without boxes are lost.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Corpus
from polypcount.errors import FileError
from polypcount.importers.decimals import decimal, extents, shortest, whole
from polypcount.importers.files import list_files, read_text, subfolders
from polypcount.importers.identities import join, numbers_for_polyps
from polypcount.importers.options import Options
from polypcount.importers.problems import Problems
from polypcount.importers.rows import Box, Rows, to_xyxy
from polypcount.importers.seqinfo import FILE_NAME, SequenceInfo, read_sequence_info, write_sequence_info
from polypcount.importers.texts import safe_names, shown
from polypcount.importers.videos import check_options, frame_of, name_of
from polypcount.importers.work import Task, Work

_GROUND_TRUTH, _DETECTIONS = "gt/gt.txt", "det/det.txt"
_BOTH_FILES = "gt det"
_GROUND_TRUTH_COLUMNS = 9
_COLUMNS = (7, _GROUND_TRUTH_COLUMNS, 10)
_LARGEST_BYTES = 1 << 30


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read text files of one or several videos."""
    videos = _videos(path)
    check_options(options, len(videos), path)
    tasks = [
        Task((folder, files, options), (*files, folder / FILE_NAME), weight=1 + _size(files) // 50_000)
        for folder, files in videos
    ]
    return join(work.read_all(_read_sequence, tasks), path)


def _videos(path: Path) -> list[tuple[Path, tuple[Path, ...]]]:
    """Folder and text files of each video; where the text file is all there is, the folder is the file."""
    if path.is_file():
        sequence = path.resolve().parent.parent
        inside = path.name in ("gt.txt", "det.txt") and (sequence / FILE_NAME).is_file()
        return [(sequence if inside else path, (path,))]
    if _is_sequence(path):
        return [(path, _files_of(path))]
    found = [(folder, _files_of(folder)) for folder in subfolders(path) if _is_sequence(folder)]
    found += [(file, (file,)) for file in list_files(path, frozenset({".txt"}))]
    if not found:
        raise FileError(f"{path} holds neither {_GROUND_TRUTH} nor {_DETECTIONS}, nor sequences that do")
    return found


def _is_sequence(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (_GROUND_TRUTH, _DETECTIONS, FILE_NAME))


def _files_of(folder: Path) -> tuple[Path, ...]:
    return tuple(folder / name for name in (_GROUND_TRUTH, _DETECTIONS) if (folder / name).is_file())


def _size(files: Sequence[Path]) -> int:
    return sum(file.stat().st_size for file in files)


def _read_sequence(folder: Path, files: tuple[Path, ...], options: Options, problems: Problems) -> Corpus:
    info = read_sequence_info(folder, name_of(folder), problems)
    info = SequenceInfo(info.facts.with_options(options), info.polyps, info.notes)
    if len(files) == 2 and info.notes.get("boxes") != _BOTH_FILES:
        problems.remark(f"video {info.facts.id}: {files[1]} is not read, since there is ground truth")
        files = files[:1]
    rows = Rows(problems)
    for file in files:
        _read_file(file, info, options, rows)
    return rows.to_corpus(info.facts.video(options, rows.last_frame() + 1))


def _read_file(path: Path, info: SequenceInfo, options: Options, rows: Rows) -> None:
    first_frame = 1 if options.first_frame is None else options.first_frame
    ignored = 0
    lines = read_text(path, _LARGEST_BYTES).split("\n")
    is_truth = path.name == "gt.txt" or _looks_like_truth(lines)
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
        ids = options.ids or ("polyp" if is_truth else "track")
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


def _numbers(line: str, where: str, problems: Problems) -> tuple[int, int, Box, float] | None:
    """Frame number, id, box and 7th number of a line."""
    texts = _texts(line)
    if len(texts) not in _COLUMNS:
        problems.bad(where, f"7, 9 or 10 numbers with commas between are expected, found {shown(line.strip())}")
        return None
    frame, identity = whole(texts[0]), whole(texts[1])
    others = [decimal(text) for text in texts[2:7]]
    known = [number for number in others if number is not None]
    if frame is None or identity is None or len(known) < 5:
        problems.bad(where, f"whole numbers for frame and id, then numbers are expected, found {shown(line.strip())}")
        return None
    return frame, identity, (known[0], known[1], known[2], known[3]), known[4]


def write(corpus: Corpus, folder: Path) -> None:
    """Write a sequence folder per video."""
    for row, (video, name) in enumerate(zip(corpus.videos, safe_names(v.id for v in corpus.videos), strict=True)):
        numbers, named = numbers_for_polyps(corpus, row)
        here = np.r_[corpus.boxes.of_video(row)]
        known = corpus.boxes.polyp[here] >= 0
        truth, rest = here[known], here[~known]
        sequence = folder / name
        (sequence / "gt").mkdir(parents=True)
        ids = [numbers[polyp] for polyp in corpus.boxes.polyp[truth].tolist()]
        _write_lines(sequence / _GROUND_TRUTH, corpus, truth, ids, ["1,1,1"] * len(truth))
        if len(rest):
            (sequence / "det").mkdir()
            endings = [f"{score},-1,-1,-1" for score in shortest(corpus.boxes.score[rest])]
            _write_lines(sequence / _DETECTIONS, corpus, rest, corpus.boxes.track[rest].tolist(), endings)
        write_sequence_info(sequence, video, named, {"boxes": _BOTH_FILES} if len(rest) else {})


def _write_lines(path: Path, corpus: Corpus, rows: NDArray[np.int64], ids: list[int], endings: list[str]) -> None:
    boxes = corpus.boxes.take(rows)
    left, width = extents(boxes.xyxy[:, 0], boxes.xyxy[:, 2])
    top, height = extents(boxes.xyxy[:, 1], boxes.xyxy[:, 3])
    sides = np.column_stack([left, top, width, height]).tolist()
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for frame, identity, box, ending in zip(boxes.frame.tolist(), ids, sides, endings, strict=True):
            numbers = ",".join(repr(side).removesuffix(".0") for side in box)
            file.write(f"{frame + 1},{identity},{numbers},{ending}\n")
