"""PolypSize: 42 videos of one polyp each, as images `VideoNN_frameNNNN.jpg`.

Boxes are taken from files of the same name anywhere below the folder: Pascal VOC (.xml), YOLO labels (.txt), or masks
in a folder whose name begins with `mask`.
"""

import re
from pathlib import Path

from polypcount.corpus import IMAGE_SUFFIXES, Corpus, Video, concatenate
from polypcount.errors import FileError
from polypcount.importers.boxes.voc import read_voc_file
from polypcount.importers.datasets.stills import boxes_of_file
from polypcount.importers.reading import (
    BoxNumbers,
    BoxRows,
    ImportTask,
    Options,
    Problems,
    Work,
    all_folders,
    image_size,
    list_files,
)

_NAME = re.compile(r"(Video\d+)_frame(\d{1,9})", re.IGNORECASE)


def read(path: Path, options: Options, work: Work) -> Corpus:  # noqa: ARG001
    """Read every video; its polyp has the name of the video."""
    images: dict[tuple[str, int], Path] = {}
    labels: dict[tuple[str, int], Path] = {}
    for folder in all_folders(path):
        is_mask = any(part.lower().startswith("mask") for part in folder.relative_to(path).parts)
        for file in list_files(folder, IMAGE_SUFFIXES | {".xml", ".txt"}):
            if match := _NAME.fullmatch(file.stem):
                files = images if file.suffix.lower() in IMAGE_SUFFIXES and not is_mask else labels
                if (other := files.setdefault((match[1], int(match[2])), file)) != file:
                    raise FileError(f"{file} and {other} are for the same frame")
    if not images or not labels:
        raise FileError(f"{path} has {len(images)} images VideoNN_frameNNNN and {len(labels)} labels of such names")
    videos: dict[str, list[tuple[int, Path, Path | None]]] = {}
    for (video, number), image in images.items():
        videos.setdefault(video, []).append((number, image, labels.get((video, number))))
        if (video, number) not in labels:
            work.problems.remark(f"{image.name}: no label, so no box")
    tasks = [
        ImportTask(
            (name, tuple(sorted(frames))),
            # Of the images, only the first is opened, for its size; the names of all are in the arguments.
            (min(frames)[1], *(label for _, _, label in frames if label)),
            weight=len(frames),
        )
        for name, frames in sorted(videos.items())
    ]
    return concatenate(work.read_all(_read_video, tasks))


def _read_video(name: str, frames: tuple[tuple[int, Path, Path | None], ...], problems: Problems) -> Corpus:
    """Read one video: (number, image, label) for each frame."""
    first, folder = frames[0][0], frames[0][1].parent
    size = image_size(frames[0][1])
    rows = BoxRows(problems, clamp=size)
    video_id = f"polypsize-{name}"
    for number, _, label in frames:
        try:
            for where, box in _boxes(label, size, problems) if label else ():
                rows.add(where, number - first, box, polyp=video_id)
        except FileError as problem:
            problems.failed(problem)
    video = Video(video_id, frames[-1][0] - first + 1, None, *size, str(folder), "polypsize")
    return rows.to_corpus(
        video, files={number - first: image.name for number, image, _ in frames if image.parent == folder}
    )


def _boxes(label: Path, size: tuple[int, int], problems: Problems) -> list[tuple[str, BoxNumbers]]:
    if label.suffix.lower() != ".xml":
        return boxes_of_file(label, size, problems)
    content = read_voc_file(label, problems)
    return [(item.where, item.box) for item in content.objects] if content else []
