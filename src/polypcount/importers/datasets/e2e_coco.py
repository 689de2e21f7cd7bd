"""The combined COCO files of the paper's authors, and their leave-one-out folds.

Images have `sequence_id` (the video), `frame_id` (position in it) and `dataset_id`; annotations have `identity_id` (the
polyp). In older files the polyp is the annotation's `sequence_id`, and images tell their video only by file name,
`001-001_123.jpg`. A fold is a folder with `annotations/instances_{train,val,test}.json` and `images/`.
"""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from polypcount.corpus import Corpus, Polyp, Video, concatenate
from polypcount.errors import FileError
from polypcount.importers.boxes.coco_file import CocoBox, CocoImage, check_coco, id_of
from polypcount.importers.reading import (
    BoxRows,
    ImportTask,
    Options,
    Problems,
    Work,
    json_decimal,
    json_whole,
    last_number,
    list_files,
    load_json,
    subfolders,
    to_xyxy,
)
from polypcount.natural import natural_key

_DATASETS = {"dataset3": "real-colon"}


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read one file, or the files of one fold; each file is a split, named by the end of its name."""
    annotations, beside = path / "annotations", path / "images"
    files = [path] if path.is_file() else list_files(annotations, [".json"]) if annotations.is_dir() else []
    images = options.images or (beside if beside.is_dir() else None)
    if not files:
        folds = [folder.name for folder in subfolders(path) if (folder / "annotations").is_dir()]
        hint = f"; it holds folds, choose one of them: {', '.join(folds[:5])}" if folds else ""
        raise FileError(f"{path} has no annotations/instances_*.json{hint}")
    tasks = [ImportTask((file, images), (file,), weight=max(file.stat().st_size // 1000, 1)) for file in files]
    parts = work.read_all(_read_file, tasks)
    file_of: dict[str, Path] = {}
    for file, part in zip(files, parts, strict=True):
        for video in part.videos:
            if (other := file_of.setdefault(video.id, file)) != file:
                raise FileError(f"{file}: the video {video.id} is in {other.name} already; splits must differ")
    return concatenate(parts)


def _read_file(path: Path, images: Path | None, problems: Problems) -> Corpus:
    """Read one file into the videos that it lists."""
    content = check_coco(load_json(path), path, problems)
    split = path.stem.rpartition("_")[2] if "_" in path.stem else ""
    unnamed = not any("sequence_id" in image.values for image in content.images)
    polyp_key = "identity_id" if any("identity_id" in box.values for box in content.boxes) else "sequence_id"
    place_of: dict[str, tuple[str, int]] = {}
    image_at: dict[tuple[str, int], CocoImage] = {}
    for image in content.images:
        place = _place(image, unnamed, problems)
        if place in image_at:
            problems.bad(image.where, f"frame {place[1]} of video {place[0]} is image {image_at[place].id} already")
        elif place is not None:
            image_at[place] = image
            place_of[image.id] = place
    listed: dict[str, dict[int, CocoImage]] = {}
    boxes: dict[str, list[tuple[int, CocoBox]]] = {}
    for (video, frame), image in image_at.items():
        listed.setdefault(video, {})[frame] = image
    for box in content.boxes:
        if box.image.id in place_of:
            video, frame = place_of[box.image.id]
            boxes.setdefault(video, []).append((frame, box))
    owner: dict[str, str] = {}
    parts = []
    for video in sorted(listed, key=natural_key):
        rows, polyps = _boxes(video, boxes.get(video, []), polyp_key, owner, problems)
        names = {frame: image.file_name for frame, image in listed[video].items() if image.file_name and images}
        parts.append(rows.to_corpus(_video(video, split, listed[video], images), polyps, names))
    return concatenate(parts)


def _place(image: CocoImage, unnamed: bool, problems: Problems) -> tuple[str, int] | None:
    """Video and frame of an image; with `unnamed`, the video is read from the file name."""
    stem = PurePosixPath(image.file_name).stem
    video = stem.rpartition("_")[0] if unnamed else id_of(image.values.get("sequence_id"))
    frame = json_whole(image.values["frame_id"]) if "frame_id" in image.values else last_number(stem)
    if not video or frame is None or not 0 <= frame < 2**31 - 1:
        problems.bad(
            image.where, "a sequence_id and a frame_id from 0, or a file name like 001-001_123.jpg, are expected"
        )
        return None
    return video, frame


def _boxes(
    video: str, boxes: list[tuple[int, CocoBox]], polyp_key: str, owner: dict[str, str], problems: Problems
) -> tuple[BoxRows, list[Polyp]]:
    """Boxes and polyps of a video. `owner` has the video of each polyp so far: a polyp is in one video only."""
    rows = BoxRows(problems)
    polyps: dict[str, Polyp] = {}
    for frame, box in boxes:
        polyp = id_of(box.values.get(polyp_key))
        if polyp is None or owner.setdefault(polyp, video) != video:
            problems.bad(box.where, f"the id of a polyp of video {video} is expected, found {polyp!r}")
            continue
        size_mm = json_decimal(box.values.get("size"))
        histology = id_of(box.values.get("histology")) or ""
        known_size = size_mm if size_mm is not None and 0 <= size_mm < 1e6 else None
        polyps.setdefault(polyp, Polyp(polyp, video, known_size, "", histology))
        rows.add(box.where, frame, to_xyxy(box.box, "xywh"), box.score, polyp)
    return rows, list(polyps.values())


def _video(name: str, split: str, images: Mapping[int, CocoImage], folder: Path | None) -> Video:
    first = next(iter(images.values()))
    dataset = id_of(first.values.get("dataset_id")) or "e2e"
    width, height = first.size or (None, None)
    return Video(
        id=name,
        frame_count=max(images) + 1,
        width=width,
        height=height,
        source=str(folder) if folder else None,
        dataset=_DATASETS.get(dataset, dataset),
        split=split,
    )
