"""A recording and boxes, in whatever form they come, as a corpus with one video."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from polypcount.corpus import Boxes, Corpus, Video, is_corpus
from polypcount.counting.box_format import boxes_file, guess_format
from polypcount.counting.image_numbers import frames_by_number, on_images
from polypcount.errors import DataError, FileError
from polypcount.importers import FORMATS, read_corpus
from polypcount.video import FrameSource, open_source, open_video

_IN_ONE_FILE = ("coco", "coco-results", "frames-json", "csv")


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
    video: id of the one video to take, where a corpus or file of boxes has several; otherwise the one that is called
        like the recording is taken, or the only one.
    fps: where the recording does not say it. settings: further options of the format, such as first_frame.

    Boxes for files of images by name (VOC, YOLO, COCO without frame ids) are put to the image of that number, where the
    recording is a folder of numbered images and first_frame is not set.
    """
    opened = open_procedure(source, video=video, fps=fps, threads=threads)
    if boxes is None or isinstance(boxes, Boxes | Corpus):
        if settings:
            raise DataError(f"{', '.join(settings)}: such settings are for a file of boxes")
        if boxes is None and not is_corpus(Path(source)):
            raise DataError(f"{source} comes without boxes: give them with --boxes, or a detector with --detector")
    if boxes is None:
        return _checked(opened)
    if isinstance(boxes, Boxes):
        if boxes.video.any():
            raise DataError("a table of boxes must be of one video, row 0; give a corpus of several with video=")
        return _checked(replace(opened, boxes=boxes.ordered()))
    frames: Mapping[int, int] | None = None
    if isinstance(boxes, Corpus):
        found, told = boxes, "the corpus of boxes"
    else:
        told = str(boxes)
        found, frames = _read_boxes(Path(boxes), boxes_format, opened, settings)
    # Of a corpus folder, the id has chosen the recording already.
    wanted = None if is_corpus(Path(source)) else video
    return _checked(_with_boxes(opened, found, told, wanted, frames))


def open_procedure(
    source: str | os.PathLike[str], *, video: str | None = None, fps: float | None = None, threads: int = 0
) -> Procedure:
    """Open a recording without reading boxes; a corpus folder comes with its own."""
    if fps is not None and not 0 < fps < np.inf:
        raise DataError(f"fps must be a number of frames per second above 0, found {fps}")
    place = Path(source)
    if is_corpus(place):
        corpus = Corpus.load(place)
        row = _row_of(corpus, video, str(place))
        known = corpus.videos[row]
        opened = open_video(known, corpus.files, row, threads=threads)
        return Procedure(
            opened,
            replace(known, fps=known.fps or opened.fps or fps, width=opened.width, height=opened.height),
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


def _read_boxes(
    path: Path, boxes_format: str | None, opened: Procedure, settings: dict[str, Any]
) -> tuple[Corpus, dict[int, int] | None]:
    """The boxes; and where their frames are numbers of images, the frame of each number."""
    name = boxes_format or guess_format(path)
    if name == "corpus":
        if settings:
            raise DataError(f"{', '.join(settings)}: such settings are for a file of boxes, and {path} is a corpus")
        return Corpus.load(path), None
    if name not in FORMATS:
        raise DataError(f"there is no format {name!r}; there are: corpus, {', '.join(FORMATS)}")
    place = boxes_file(path) if name in _IN_ONE_FILE else path
    given = dict(settings)
    if name == "yolo":  # its boxes are shares of the image
        given = {"width": opened.video.width, "height": opened.video.height, **given}
    try:
        frames = None if "first_frame" in given else frames_by_number(opened.source, name, place)
        if frames is not None:
            given["first_frame"] = 0
        return read_corpus(name, place, **given, cache=False), frames
    except FileError as problem:
        raise FileError(str(problem).replace("(--skip-bad imports", "(polypcount import --skip-bad takes")) from None


def _with_boxes(
    opened: Procedure, found: Corpus, told: str, wanted: str | None, frames: Mapping[int, int] | None
) -> Procedure:
    """The recording with the boxes of its video in a corpus. told: what the boxes were read from."""
    named, place = opened.video, opened.sources[0]
    other = found.videos[_row_of(found, wanted, told, prefer=(named.id, Path(named.source or "").name))]
    for name in ("width", "height"):
        expected, there = getattr(other, name), getattr(named, name)
        if expected is not None and expected != there:
            raise DataError(
                f"{told} is for frames with a {name} of {expected} pixels, and those of {place} have {there}; "
                "give the recording that the boxes were drawn on"
            )
    boxes = found.select(videos=[other.id]).boxes
    if frames is not None:
        boxes = on_images(boxes, frames, told, place)
    return Procedure(opened.source, replace(named, fps=named.fps or other.fps), boxes, (place, told))


def _row_of(corpus: Corpus, wanted: str | None, told: str, prefer: tuple[str, ...] = ()) -> int:
    """Row of the video that is wanted; otherwise of one that has a preferred name, or of the only one."""
    ids = [video.id for video in corpus.videos]
    for name in prefer if wanted is None else (wanted,):
        if name in ids:
            return ids.index(name)
    if len(ids) == 1 and (wanted is None or wanted in prefer):
        return 0
    shown = ", ".join(ids[:5]) + (", ..." if len(ids) > 5 else "")
    if wanted is not None:
        raise DataError(f"{told} has no video {wanted!r}; it has: {shown}")
    raise DataError(f"{told} has {len(ids)} videos ({shown}); say which one to take with --only")


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
    if video.width and video.height:
        refuse_outside(boxes, video.width, video.height, names)
    return procedure


def refuse_outside(boxes: Boxes, width: int, height: int, name: str) -> None:
    """Raise where a box lies beside its frame. name: of what they are, for the message."""
    x1, y1, x2, y2 = boxes.xyxy.T
    outside = (x1 >= width) | (y1 >= height) | (x2 <= 0) | (y2 <= 0)
    if outside.any():
        row = int(np.argmax(outside))
        raise DataError(
            f"{name}: frame {boxes.frame[row]} has a box at {boxes.xyxy[row].tolist()}, outside its "
            f"{width} x {height} pixels; the boxes are of another size or recording"
        )
