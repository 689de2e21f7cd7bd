"""COCO JSON, with the videos and identities that files for video add to it.

Videos: an image belongs to the entry of `videos` that its `video_id` names (CocoVID); in a file without them, to the
folder in its `file_name`; otherwise all images are one video, named by `--video` or by the JSON file.

Frames: `frame_id` or `frame_index` of the image where the file has them, otherwise the number at the end of the file
name, both counted from `--first-frame` (0); where a name has no number or two are equal, the rank in natural order.

Identity: the first of `identity_id`, `unique_id`, `instance_id` and `track_id` that the file has; see `identities.py`
for the polyp's id. Beside one of the first three, `track_id` is the track of a tracker; `--ids track` takes ids as
tracks only. Boxes are x, y, width, height. Images are found below `--source`, or beside the JSON file.

`write` gives one `boxes.json` that carries everything but the place of the pixels: images are listed for frames with
boxes, and `videos` has the length. Entries of `videos` also have dataset, centre and split, and a list `polyps` has
what is known of polyps (id, video_id, size_mm, site, histology); other programs pass over both.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from polypcount.corpus import Corpus, Polyp
from polypcount.importers.coco_file import (
    CocoBox,
    CocoFile,
    CocoImage,
    Record,
    entries,
    id_of,
    identity_of,
    is_identity,
    load_coco,
)
from polypcount.importers.coco_write import write
from polypcount.importers.decimals import json_decimal, json_whole
from polypcount.importers.identities import join, polyp_name, track_numbers
from polypcount.importers.numbering import frames_by_rank, last_number
from polypcount.importers.options import Options
from polypcount.importers.problems import Problems
from polypcount.importers.rows import Rows, to_xyxy
from polypcount.importers.texts import shown, usable
from polypcount.importers.videos import VideoFacts, check_options, frame_of, image_names, name_of, remark_classes
from polypcount.importers.work import Work

__all__ = ["CocoFile", "VideoImages", "load_coco", "place_images", "read", "write"]

_IDENTITY_KEYS = ("identity_id", "unique_id", "instance_id", "track_id")
_FRAME_KEYS = ("frame_id", "frame_index")
_TEXTS = ("dataset", "centre", "split")


@dataclass
class VideoImages:
    """A video and its images.

    id: of the video in the file, empty where it has none.
    images: in the order of the file.
    texts: dataset, centre and split where the file has them.
    frame: frame of each image id, from 0.
    """

    facts: VideoFacts
    id: str = ""
    images: list[CocoImage] = field(default_factory=list)
    texts: dict[str, Any] = field(default_factory=dict)
    frame: dict[str, int] = field(default_factory=dict)


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read a COCO file; the module says how videos, frames and identities are found."""
    file = load_coco(path, work.problems)
    videos = place_images(file, path, options, work.problems)
    keys = [key for key in _IDENTITY_KEYS if any(key in box.values for box in file.boxes)]
    boxes_in: dict[str, list[CocoBox]] = {}
    for box in file.boxes:
        boxes_in.setdefault(box.image.id, []).append(box)
    known = _polyps(file, path, work.problems)
    remark_classes(path, {shown(box.values.get("category_id")) for box in file.boxes}, work.problems)
    return join([_corpus(video, boxes_in, keys, known, path, options, work.problems) for video in videos], path)


def place_images(file: CocoFile, path: Path, options: Options, problems: Problems) -> list[VideoImages]:
    """The videos of a file, each with its images and their frames."""
    videos = {f"id {video.id}": VideoImages(video.facts, video.id, texts=_texts(video.values)) for video in file.videos}
    for image in file.images:
        key, name = _video_of(image, file, path)
        if name is not None:
            videos.setdefault(key, VideoImages(VideoFacts(name)))
        if key in videos:
            videos[key].images.append(image)
        else:
            problems.bad(f"{image.where}.video_id", f"the id of a video is expected, found {shown(image.video)}")
    found = list(videos.values()) or [VideoImages(VideoFacts(name_of(path)))]
    check_options(options, len(found), path)
    for video in found:
        _settle_size(video, problems)
        video.facts = video.facts.with_options(options)
        video.frame = _frames(video, options.first_frame or 0, problems)
    return found


def _video_of(image: CocoImage, file: CocoFile, path: Path) -> tuple[str, str | None]:
    """Which video an image belongs to, and the name of that video where the file has no entry for it."""
    if file.videos:
        only = file.videos[0].id if len(file.videos) == 1 else None
        return f"id {image.video or only}", None
    if image.video is not None:
        return f"id {image.video}", image.video
    folder = str(PurePosixPath(image.file_name.replace("\\", "/")).parent)
    return f"folder {folder}", name_of(path) if folder in (".", "/") else folder


def _settle_size(video: VideoImages, problems: Problems) -> None:
    """Take the size of the first image that has one, where the file has none for the video."""
    sizes = [image.size for image in video.images if image.size]
    facts = video.facts
    if sizes and not (facts.width and facts.height):
        video.facts = facts = dataclasses.replace(facts, width=sizes[0][0], height=sizes[0][1])
    others = sum(size != (facts.width, facts.height) for size in sizes)
    if others:
        problems.remark(
            f"video {facts.id}: {others:,} of {len(sizes):,} images have another size than {facts.width} x "
            f"{facts.height}, which is taken for all"
        )


