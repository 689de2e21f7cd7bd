"""Boxes in CSV, with a header.

    video,frame,x1,y1,x2,y2,score,polyp,track

- frame, x1, y1, x2, y2 are required: the frame's number, from 0 (`--first-frame`), and the box in pixels. With
  `--box`, the four columns hold the four numbers of that convention.
- video: id of the video; without the column all rows are one video, named by `--video` or by the file.
- score: confidence; 1 where empty.
- polyp: id of the polyp; empty where it is not known. In a file with a video column it is kept as it is, unless
  several videos have it; in one without, a mere number n becomes `<video>_<n>`.
- track: number that a tracker gave, from 0; empty or -1 where there is none.

Columns may come in any order; other columns are refused.

`write` gives one `boxes.csv` with all columns, whose numbers read back exactly. CSV cannot carry videos and polyps
without boxes, nor sizes, frame rates and lengths of videos.
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from polypcount.corpus import Corpus
from polypcount.errors import DataError, FileError
from polypcount.importers.decimals import decimal, shortest, whole
from polypcount.importers.files import read_text
from polypcount.importers.identities import join, number_or_text, polyp_name
from polypcount.importers.options import Options
from polypcount.importers.problems import Problems
from polypcount.importers.rows import Rows, to_xyxy
from polypcount.importers.texts import quoted, shown, unquoted, usable
from polypcount.importers.videos import VideoFacts, check_options, frame_of, name_of
from polypcount.importers.work import Work

_REQUIRED = ("frame", "x1", "y1", "x2", "y2")
_COLUMNS = ("video", *_REQUIRED, "score", "polyp", "track")
_LARGEST_BYTES = 1 << 30


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read a CSV file; the module says what its columns are."""
    problems = work.problems
    rows: dict[str, Rows] = {}
    name = options.video or name_of(path)
    has_videos = False
    for where, values in _lines(path, problems):
        has_videos = "video" in values
        if has_videos and options.video is not None:
            raise DataError(f"--video is for files without video names; {path} has a column video")
        video = unquoted(values["video"]) if values.get("video") else name
        if usable(video) is None:
            problems.bad(where, f"a text that can be the id of a video is expected, found {shown(video)}")
        else:
            _add(where, values, video, options, rows.setdefault(video, Rows(problems)))
    if not rows and not has_videos:
        rows[name] = Rows(problems)
    check_options(options, len(rows), path)
    facts = (VideoFacts(video).with_options(options) for video in rows)
    videos = [fact.video(options, found.last_frame() + 1) for fact, found in zip(facts, rows.values(), strict=True)]
    return join([found.to_corpus(video) for video, found in zip(videos, rows.values(), strict=True)], path)


def _lines(path: Path, problems: Problems) -> Iterator[tuple[str, dict[str, str]]]:
    """Place and values by column of each line below the header."""
    reader = csv.reader(io.StringIO(read_text(path, _LARGEST_BYTES), newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(header, path)
        for texts in reader:
            where = f"{path}:{reader.line_num}"
            if len(texts) == len(header):
                yield where, {name: text.strip() for name, text in zip(header, texts, strict=True)}
            elif texts:
                problems.bad(where, f"{len(header)} values are expected, as in the header, found {len(texts)}")
    except csv.Error as problem:
        raise FileError(f"{path}:{reader.line_num}: not readable as CSV: {problem}") from None


def _check_header(header: list[str], path: Path) -> None:
    known = ",".join(_COLUMNS)
    if missing := [name for name in _REQUIRED if name not in header]:
        raise FileError(f"{path}:1: the header lacks {', '.join(missing)}; known columns are {known}")
    if unknown := [name for name in header if name not in _COLUMNS]:
        raise FileError(f"{path}:1: there is no column {shown(unknown[0])}; known columns are {known}")
    if len(set(header)) < len(header):
        raise FileError(f"{path}:1: the header names a column twice: {','.join(header)}")


def _add(where: str, values: dict[str, str], video: str, options: Options, rows: Rows) -> None:
    number, track = whole(values["frame"]), whole(values.get("track") or "-1")
    numbers = [decimal(values[name]) for name in _REQUIRED[1:]] + [decimal(values.get("score") or "1")]
    known = [value for value in numbers if value is not None]
    if number is None or track is None or len(known) < 5:
        told = ",".join(values.values())
        rows.problems.bad(where, f"whole numbers for frame and track, numbers for box and score, found {shown(told)}")
        return
    polyp = unquoted(values["polyp"]) if values.get("polyp") else None
    if polyp is not None:
        if usable(polyp) is None:
            rows.problems.bad(where, f"a text that can be the id of a polyp is expected, found {shown(polyp)}")
            return
        polyp = polyp_name(polyp if "video" in values else number_or_text(polyp), video)
    frame = frame_of(where, number, options.first_frame or 0, options.frame_count, rows.problems)
    if frame is not None:
        x1, y1, x2, y2, score = known
        rows.add(where, frame, to_xyxy((x1, y1, x2, y2), options.box or "xyxy"), score, polyp, track)


def write(corpus: Corpus, folder: Path) -> None:
    """Write `boxes.csv` to the folder."""
    boxes = corpus.boxes
    videos = [quoted(video.id) for video in corpus.videos]
    polyps = [*(quoted(polyp.id) for polyp in corpus.polyps), ""]  # -1, not known, is the last
    columns = (
        [videos[row] for row in boxes.video],
        boxes.frame.tolist(),
        *(shortest(boxes.xyxy[:, side]) for side in range(4)),
        shortest(boxes.score),
        [polyps[row] for row in boxes.polyp],
        ["" if track < 0 else track for track in boxes.track.tolist()],
    )
    with (folder / "boxes.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows(zip(*columns, strict=True))
