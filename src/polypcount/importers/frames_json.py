"""JSON with a list of boxes for each frame, as small detection scripts write it.

    {"width": 560, "height": 480, "fps": 25, "frames": [[{"bbox": [x1, y1, x2, y2]}], [], ...]}

A box may also have `score`, `track` (a number) and `polyp` (a text). Only `frames` is required.
"""

from pathlib import Path
from typing import Any

from polypcount.corpus import Corpus, Video
from polypcount.errors import DataError, FileError
from polypcount.importers.coco_file import load_json
from polypcount.importers.decimals import json_decimal, json_whole
from polypcount.importers.options import Options
from polypcount.importers.rows import Rows, to_xyxy
from polypcount.importers.texts import shown, usable
from polypcount.importers.work import Work


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read one file, which describes one video."""
    described = load_json(path)
    if not isinstance(described, dict) or not isinstance(described.get("frames"), list):
        raise FileError(f"{path}: an object with a list `frames` is expected")
    rows = Rows(work.problems)
    for frame, boxes in enumerate(described["frames"]):
        place = f"{path}: frames[{frame}]"
        if not isinstance(boxes, list):
            work.problems.bad(place, f"a list of boxes is expected, found {type(boxes).__name__}")
            continue
        for index, box in enumerate(boxes):
            _add(rows, f"{place}[{index}]", frame, box, options)
    name = options.video or path.stem
    try:
        video = Video(
            id=name,
            frame_count=options.frame_count or len(described["frames"]),
            fps=options.fps or json_decimal(described.get("fps")),
            width=json_whole(described.get("width")),
            height=json_whole(described.get("height")),
            source=str(options.source) if options.source else None,
        )
        return rows.to_corpus(video)
    except DataError as problem:
        raise FileError(f"{path}: {problem}") from None


def _add(rows: Rows, where: str, frame: int, box: Any, options: Options) -> None:
    values = box.get("bbox") if isinstance(box, dict) else None
    numbers = [json_decimal(value) for value in values] if isinstance(values, list) else []
    if len(numbers) != 4 or any(number is None for number in numbers):
        rows.problems.bad(f"{where}.bbox", f"four numbers are expected, found {shown(values)}")
        return
    score, track, polyp = json_decimal(box.get("score", 1.0)), json_whole(box.get("track", -1)), box.get("polyp")
    if score is None or track is None or not (polyp is None or usable(polyp)):
        rows.problems.bad(where, "score must be a number, track a whole number and polyp a text")
        return
    x1, y1, x2, y2 = (number or 0.0 for number in numbers)
    rows.add(where, frame, to_xyxy((x1, y1, x2, y2), options.box or "xyxy"), score, polyp, track)
