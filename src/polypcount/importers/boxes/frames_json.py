"""JSON with a list of boxes for each frame, as small detection scripts write it.

    {"width": 560, "height": 480, "fps": 25, "frames": [[{"bbox": [x1, y1, x2, y2]}], [], ...]}

A box may also have `score`, `track` (a number) and `polyp` (a text). Only `frames` is required.
"""

from pathlib import Path

from polypcount.corpus import Corpus
from polypcount.errors import FileError
from polypcount.importers.boxes.coco_file import box_of, entries
from polypcount.importers.reading import (
    BoxRows,
    Options,
    VideoFacts,
    Work,
    check_options,
    json_decimal,
    json_whole,
    name_of,
    to_xyxy,
    usable,
)


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read one file, which describes one video."""
    values = work.load_json(path)
    if not isinstance(values, dict) or not isinstance(values.get("frames"), list):
        raise FileError(f"{path}: an object with a list `frames` is expected")
    check_options(options, 1, path)
    rows = BoxRows(work.problems)
    for frame, boxes in enumerate(values["frames"]):
        if not isinstance(boxes, list):
            work.problems.bad(f"{path}: frames[{frame}]", f"a list of boxes is expected, found {type(boxes).__name__}")
            continue
        for where, entry in entries(boxes, f"{path}: frames[{frame}]", work.problems):
            box = box_of(where, entry, work.problems)
            track, polyp = json_whole(entry.get("track", -1)), entry.get("polyp")
            if track is None or not (polyp is None or usable(polyp)):
                work.problems.bad(where, "track must be a whole number and polyp a text")
            elif box:
                rows.add(where, frame, to_xyxy(box[0], options.box), box[1], polyp, track)
    facts = VideoFacts(
        name_of(path),
        json_decimal(values.get("fps")),
        json_whole(values.get("width")),
        json_whole(values.get("height")),
        len(values["frames"]),
    )
    return rows.to_corpus(facts.checked(path, work.problems).with_options(options).video(options, 0))
