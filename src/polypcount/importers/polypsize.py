"""PolypSize: 42 videos of one polyp each, as images `VideoNN_frameNNNN.jpg`.

Boxes are taken from files of the same name anywhere below the folder: Pascal VOC (.xml), YOLO labels (.txt), or masks
in a folder whose name begins with `mask`.
"""

import re
from pathlib import Path

from polypcount.corpus import Corpus, Video, concatenate
from polypcount.errors import FileError
from polypcount.importers.files import IMAGE_SUFFIXES, all_folders, list_files
from polypcount.importers.options import Options
from polypcount.importers.pixels import image_size, mask_boxes
from polypcount.importers.problems import Problems
from polypcount.importers.rows import Rows
from polypcount.importers.stills import boxes_of_label
from polypcount.importers.voc_frame import read_voc_file
from polypcount.importers.work import Task, Work

_NAME = re.compile(r"(Video\d+)_frame(\d{1,9})", re.IGNORECASE)

Frame = tuple[int, Path, Path]


def read(path: Path, options: Options, work: Work) -> Corpus:  # noqa: ARG001
    """Read every video; its polyp is named as the video."""
    images: dict[str, Path] = {}
    labels: dict[str, Path] = {}
    for folder in all_folders(path):
        is_mask = any(part.lower().startswith("mask") for part in folder.relative_to(path).parts)
        for file in list_files(folder, IMAGE_SUFFIXES | {".xml", ".txt"}):
            if _NAME.fullmatch(file.stem):
                found = images if file.suffix.lower() in IMAGE_SUFFIXES and not is_mask else labels
                if file.stem in found:
                    raise FileError(f"{file} and {found[file.stem]} are for the same frame")
                found[file.stem] = file
    if not images or not labels:
        raise FileError(f"{path} has {len(images)} images VideoNN_frameNNNN and {len(labels)} labels of such names")
    videos: dict[str, list[Frame]] = {}
    for stem, image in images.items():
        match = _NAME.fullmatch(stem)
        assert match
        if stem in labels:
            videos.setdefault(match[1], []).append((int(match[2]), image, labels[stem]))
        else:
            work.problems.remark(f"{image.name}: no label, so no box")
            videos.setdefault(match[1], []).append((int(match[2]), image, image))
    tasks = [
        Task((name, tuple(sorted(frames))), tuple(file for _, *files in frames for file in files), weight=len(frames))
        for name, frames in sorted(videos.items())
    ]
    return concatenate(work.read_all(read_video, tasks))


def read_video(name: str, frames: tuple[Frame, ...], problems: Problems) -> Corpus:
    """Read one video: (number, image, label) for each frame; the image stands for a missing label."""
    first = frames[0][0]
    size = image_size(frames[0][1])
    rows = Rows(problems, clamp=size)
    video_id = f"polypsize-{name}"
    for number, image, label in frames:
        try:
            if label == image:
                boxes = []
            elif label.suffix.lower() == ".xml":
                found = read_voc_file(label, problems)
                boxes = [(item.where, item.box) for item in found.objects] if found else []
            elif label.suffix.lower() == ".txt":
                boxes = boxes_of_label(label, size, problems)
            else:
                boxes = [(str(label), (a, b, c, d)) for a, b, c, d in mask_boxes(label).tolist()]
        except FileError as problem:
            problems.failed(problem)
            continue
        for where, box in boxes:
            rows.add(where, number - first, box, polyp=video_id)
    folder = frames[0][1].parent
    video = Video(video_id, frames[-1][0] - first + 1, None, *size, str(folder), "polypsize")
    listed = [(number - first, image.name) for number, image, _ in frames if image.parent == folder]
    return rows.to_corpus(video, files=([frame for frame, _ in listed], [image for _, image in listed]))
