"""COCO JSON, with the videos and identities that files for video add to it.

Videos: an image belongs to the entry of `videos` that its `video_id` names (CocoVID); in a file without them, to the
folder in its `file_name`; otherwise all images are one video, named by the option `video` or by the JSON file.

Frames: `frame_id` or `frame_index` of the image where the file has them, otherwise the number at the end of the file
name, both counted from the option `first_frame` (0). Where a name has no number or two are equal, it is the rank in
natural order.

Identity: the first of `identity_id`, `unique_id`, `instance_id` and `track_id` that the file has; see `identities.py`
for the polyp's id. Beside one of the first three, `track_id` is the track of a tracker. With `ids="track"`, ids are
only tracks. Boxes are x, y, width, height. Images are looked for in the option `source`, or beside the JSON file.

`write` gives one `boxes.json` with everything except where the pixels are: images are listed for frames with boxes, and
`videos` has the length. Entries of `videos` also have dataset, centre and split, and a list `polyps` has
what is known about polyps (id, video_id, size_mm, site, histology); other programs ignore both.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from polypcount.corpus import Corpus, Polyp
from polypcount.importers.boxes.coco_file import (
    CocoBox,
    CocoFile,
    CocoImage,
    check_coco,
    entries,
    id_of,
    identity_of,
    is_identity,
)
from polypcount.importers.boxes.coco_write import write
from polypcount.importers.reading import (
    BoxRows,
    Options,
    Problems,
    VideoFacts,
    Work,
    check_options,
    frame_of,
    frames_by_rank,
    image_names,
    join,
    json_decimal,
    json_whole,
    last_number,
    name_of,
    polyp_name,
    remark_classes,
    to_xyxy,
    track_numbers,
    usable,
)
from polypcount.storage import shown

__all__ = ["FRAME_KEYS", "VideoImages", "place_images", "read", "write"]

FRAME_KEYS = ("frame_id", "frame_index")
_IDENTITY_KEYS = ("identity_id", "unique_id", "instance_id", "track_id")
_TEXTS = ("dataset", "centre", "split")


@dataclass
class VideoImages:
    """A video and its images.

    Attributes:
        facts: What is known about the video.
        id: Id of the video in the file; empty if it has none.
        images: In the order of the file.
        frame: Frame of each image id, from 0.
    """

    facts: VideoFacts
    id: str = ""
    images: list[CocoImage] = field(default_factory=list)
    frame: dict[str, int] = field(default_factory=dict)

    def names_by_frame(self, path: Path, options: Options) -> tuple[Path | None, dict[int, str]]:
        """The folder of the images and the name of each, if the images are in the source or beside the file."""
        folders = [options.source] if options.source else [path.parent, path.parent / "images"]
        placed = [image for image in self.images if image.id in self.frame]
        folder, names = image_names(folders, [image.file_name for image in placed]) or (None, [])
        return folder, {self.frame[image.id]: name for image, name in zip(placed, names, strict=False)}


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read a COCO file; the module docstring says how videos, frames and identities are found."""
    file = check_coco(work.load_json(path), path, work.problems)
    videos = place_images(file, path, options, work.problems)
    keys = [key for key in _IDENTITY_KEYS if any(key in box.values for box in file.boxes)]
    boxes_in: dict[str, list[CocoBox]] = {}
    for box in file.boxes:
        boxes_in.setdefault(box.image.id, []).append(box)
    polyps = _polyps(file, path, work.problems)
    remark_classes(path, {shown(box.values.get("category_id")) for box in file.boxes}, work.problems)
    texts = {v.id: {key: v.values[key] for key in _TEXTS if usable(v.values.get(key))} for v in file.videos}
    corpora = []
    for video in videos:
        boxes = [box for image in video.images if image.id in video.frame for box in boxes_in.get(image.id, ())]
        rows = _rows(video, boxes, keys, options, work.problems)
        described = [dataclasses.replace(polyp, video=video.facts.id) for polyp in polyps.get(video.id, ())]
        folder, names = video.names_by_frame(path, options)
        made = video.facts.video(options, max(video.frame.values(), default=-1) + 1)
        made = dataclasses.replace(made, source=str(folder) if folder else made.source, **texts.get(video.id, {}))
        corpora.append(rows.to_corpus(made, described, names))
    return join(corpora, path)


