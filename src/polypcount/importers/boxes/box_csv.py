"""Boxes in CSV, with a header.

    video,frame,x1,y1,x2,y2,score,polyp,track

- frame, x1, y1, x2, y2 are required: the frame's number, from 0 (option `first_frame`), and the box in pixels. With the
  option `box`, the four columns hold the four numbers of that convention.
- video: id of the video. Without the column all rows are one video, named by the option `video` or by the file.
- score: confidence; 1 where empty.
- polyp: id of the polyp; empty where it is not known. In a file with a video column it stays as it is, unless several
  videos have it. In a file without one, a mere number n becomes `<video>_<n>`.
- track: number that a tracker gave, from 0; empty or -1 where there is none.

Columns may come in any order; other columns are refused. Where the header is separated by semicolons or tabs, as
spreadsheets in many countries write it, so are the rows, and numbers may have a decimal comma.

`write` gives one `boxes.csv` with all columns, whose numbers and ids read back exactly. Ids that look like a formula
to a spreadsheet get a quote in front, and ids that do not fit into one line are in JSON quotes. CSV
cannot hold videos and polyps without boxes, nor sizes, frame rates and lengths of videos.
"""

from collections.abc import Iterator
from pathlib import Path

from polypcount.corpus import Corpus
from polypcount.errors import DataError, FileError
from polypcount.importers.reading import (
    BoxRows,
    Options,
    Problems,
    VideoFacts,
    Work,
    check_options,
    decimals,
    frame_of,
    join,
    name_of,
    number_or_text,
    polyp_name,
    quoted,
    shortest,
    to_xyxy,
    unquoted,
    usable,
    whole,
)
from polypcount.storage import csv_rows, csv_text, csv_value, read_text, separator_of, shown, write_text

_REQUIRED = ("frame", "x1", "y1", "x2", "y2")
_DECIMALS = (*_REQUIRED, "score")
_COLUMNS = ("video", *_REQUIRED, "score", "polyp", "track")


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read a CSV file; the module docstring describes its columns."""
    rows: dict[str, BoxRows] = {}
    name = options.video or name_of(path)
    has_videos = False
    for where, values in _lines(path, work.problems):
        has_videos = "video" in values
        if has_videos and options.video is not None:
            raise DataError(f"{path} has a column video; the option video is for files without one")
        video = unquoted(values.get("video") or name)
        if usable(video) is None:
            work.problems.bad(where, f"a text that can be the id of a video is expected, found {shown(video)}")
        else:
            _add(where, values, video, options, rows.setdefault(video, BoxRows(work.problems)))
    if not rows and not has_videos:
        rows[name] = BoxRows(work.problems)
    check_options(options, len(rows), path)
    videos = [VideoFacts(video).with_options(options).video(options, r.last_frame() + 1) for video, r in rows.items()]
    return join([boxes.to_corpus(video) for video, boxes in zip(videos, rows.values(), strict=True)], path)


def _lines(path: Path, problems: Problems) -> Iterator[tuple[str, dict[str, str]]]:
    """Location and values by column of each line below the header."""
    text = read_text(path)
    separator, rows = separator_of(text), csv_rows(text, path)
    header = [name.strip() for name in next(rows, (1, []))[1]]
    if not set(_REQUIRED) <= set(header) <= set(_COLUMNS) or len(set(header)) < len(header):
        others = ", ".join(name for name in _COLUMNS if name not in _REQUIRED)
        raise FileError(
            f"{path}:1: the header must have {', '.join(_REQUIRED)} and may have {others}, each once, "
            f"found {shown(separator.join(header))}"
        )
    for line, cells in rows:
        where = f"{path}:{line}"
        if len(cells) == len(header):
            values = {name: csv_value(cell.strip()) for name, cell in zip(header, cells, strict=True)}
            if separator != ",":
                values |= {name: values[name].replace(",", ".") for name in _DECIMALS if name in values}
            yield where, values
        elif cells:
            problems.bad(where, f"{len(header)} values are expected, as in the header, found {len(cells)}")


def _add(where: str, values: dict[str, str], video: str, options: Options, rows: BoxRows) -> None:
    number, track = whole(values["frame"]), whole(values.get("track") or "-1")
    numbers = decimals([*(values[name] for name in _REQUIRED[1:]), values.get("score") or "1"])
    if number is None or track is None or not numbers:
        line = shown(",".join(values.values()))
        rows.problems.bad(where, f"whole numbers for frame and track, numbers for box and score, found {line}")
        return
    polyp = unquoted(values["polyp"]) if values.get("polyp") else None
    if polyp is not None:
        if usable(polyp) is None:
            rows.problems.bad(where, f"a text that can be the id of a polyp is expected, found {shown(polyp)}")
            return
        polyp = polyp_name(polyp if "video" in values else number_or_text(polyp), video)
    frame = frame_of(where, number, options.first_frame or 0, options.frame_count, rows.problems)
    if frame is not None:
        x1, y1, x2, y2, score = numbers
        rows.add(where, frame, to_xyxy((x1, y1, x2, y2), options.box), score, polyp, track)


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
    write_text(folder / "boxes.csv", csv_text(_COLUMNS, zip(*columns, strict=True)))
