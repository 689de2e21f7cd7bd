"""A COCO list of detections: `[{"image_id": 7, "bbox": [x, y, width, height], "score": 0.9}, ...]`.

With `--images`, a COCO file, `image_id` is the id of an image there, which also tells videos, frames and sizes (see
`coco.py`). With `--images`, a folder, it is the name of an image there, with or without extension. Without, all
detections are one video, and `image_id` is the number of the frame, or a text that ends in it. Numbers count from
`--first-frame` (0). A `track_id`, where there is one, is the track.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from polypcount.corpus import Corpus
from polypcount.errors import FileError
from polypcount.importers.coco import place_images
from polypcount.importers.coco_file import box_of, entries, id_of, load_coco, load_json
from polypcount.importers.decimals import json_whole
from polypcount.importers.files import IMAGE_SUFFIXES, list_files
from polypcount.importers.identities import join
from polypcount.importers.numbering import frames_by_rank, last_number
from polypcount.importers.options import Options
from polypcount.importers.pixels import image_size
from polypcount.importers.problems import Problems
from polypcount.importers.rows import Rows, to_xyxy
from polypcount.importers.texts import shown
from polypcount.importers.videos import VideoFacts, check_options, frame_of, image_names, name_of
from polypcount.importers.work import Work


@dataclasses.dataclass
class _Target:
    """A video that detections may belong to. names: its images by frame, in the folder that is its source."""

    facts: VideoFacts
    rows: Rows
    least_frames: int = 0
    source: Path | None = None
    names: dict[int, str] = dataclasses.field(default_factory=dict)


Find = Callable[[str, str], tuple[_Target, int] | None]


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read a list of detections; the module says how they find their videos and frames."""
    problems = work.problems
    values = load_json(path)
    if not isinstance(values, list):
        hint = "; the format of a file with images and annotations is coco" if isinstance(values, dict) else ""
        raise FileError(f"{path}: a list of detections is expected, found {shown(values)}{hint}")
    if options.images is None:
        targets, find = _by_number(path, options, problems)
    elif options.images.is_dir():
        targets, find = _by_folder(path, options.images, options, problems)
    else:
        targets, find = _by_coco(options.images, options, problems)
    for where, entry in entries({"": values}, "", path, problems):
        image = id_of(entry.get("image_id"))
        track = -1 if entry.get("track_id") is None else json_whole(entry["track_id"])
        if image is None:
            found = shown(entry.get("image_id"))
            problems.bad(f"{where}.image_id", f"a number or a text is expected, found {found}")
        elif track is None:
            problems.bad(f"{where}.track_id", f"a whole number is expected, found {shown(entry['track_id'])}")
        elif (box := box_of(where, entry, problems)) and (place := find(f"{where}.image_id", image)):
            target, frame = place
            target.rows.add(where, frame, to_xyxy(box[0], options.box or "xywh"), box[1], None, track)
    return join([_corpus(target, options) for target in targets], path)


def _by_number(path: Path, options: Options, problems: Problems) -> tuple[list[_Target], Find]:
    check_options(options, 1, path)
    target = _Target(VideoFacts(name_of(path)).with_options(options), Rows(problems))

    def find(where: str, image: str) -> tuple[_Target, int] | None:
        name = PurePosixPath(image)
        number = last_number(name.stem if name.suffix.lower() in IMAGE_SUFFIXES else name.name)
        if number is None:
            problems.bad(where, f"the number of a frame is expected, found {shown(image)}; or set --images")
            return None
        frame = frame_of(where, number, options.first_frame or 0, target.facts.frame_count, problems)
        return None if frame is None else (target, frame)

    return [target], find


def _by_folder(path: Path, folder: Path, options: Options, problems: Problems) -> tuple[list[_Target], Find]:
    check_options(options, 1, path)
    images = list_files(folder, IMAGE_SUFFIXES)
    if not images:
        raise FileError(f"{folder} holds no images")
    stems = [image.stem for image in images]
    numbers = [last_number(stem) for stem in stems]
    known = [number - (options.first_frame or 0) for number in numbers if number is not None]
    if len(set(known)) < len(stems) or min(known) < 0:
        known = frames_by_rank(stems).tolist()
    width, height = image_size(images[0])
    facts = VideoFacts(name_of(path), width=width, height=height).with_options(options)
    names = {frame: image.name for frame, image in zip(known, images, strict=True)}
    target = _Target(facts, Rows(problems), max(known) + 1, folder, {} if options.source else names)
    frame_of_name = dict(zip(stems, known, strict=True)) | {name: frame for frame, name in names.items()}

    def find(where: str, image: str) -> tuple[_Target, int] | None:
        if image not in frame_of_name:
            problems.bad(where, f"the name of an image in {folder} is expected, found {shown(image)}")
            return None
        return target, frame_of_name[image]

    return [target], find


def _by_coco(path: Path, options: Options, problems: Problems) -> tuple[list[_Target], Find]:
    targets: list[_Target] = []
    places: dict[str, tuple[_Target, int]] = {}
    for video in place_images(load_coco(path, problems), path, options, problems):
        placed = [image for image in video.images if image.id in video.frame]
        frames = [video.frame[image.id] for image in placed]
        target = _Target(video.facts, Rows(problems), max(frames, default=-1) + 1)
        folders = [options.source] if options.source else [path.parent, path.parent / "images"]
        if found := image_names(folders, [image.file_name for image in placed]):
            target.source, target.names = found[0], dict(zip(frames, found[1], strict=True))
        targets.append(target)
        places |= {image.id: (target, frame) for image, frame in zip(placed, frames, strict=True)}

    def find(where: str, image: str) -> tuple[_Target, int] | None:
        if image not in places:
            problems.bad(where, f"the id of an image in {path} is expected, found {shown(image)}")
        return places.get(image)

    return targets, find


def _corpus(target: _Target, options: Options) -> Corpus:
    least = max(target.least_frames, target.rows.last_frame() + 1)
    video = target.facts.video(options, least, target.source)
    if target.names and target.source:
        video = dataclasses.replace(video, source=str(target.source))
        return target.rows.to_corpus(video, files=(list(target.names), list(target.names.values())))
    return target.rows.to_corpus(video)
