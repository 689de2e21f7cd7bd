"""A recording and boxes, in whatever form they come, as a corpus with one video."""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from polypcount.corpus import Boxes, Corpus, Video, is_corpus
from polypcount.errors import DataError, FileError, first_line
from polypcount.importers import FORMATS, read_corpus
from polypcount.video import FrameSource, open_source, open_video

_BY_SUFFIX = {".csv": "csv", ".txt": "mot"}
_FIRST_BYTES = 1 << 16


@dataclass(frozen=True, eq=False)
class Procedure:
    """One recording with its boxes.

    source: opened. video: what is known of it. boxes: of video row 0, by frame. sources: names of what was read.
    """

    source: FrameSource
    video: Video
    boxes: Boxes
    sources: tuple[str, ...]


def read_procedure(
    source: str | os.PathLike[str],
    boxes: str | os.PathLike[str] | Corpus | Boxes | None,
    *,
    boxes_format: str | None = None,
    video: str | None = None,
    fps: float | None = None,
    threads: int = 0,
    **settings: Any,
) -> Procedure:
    """Open a recording and read its boxes.

    source: a video file, a folder of images, a DICOM file, or a corpus folder.
    boxes: a file or folder of any format of `read_corpus`, a corpus, a table of boxes of video row 0; None for those
        of the corpus folder.
    boxes_format: name of the format; found out by the look of the file, where not given.
    video: id of the one video to take, where a corpus or file of boxes has several.
    fps: where nothing else says it. settings: further options of the format.
    """
    opened = open_procedure(source, video=video, fps=fps, threads=threads)
    if boxes is None and not is_corpus(Path(source)):
        raise DataError(f"{source} comes without boxes: give those of a detector, or a detector")
    if boxes is None:
        return _checked(opened)
    named, place = opened.video, opened.sources[0]
    if isinstance(boxes, Boxes):
        return _checked(replace(opened, boxes=boxes.ordered()))
    if isinstance(boxes, Corpus):
        found, told = boxes, "the corpus of boxes"
    else:
        found, told = _read_boxes(Path(boxes), boxes_format, named, settings), str(boxes)
    row = _row_of(found, video, told, prefer=named.id)
    other = found.videos[row]
    for name in ("width", "height"):
        expected, there = getattr(other, name), getattr(named, name)
        if expected is not None and expected != there:
            raise DataError(
                f"{told} is for frames with a {name} of {expected} pixels, and those of {place} have {there}; "
                "give the recording that the boxes were drawn on"
            )
    of_video = found.select(videos=[other.id])
    named = replace(named, fps=named.fps or other.fps)
    return _checked(Procedure(opened.source, named, of_video.boxes, (place, told)))


def open_procedure(
    source: str | os.PathLike[str], *, video: str | None = None, fps: float | None = None, threads: int = 0
) -> Procedure:
    """Open a recording without reading boxes; a corpus folder comes with its own."""
    place = Path(source)
    if is_corpus(place):
        corpus = Corpus.load(place)
        row = _row_of(corpus, video, str(place))
        known = corpus.videos[row]
        opened = open_video(known, corpus.files, row, threads=threads)
        return Procedure(
            opened,
            replace(known, fps=known.fps or fps or opened.fps, width=opened.width, height=opened.height),
            corpus.select(videos=[known.id]).boxes,
            (str(place),),
        )
    opened = open_source(place, threads=threads)
    whole = Path(os.path.abspath(place))
    named = Video(
        id=whole.name if whole.is_dir() else whole.stem,
        frame_count=opened.frame_count,
        fps=opened.fps or fps,
        width=opened.width,
        height=opened.height,
        source=str(whole),
    )
    return Procedure(opened, named, Boxes.empty(), (str(place),))


