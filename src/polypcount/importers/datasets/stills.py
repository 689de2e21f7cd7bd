"""Stills with masks or YOLO labels, such as Kvasir-SEG: every still is a polyp of its own.

Images lie in `images/` (or in the folder itself), masks of the same name in `masks/` or a folder whose name begins with
`mask` or `ground`, labels of the same name in `labels/`. Below these there may be folders such as train, val and test.
"""

from pathlib import Path

from polypcount.corpus import IMAGE_SUFFIXES, Corpus, Video, concatenate
from polypcount.errors import FileError
from polypcount.importers.boxes.yolo import in_pixels, read_labels
from polypcount.importers.reading import (
    BoxNumbers,
    BoxRows,
    ImportTask,
    Options,
    Problems,
    Work,
    files_by_stem,
    image_size,
    list_files,
    mask_boxes,
    subfolders,
)
from polypcount.natural import natural_key

_STILLS_A_TASK = 100


def read_kvasir_seg(path: Path, options: Options, work: Work) -> Corpus:
    """Read Kvasir-SEG, whatever its folder is called."""
    return read(path, options, work, "kvasir-seg")


def read(path: Path, options: Options, work: Work, dataset: str | None = None) -> Corpus:  # noqa: ARG001
    """Read every image that has a mask or a label; each becomes a video of one frame with one polyp.

    Boxes are those around the parts of the mask or, without a mask, those of the label. The folder between `images`
    and the file, if any, is the split. The dataset has the name of the folder, unless it is given.
    """
    masks = find_masks(path)
    labels = files_by_stem(path / "labels", [".txt"]) if (path / "labels").is_dir() else {}
    root = path / "images" if (path / "images").is_dir() else path
    images = {image.stem: image for image in list_files(path, IMAGE_SUFFIXES)}
    if root != path:
        images = files_by_stem(root, IMAGE_SUFFIXES)
    stills = []
    for stem in sorted(images, key=natural_key):
        label = masks.get(stem) or labels.get(stem)
        if label is None:
            work.problems.bad(images[stem], "it has neither a mask nor a label")
        else:
            split = images[stem].parent.relative_to(root).as_posix()
            stills.append((images[stem], label, "" if split == "." else split))
    if not stills:
        raise FileError(f"{path} has no images with masks (in masks/) or YOLO labels (in labels/)")
    tasks = []
    for start in range(0, len(stills), _STILLS_A_TASK):
        block = tuple(stills[start : start + _STILLS_A_TASK])
        files = tuple(file for image, label, _ in block for file in (image, label))
        # Decoding a mask takes as long as reading many small files.
        tasks.append(ImportTask((dataset or path.resolve().name, block), files, weight=20 * len(block)))
    return concatenate(work.read_all(_read_stills, tasks))


def find_masks(path: Path) -> dict[str, Path]:
    """Mask images by name, from folders beside the images whose names say so."""
    masks: dict[str, Path] = {}
    for folder in subfolders(path):
        if folder.name.lower().startswith(("mask", "ground")):
            masks |= files_by_stem(folder, IMAGE_SUFFIXES)
    return masks


def _read_stills(dataset: str, stills: tuple[tuple[Path, Path, str], ...], problems: Problems) -> Corpus:
    """Read a block of stills: (image, mask or label, split) each."""
    parts = []
    for image, label, split in stills:
        name = f"{dataset}-{image.stem}"
        try:
            size = image_size(image)
            boxes = boxes_of_file(label, size, problems)
        except FileError as problem:
            problems.failed(problem)
            continue
        if not boxes:
            problems.remark(f"{label}: it marks nothing, so the still has no box")
        rows = BoxRows(problems, clamp=size)
        for where, box in boxes:
            rows.add(where, 0, box, polyp=name)
        video = Video(name, 1, None, *size, str(image.parent), dataset, split=split)
        parts.append(rows.to_corpus(video, files={0: image.name}))
    return concatenate(parts)


def boxes_of_file(path: Path, size: tuple[int, int], problems: Problems) -> list[tuple[str, BoxNumbers]]:
    """The position in the file and the box, for each box in a mask or YOLO label of an image of this size."""
    if path.suffix.lower() != ".txt":
        return boxes_of_mask(path, size)
    return [(where, in_pixels(shares, size)) for where, shares, _, _ in read_labels(path, problems)]


def boxes_of_mask(mask: Path, size: tuple[int, int]) -> list[tuple[str, BoxNumbers]]:
    """The boxes around the parts of a mask, which must have the size of its image."""
    width, height = image_size(mask)
    if (width, height) != size:
        raise FileError(f"{mask} must be {size[0]} x {size[1]} pixels as its image, found {width} x {height}")
    return [(str(mask), (x1, y1, x2, y2)) for x1, y1, x2, y2 in mask_boxes(mask).tolist()]
