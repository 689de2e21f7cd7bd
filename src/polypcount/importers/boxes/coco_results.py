"""A COCO list of detections: `[{"image_id": 7, "bbox": [x, y, width, height], "score": 0.9}, ...]`.

Where the option `images` is a COCO file, `image_id` is the id of an image there, which also gives videos, frames and
sizes (see `coco.py`). Where it is a folder, `image_id` is the name of an image there, with or without extension.
Without it, all detections are one video, and `image_id` is the number of the frame, or a text that ends in it. Numbers
count from the option `first_frame` (0). A `track_id`, where there is one, is the track.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from polypcount.corpus import IMAGE_SUFFIXES, Corpus
from polypcount.errors import FileError
from polypcount.importers.boxes.coco import place_images
from polypcount.importers.boxes.coco_file import box_of, check_coco, entries, id_of
from polypcount.importers.reading import (
    BoxRows,
    Options,
    VideoFacts,
    Work,
    check_options,
    frame_of,
    frames_by_rank,
    image_size,
    join,
    json_whole,
    last_number,
    list_files,
    name_of,
    to_xyxy,
)
from polypcount.storage import shown


@dataclasses.dataclass
class _Target:
    """A video that detections may belong to, with the names of its images by frame in the folder `source`."""

    facts: VideoFacts
    rows: BoxRows
    least_frames: int = 0
    source: Path | None = None
    names: dict[int, str] = dataclasses.field(default_factory=dict)


_Find = Callable[[str, str], tuple[_Target, int] | None]  # video and frame, from the JSON path and the image's id


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read a list of detections; the module docstring says how their videos and frames are found."""
    problems = work.problems
    values = work.load_json(path)
    if not isinstance(values, list):
        hint = "; the format of a file with images and annotations is coco" if isinstance(values, dict) else ""
        raise FileError(f"{path}: a list of detections is expected, found {shown(values)}{hint}")
    if options.images is None:
        targets, find = _by_number(path, options, work)
    elif options.images.is_dir():
        targets, find = _by_folder(path, options.images, options, work)
    else:
        targets, find = _by_coco(options.images, options, work)
    for where, entry in entries(values, f"{path}: ", problems):
        image = id_of(entry.get("image_id"))
        track = json_whole(-1 if entry.get("track_id") is None else entry["track_id"])
        if image is None:
            problems.bad(f"{where}.image_id", f"a number or a text is expected, found {shown(entry.get('image_id'))}")
        elif track is None:
            problems.bad(f"{where}.track_id", f"a whole number is expected, found {shown(entry['track_id'])}")
        elif (box := box_of(where, entry, problems)) and (match := find(f"{where}.image_id", image)):
            target, frame = match
            target.rows.add(where, frame, to_xyxy(box[0], options.box or "xywh"), box[1], None, track)
    return join([_corpus(target, options) for target in targets], path)


def _by_number(path: Path, options: Options, work: Work) -> tuple[list[_Target], _Find]:
    check_options(options, 1, path)
    target = _Target(VideoFacts(name_of(path)).with_options(options), BoxRows(work.problems))

    def find(where: str, image: str) -> tuple[_Target, int] | None:
        name = PurePosixPath(image)
        number = last_number(name.stem if name.suffix.lower() in IMAGE_SUFFIXES else name.name)
        if number is None:
            work.problems.bad(where, f"the number of a frame is expected, found {shown(image)}", mend=["images"])
            return None
        frame = frame_of(where, number, options.first_frame or 0, target.facts.frame_count, work.problems)
        return None if frame is None else (target, frame)

    return [target], find


def _by_folder(path: Path, folder: Path, options: Options, work: Work) -> tuple[list[_Target], _Find]:
    check_options(options, 1, path)
    images = list_files(folder, IMAGE_SUFFIXES)
    if not images:
        raise FileError(f"{folder} holds no images")
    stems = [image.stem for image in images]
    frames = [number - (options.first_frame or 0) for stem in stems if (number := last_number(stem)) is not None]
    if len(set(frames)) < len(stems) or min(frames) < 0:
        frames = frames_by_rank(stems)
    width, height = image_size(images[0])
    facts = VideoFacts(name_of(path), width=width, height=height).with_options(options)
    names = {frame: image.name for frame, image in zip(frames, images, strict=True)}
    target = _Target(facts, BoxRows(work.problems), max(frames) + 1, folder, {} if options.source else names)
    target_of = {name: (target, frame) for frame, image in names.items() for name in (image, Path(image).stem)}
    return [target], _find_in(target_of, f"the name of an image in {folder}", work)


def _by_coco(path: Path, options: Options, work: Work) -> tuple[list[_Target], _Find]:
    targets: list[_Target] = []
    places: dict[str, tuple[_Target, int]] = {}
    for video in place_images(check_coco(work.load_json(path), path, work.problems), path, options, work.problems):
        least = max(video.frame.values(), default=-1) + 1
        target = _Target(video.facts, BoxRows(work.problems), least, *video.names_by_frame(path, options))
        targets.append(target)
        places |= {image: (target, frame) for image, frame in video.frame.items()}
    return targets, _find_in(places, f"the id of an image in {path}", work)


def _find_in(places: dict[str, tuple[_Target, int]], expected: str, work: Work) -> _Find:
    def find(where: str, image: str) -> tuple[_Target, int] | None:
        if image not in places:
            work.problems.bad(where, f"{expected} is expected, found {shown(image)}")
        return places.get(image)

    return find


def _corpus(target: _Target, options: Options) -> Corpus:
    least = max(target.least_frames, target.rows.last_frame() + 1)
    video = target.facts.video(options, least, target.source)
    if target.names:
        video = dataclasses.replace(video, source=str(target.source))
    return target.rows.to_corpus(video, files=target.names)