def guess_format(path: Path) -> str:
    """The format of a file or folder of boxes, by its name and first bytes."""
    if is_corpus(path):
        return "corpus"
    if path.is_dir():
        suffixes = {entry.suffix.lower() for entry in path.iterdir()} if path.exists() else set()
        for suffix, name in ((".xml", "voc"), (".txt", "yolo")):
            if suffix in suffixes:
                return name
        raise FileError(f"{path} holds neither .xml nor .txt files; say what format its boxes have (--format)")
    suffix = path.suffix.lower()
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if suffix == ".xml":
        return "cvat"
    if suffix == ".json":
        return _json_format(path)
    raise FileError(
        f"{path}: what format these boxes have cannot be told by the name; say it with --format, one of "
        f"{', '.join(FORMATS)}"
    )


def _json_format(path: Path) -> str:
    try:
        with path.open("rb") as file:
            head = file.read(_FIRST_BYTES).lstrip()
    except OSError as problem:
        raise FileError(f"{path} cannot be read: {first_line(problem)}") from None
    if head.startswith(b"["):
        return "coco-results"
    # A COCO file names its parts at the top level, which may be far inside; only its shape is wanted, so it is read.
    try:
        with path.open("rb") as file:
            keys = set(json.load(file))
    except (OSError, ValueError, RecursionError, TypeError) as problem:
        raise FileError(f"{path} is not a JSON file of boxes: {first_line(problem)}") from None
    return "frames-json" if "frames" in keys and "annotations" not in keys else "coco"


def _read_boxes(path: Path, boxes_format: str | None, video: Video, settings: dict[str, Any]) -> Corpus:
    name = boxes_format or guess_format(path)
    if name == "corpus":
        return Corpus.load(path)
    if name not in FORMATS:
        raise DataError(f"there is no format {name!r}; there are: {', '.join(FORMATS)}")
    given: dict[str, Any] = {
        "frame_count": video.frame_count,
        "fps": video.fps,
        "width": video.width,
        "height": video.height,
    }
    known = {key: value for key, value in given.items() if key in FORMATS[name].takes and value is not None}
    if "video" in FORMATS[name].takes and name not in ("coco", "csv"):
        known["video"] = video.id
    return read_corpus(name, path, **{**known, **settings}, cache=False)


def _row_of(corpus: Corpus, wanted: str | None, told: str, prefer: str | None = None) -> int:
    ids = [video.id for video in corpus.videos]
    name = wanted if wanted is not None else prefer
    if name in ids:
        return ids.index(name)
    if wanted is None and len(ids) == 1:
        return 0
    shown = ", ".join(ids[:5]) + (", ..." if len(ids) > 5 else "")
    if wanted is not None:
        raise DataError(f"{told} has no video {wanted!r}; it has: {shown}")
    raise DataError(f"{told} has {len(ids)} videos ({shown}); say which one to take with --video")


def _checked(procedure: Procedure) -> Procedure:
    """Boxes of other frames or another size are an error before any work."""
    boxes, video = procedure.boxes, procedure.video
    names = " and ".join(procedure.sources)
    if len(boxes) and int(boxes.frame.max()) >= video.frame_count:
        raise DataError(
            f"{names}: there are boxes up to frame {int(boxes.frame.max())}, and the recording has frames 0 to "
            f"{video.frame_count - 1}; give the recording that the boxes were drawn on, or --first-frame where the "
            "boxes count frames from 1"
        )
    if video.width and video.height and len(boxes):
        outside = (
            (boxes.xyxy[:, 0] >= video.width)
            | (boxes.xyxy[:, 1] >= video.height)
            | (boxes.xyxy[:, 2] <= 0)
            | (boxes.xyxy[:, 3] <= 0)
        )
        if outside.any():
            row = int(np.argmax(outside))
            raise DataError(
                f"{names}: frame {boxes.frame[row]} has a box at {boxes.xyxy[row].tolist()}, outside its "
                f"{video.width} x {video.height} pixels; the boxes are of another size or recording"
            )
    return procedure