def place_images(file: CocoFile, path: Path, options: Options, problems: Problems) -> list[VideoImages]:
    """The videos of a file, each with its images and their frames."""
    videos = {f"id {video.id}": VideoImages(video.facts, video.id) for video in file.videos}
    for image in file.images:
        key, name = _video_of(image, file, path)
        if name is not None:
            videos.setdefault(key, VideoImages(VideoFacts(name)))
        if key in videos:
            videos[key].images.append(image)
        else:
            problems.bad(f"{image.where}.video_id", f"the id of a video is expected, found {shown(image.video)}")
    listed = list(videos.values()) or [VideoImages(VideoFacts(name_of(path)))]
    check_options(options, len(listed), path)
    for video in listed:
        sizes = [image.size for image in video.images if image.size]
        video.facts = video.facts.with_size(sizes, problems).with_options(options)
        video.frame = _frames(video, options.first_frame or 0, problems)
    return listed


def _video_of(image: CocoImage, file: CocoFile, path: Path) -> tuple[str, str | None]:
    """Which video an image belongs to, and the name of that video where the file has no entry for it."""
    if file.videos:
        only = file.videos[0].id if len(file.videos) == 1 else None
        return f"id {image.video or only}", None
    if image.video is not None:
        return f"id {image.video}", image.video
    folder = str(PurePosixPath(image.file_name.replace("\\", "/")).parent)
    return f"folder {folder}", name_of(path) if folder in (".", "/") else folder


def _frames(video: VideoImages, first_frame: int, problems: Problems) -> dict[str, int]:
    """Frame of each image id; images that have no possible frame are reported and left out."""
    key = next((key for key in FRAME_KEYS if any(key in image.values for image in video.images)), "")
    stems = [PurePosixPath(image.file_name.replace("\\", "/")).stem for image in video.images]
    numbers = [json_whole(image.values.get(key)) for image in video.images] if key else list(map(last_number, stems))
    if not key and (None in numbers or len(set(numbers)) < len(numbers)):
        return {image.id: rank for image, rank in zip(video.images, frames_by_rank(stems), strict=True)}
    image_at: dict[int, CocoImage] = {}
    for image, number in zip(video.images, numbers, strict=True):
        where = f"{image.where}.{key or 'file_name'}"
        if number is None:
            problems.bad(where, f"a frame number is expected, found {shown(image.values.get(key))}")
        elif (frame := frame_of(where, number, first_frame, video.facts.frame_count, problems)) in image_at:
            problems.bad(where, f"frame {number} has an image already, {image_at[frame].where}")
        elif frame is not None:
            image_at[frame] = image
    return {image.id: frame for frame, image in image_at.items()}


def _rows(
    video: VideoImages, boxes: Sequence[CocoBox], keys: Sequence[str], options: Options, problems: Problems
) -> BoxRows:
    first = keys[0] if keys else ""
    polyp_key, track_key = first, "track_id" if "track_id" in keys[1:] else ""
    if options.ids == "track":
        polyp_key, track_key = "", "track_id" if "track_id" in keys else first
    good = [box for box in boxes if all(_has_identity(box, key, problems) for key in (polyp_key, track_key))]
    tracks = [identity_of(box.values.get(track_key)) for box in good]
    number_of = track_numbers(tracks)
    rows = BoxRows(problems)
    for box, track in zip(good, tracks, strict=True):
        identity = identity_of(box.values.get(polyp_key))
        polyp = None if identity is None else polyp_name(identity, video.facts.id)
        xyxy = to_xyxy(box.box, options.box or "xywh")
        rows.add(box.where, video.frame[box.image.id], xyxy, box.score, polyp, number_of[track])
    return rows


def _has_identity(box: CocoBox, key: str, problems: Problems) -> bool:
    value = box.values.get(key)
    if not is_identity(value):
        problems.bad(f"{box.where}.{key}", f"a number from 0 or a text is expected, found {shown(value)}")
        return False
    return True


def _polyps(file: CocoFile, path: Path, problems: Problems) -> dict[str, list[Polyp]]:
    """Polyps that a list `polyps` describes, by the id of their video in the file."""
    polyps: dict[str, dict[str, Polyp]] = {video.id: {} for video in file.videos}
    for where, entry in entries(file.values["polyps"], f"{path}: polyps", problems):
        name, video = usable(entry.get("id")), id_of(entry.get("video_id"))
        size = json_decimal(entry.get("size_mm"))
        if name is None or video not in polyps or any(name in others for others in polyps.values()):
            problems.bad(where, f"a new id and the id of a video are expected, found {shown(entry)}")
        elif entry.get("size_mm") is not None and (size is None or size < 0):
            problems.bad(f"{where}.size_mm", f"a number from 0 is expected, found {shown(entry['size_mm'])}")
        else:
            about = {key: entry[key] for key in ("site", "histology") if usable(entry.get(key))}
            polyps[video][name] = Polyp(name, None, size, **about)
    return {video: list(described.values()) for video, described in polyps.items()}