def _frames(video: VideoImages, first_frame: int, problems: Problems) -> dict[str, int]:
    """Frame of each image id; images whose frame cannot be are reported and have none."""
    key = next((key for key in _FRAME_KEYS if any(key in image.values for image in video.images)), None)
    stems = [PurePosixPath(image.file_name.replace("\\", "/")).stem for image in video.images]
    if key is not None:
        numbers = [json_whole(image.values.get(key)) for image in video.images]
    else:
        numbers = [last_number(stem) for stem in stems]
        if None in numbers or len(set(numbers)) < len(numbers):
            ranks = frames_by_rank(stems).tolist()
            return {image.id: rank for image, rank in zip(video.images, ranks, strict=True)}
    frames: dict[str, int] = {}
    image_at: dict[int, str] = {}
    for image, number in zip(video.images, numbers, strict=True):
        where = f"{image.where}.{key or 'file_name'}"
        if number is None:
            problems.bad(where, f"a frame number is expected, found {shown(image.values.get(key or ''))}")
            continue
        frame = frame_of(where, number, first_frame, video.facts.frame_count, problems)
        if frame is None:
            continue
        if frame in image_at:
            problems.bad(where, f"frame {number} has an image already, {image_at[frame]}")
            continue
        image_at[frame] = image.where
        frames[image.id] = frame
    return frames


def _corpus(
    video: VideoImages,
    boxes_in: dict[str, list[CocoBox]],
    keys: Sequence[str],
    known: Mapping[str, list[Polyp]],
    path: Path,
    options: Options,
    problems: Problems,
) -> Corpus:
    rows = Rows(problems)
    placed = [image for image in video.images if image.id in video.frame]
    polyp_key, track_key = _identity_keys(keys, options)
    boxes = [
        box
        for image in placed
        for box in boxes_in.get(image.id, ())
        if all(_has_identity(box, key, problems) for key in (polyp_key, track_key))
    ]
    tracks = [identity_of(box.values.get(track_key)) for box in boxes]
    number_of = track_numbers([track for track in tracks if track is not None])
    for box, track in zip(boxes, tracks, strict=True):
        identity = identity_of(box.values.get(polyp_key))
        rows.add(
            box.where,
            video.frame[box.image.id],
            to_xyxy(box.box, options.box or "xywh"),
            box.score,
            None if identity is None else polyp_name(identity, video.facts.id),
            -1 if track is None else number_of[track],
        )
    polyps = [dataclasses.replace(polyp, video=video.facts.id) for polyp in known.get(video.id, ())]
    return _finish(video, rows, placed, polyps, path, options)


def _identity_keys(keys: Sequence[str], options: Options) -> tuple[str, str]:
    """The keys of an annotation that tell the polyp and the track; empty where none does."""
    first = keys[0] if keys else ""
    tracker = "track_id" if "track_id" in keys else ""
    if options.ids == "track":
        return "", tracker or first
    return first, tracker if first != "track_id" else ""


def _has_identity(box: CocoBox, key: str, problems: Problems) -> bool:
    value = box.values.get(key)
    if is_identity(value):
        return True
    problems.bad(f"{box.where}.{key}", f"a number from 0 or a text is expected, found {shown(value)}")
    return False


def _finish(
    video: VideoImages, rows: Rows, placed: list[CocoImage], polyps: list[Polyp], path: Path, options: Options
) -> Corpus:
    frames = [video.frame[image.id] for image in placed]
    folders = [options.source] if options.source else [path.parent, path.parent / "images"]
    found = image_names(folders, [image.file_name for image in placed])
    made = video.facts.video(options, max(frames, default=-1) + 1, found[0] if found else None)
    files = None
    if found and (options.source is None or options.source.is_dir()):
        made = dataclasses.replace(made, source=str(found[0]))
        files = (frames, found[1])
    return rows.to_corpus(dataclasses.replace(made, **video.texts), polyps, files)


def _polyps(file: CocoFile, path: Path, problems: Problems) -> dict[str, list[Polyp]]:
    """Polyps that a list `polyps` describes, by the id of their video in the file."""
    found: dict[str, list[Polyp]] = {video.id: [] for video in file.videos}
    seen: set[str] = set()
    for where, entry in entries(file.values, "polyps", path, problems):
        polyp, video = usable(entry.get("id")), id_of(entry.get("video_id"))
        size = json_decimal(entry.get("size_mm"))
        if polyp is None or polyp in seen or video not in found:
            problems.bad(where, f"a new id and the id of a video are expected, found {shown(entry)}")
        elif entry.get("size_mm") is not None and (size is None or size < 0):
            problems.bad(f"{where}.size_mm", f"a number from 0 is expected, found {shown(entry['size_mm'])}")
        else:
            seen.add(polyp)
            about = {key: entry[key] for key in ("site", "histology") if usable(entry.get(key))}
            found[video].append(Polyp(polyp, None, size, **about))
    return found


def _texts(values: Record) -> dict[str, Any]:
    return {key: values[key] for key in _TEXTS if usable(values.get(key))}
