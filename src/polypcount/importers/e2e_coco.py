"""The combined COCO files of the paper's authors, and their leave-one-out folds.

Images have `sequence_id` (the video), `frame_id` (position in it) and `dataset_id`; annotations have `identity_id` (the
polyp). In older files the polyp is the annotation's `sequence_id`, and images tell their video only by file name,
`001-001_123.jpg`. A fold is a folder with `annotations/instances_{train,val,test}.json` and `images/`.
"""

from pathlib import Path, PurePosixPath

from polypcount.corpus import Corpus, Polyp, Video, concatenate
from polypcount.errors import FileError
from polypcount.importers.coco_file import CocoBox, CocoImage, id_of, load_coco
from polypcount.importers.decimals import json_decimal, json_whole
from polypcount.importers.files import list_files, subfolders
from polypcount.importers.numbering import last_number
from polypcount.importers.options import Options
from polypcount.importers.problems import Problems
from polypcount.importers.rows import Rows, to_xyxy
from polypcount.importers.work import Task, Work
from polypcount.natural import natural_key

_JSON = frozenset({".json"})
_DATASETS = {"dataset3": "real-colon"}


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read one file, or the files of one fold; each file is a split, named by the end of its name."""
    if path.is_file():
        files, images = [path], options.images
    else:
        annotations = path / "annotations"
        files = list_files(annotations, _JSON) if annotations.is_dir() else []
        beside = path / "images"
        images = options.images or (beside if beside.is_dir() else None)
    if not files:
        folds = [folder.name for folder in subfolders(path) if (folder / "annotations").is_dir()]
        hint = f"; it holds folds, choose one of them: {', '.join(folds[:5])}" if folds else ""
        raise FileError(f"{path} has no annotations/instances_*.json{hint}")
    tasks = [Task((file, images), (file,), weight=max(file.stat().st_size // 1000, 1)) for file in files]
    parts = work.read_all(read_file, tasks)
    seen: dict[str, Path] = {}
    for file, part in zip(files, parts, strict=True):
        for video in part.videos:
            if video.id in seen:
                raise FileError(f"{file}: the video {video.id} is in {seen[video.id].name} already; splits must differ")
            seen[video.id] = file
    return concatenate(parts)


def read_file(path: Path, images: Path | None, problems: Problems) -> Corpus:
    """Read one file into the videos that it lists."""
    content = load_coco(path, problems)
    split = path.stem.rpartition("_")[2] if "_" in path.stem else ""
    unnamed = not any("sequence_id" in image.values for image in content.images)
    older = not any("identity_id" in box.values for box in content.boxes)
    places: dict[str, tuple[str, int]] = {}
    listed: dict[str, list[tuple[int, CocoImage]]] = {}
    taken: dict[tuple[str, int], str] = {}
    for image in content.images:
        place = _place(image, unnamed, problems)
        if place is None:
            continue
        if place in taken:
            problems.bad(image.where, f"frame {place[1]} of video {place[0]} is image {taken[place]} already")
            continue
        taken[place] = image.id
        places[image.id] = place
        listed.setdefault(place[0], []).append((place[1], image))
    boxes: dict[str, list[tuple[int, CocoBox]]] = {}
    for box in content.boxes:
        if box.image.id in places:
            video, frame = places[box.image.id]
            boxes.setdefault(video, []).append((frame, box))
    owner: dict[str, str] = {}
    parts = []
    for video in sorted(listed, key=natural_key):
        parts.append(_video(video, split, listed[video], boxes.get(video, []), older, owner, images, problems))
    return concatenate(parts)


def _place(image: CocoImage, unnamed: bool, problems: Problems) -> tuple[str, int] | None:
    """Video and frame of an image. unnamed: images do not say their video but by file name."""
    stem = PurePosixPath(image.file_name).stem
    video = stem.rpartition("_")[0] if unnamed else id_of(image.values.get("sequence_id"))
    frame = json_whole(image.values.get("frame_id"))
    if frame is None and "frame_id" not in image.values:
        frame = last_number(stem)
    if not video or frame is None or not 0 <= frame < 2**31 - 1:
        problems.bad(
            image.where, "a sequence_id and a frame_id from 0, or a file name like 001-001_123.jpg, are expected"
        )
        return None
    return video, frame


def _video(
    name: str,
    split: str,
    images: list[tuple[int, CocoImage]],
    boxes: list[tuple[int, CocoBox]],
    older: bool,
    owner: dict[str, str],
    folder: Path | None,
    problems: Problems,
) -> Corpus:
    """One video with its boxes. owner: video of each polyp so far, since a polyp is in one video only."""
    rows = Rows(problems)
    polyps: dict[str, Polyp] = {}
    for frame, box in boxes:
        polyp = id_of(box.values.get("sequence_id" if older else "identity_id"))
        if polyp is None or owner.setdefault(polyp, name) != name:
            problems.bad(box.where, f"the id of a polyp of video {name} is expected, found {polyp!r}")
            continue
        size = box.values.get("size")
        histology = box.values.get("histology")
        size_mm = json_decimal(size) if size is not None else None
        if polyp not in polyps:
            known_size = size_mm if size_mm is not None and 0 <= size_mm < 1e6 else None
            polyps[polyp] = Polyp(polyp, name, known_size, "", id_of(histology) or "" if histology else "")
        rows.add(box.where, frame, to_xyxy(box.box, "xywh"), box.score, polyp)
    first = images[0][1]
    dataset = id_of(first.values.get("dataset_id")) if "dataset_id" in first.values else None
    width, height = first.size or (None, None)
    video = Video(
        id=name,
        frame_count=max(frame for frame, _ in images) + 1,
        width=width,
        height=height,
        source=str(folder) if folder else None,
        dataset=_DATASETS.get(dataset or "", dataset or "e2e"),
        split=split,
    )
    named = [(frame, image.file_name) for frame, image in images if image.file_name]
    files = ([frame for frame, _ in named], [file for _, file in named]) if folder and named else None
    return rows.to_corpus(video, polyps.values(), files)
