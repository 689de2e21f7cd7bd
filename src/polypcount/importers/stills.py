"""Stills with masks or YOLO labels, such as Kvasir-SEG: every still is a polyp of its own.

Images lie in `images/` (or in the folder itself), masks of the same name in `masks/` or a folder whose name begins with
`mask` or `ground`, labels of the same name in `labels/`. Below these there may be folders such as train, val and test.
"""

from pathlib import Path

from polypcount.corpus import Corpus, Video, concatenate
from polypcount.errors import FileError
from polypcount.importers.decimals import decimal
from polypcount.importers.files import IMAGE_SUFFIXES, files_by_stem, list_files, read_text, subfolders
from polypcount.importers.options import Options
from polypcount.importers.pixels import image_size, mask_boxes
from polypcount.importers.problems import Problems
from polypcount.importers.rows import Box, Rows, to_xyxy
from polypcount.importers.work import Task, Work
from polypcount.natural import natural_key

_TXT = frozenset({".txt"})
_LARGEST_LABEL_BYTES = 1 << 20
_STILLS_A_TASK = 100


def read_kvasir_seg(path: Path, options: Options, work: Work) -> Corpus:  # noqa: ARG001
    """Read Kvasir-SEG, wherever it lies."""
    return _read(path, "kvasir-seg", work)


def read(path: Path, options: Options, work: Work) -> Corpus:  # noqa: ARG001
    """Read a folder of stills, which gives the dataset its name."""
    return _read(path, path.resolve().name, work)


def _read(path: Path, dataset: str, work: Work) -> Corpus:
    """Read every image that has a mask or a label; each becomes a video of one frame with one polyp.

    Boxes are those around the parts of the mask or, without a mask, those of the label. The folder between `images`
    and the file, if any, is the split.
    """
    images_root = path / "images" if (path / "images").is_dir() else path
    masks, labels = find_masks(path), {}
    if (path / "labels").is_dir():
        labels = files_by_stem(path / "labels", _TXT)
    images = files_by_stem(images_root, IMAGE_SUFFIXES) if images_root != path else _images_beside(path)
    stills = []
    for stem in sorted(images, key=natural_key):
        if stem in masks or stem in labels:
            split = images[stem].parent.relative_to(images_root).as_posix()
            stills.append((stem, images[stem], masks.get(stem), labels.get(stem), "" if split == "." else split))
        else:
            work.problems.bad(images[stem], "it has neither a mask nor a label")
    if not stills:
        raise FileError(f"{path} has no images with masks (in masks/) or YOLO labels (in labels/)")
    tasks = []
    for start in range(0, len(stills), _STILLS_A_TASK):
        block = tuple(stills[start : start + _STILLS_A_TASK])
        files = tuple(file for _, *places, _ in block for file in places if isinstance(file, Path))
        # Decoding a mask takes as long as reading many small files.
        tasks.append(Task((dataset, block), files, weight=20 * len(block)))
    return concatenate(work.read_all(read_stills, tasks))


def find_masks(path: Path) -> dict[str, Path]:
    """Mask images by name, from folders beside the images whose names say so."""
    masks: dict[str, Path] = {}
    for folder in subfolders(path):
        if folder.name.lower().startswith(("mask", "ground")):
            masks |= files_by_stem(folder, IMAGE_SUFFIXES)
    return masks


def _images_beside(path: Path) -> dict[str, Path]:
    return {image.stem: image for image in list_files(path, IMAGE_SUFFIXES)}


def read_stills(
    dataset: str, stills: tuple[tuple[str, Path, Path | None, Path | None, str], ...], problems: Problems
) -> Corpus:
    """Read a block of stills: (name, image, mask, label, split) each."""
    parts = []
    for stem, image, mask, label, split in stills:
        try:
            size = image_size(image)
            rows = Rows(problems, clamp=size)
            name = f"{dataset}-{stem}"
            boxes = _boxes_of_mask(mask, size) if mask else boxes_of_label(label, size, problems) if label else []
            for where, box in boxes:
                rows.add(where, 0, box, polyp=name)
            if not boxes:
                problems.remark(f"{mask or label}: it marks nothing, so the still has no box")
        except FileError as problem:
            problems.failed(problem)
            continue
        video = Video(name, 1, None, *size, str(image.parent), dataset, split=split)
        parts.append(rows.to_corpus(video, files=([0], [image.name])))
    return concatenate(parts)


def _boxes_of_mask(mask: Path, size: tuple[int, int]) -> list[tuple[str, Box]]:
    found = image_size(mask)
    if found != size:
        raise FileError(f"{mask} must be {size[0]} x {size[1]} pixels as its image, found {found[0]} x {found[1]}")
    return [(str(mask), (float(a), float(b), float(c), float(d))) for a, b, c, d in mask_boxes(mask)]


def boxes_of_label(label: Path, size: tuple[int, int], problems: Problems) -> list[tuple[str, Box]]:
    """Where and box of each line of a YOLO label."""
    boxes = []
    for number, line in enumerate(read_text(label, _LARGEST_LABEL_BYTES).splitlines(), 1):
        if line.strip():
            words = line.split()
            numbers = [value for word in words[:5] if (value := decimal(word)) is not None]
            if len(numbers) != 5:
                problems.bad(f"{label}:{number}", f"'class cx cy w h' is expected, found {line[:80]!r}")
                continue
            width, height = size
            _, cx, cy, w, h = numbers
            boxes.append((f"{label}:{number}", to_xyxy((cx * width, cy * height, w * width, h * height), "cxcywh")))
    return boxes
