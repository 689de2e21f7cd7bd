"""Which stills of a folder can be polyps: each with a mask, none twice."""

import logging
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polypcount.errors import FileError
from polypcount.importers.files import IMAGE_SUFFIXES, files_by_stem, list_files
from polypcount.importers.pixels import mask_boxes
from polypcount.importers.stills import find_masks
from polypcount.machine import available_cores
from polypcount.natural import natural_key
from polypcount.progress import Progress, no_progress
from polypcount.simulate.scene_file import Still
from polypcount.video.images import read_image
from polypcount.workers import in_processes

_log = logging.getLogger(__name__)
_THUMBNAIL = 24
_SAME = 0.93  # correlation of two thumbnails, above which they show the same polyp
_EQUAL = 6.0  # levels of difference (root mean square), below which they do, too
_LARGEST_SHARE = 0.8  # of the shorter side of a still may be polyp, so that something is left around it
_SMALLEST_PIXELS = 40
_WHITE, _LARGEST_WHITE = 190, 0.2  # share of the polyp's box that may be overexposed
_STILLS_A_TASK = 50


def list_stills(folder: Path, progress: Progress = no_progress) -> list[Still]:
    """The stills of a folder with `images/` and `masks/`, in natural order, that show one polyp each.

    Of stills that look nearly the same, which are frames of one polyp a moment apart, only the first is taken. So are
    those left out whose polyp fills the picture, is tiny, or is overexposed.
    """
    root = folder / "images"
    if root.is_dir():
        images = files_by_stem(root, IMAGE_SUFFIXES)
    else:  # beside masks/, not below
        images = {image.stem: image for image in list_files(folder, IMAGE_SUFFIXES)}
    masks = find_masks(folder)
    names = [name for name in sorted(images, key=natural_key) if name in masks]
    if not names:
        raise FileError(
            f"{folder} has no stills with masks; images/ and masks/ with files of the same name are expected"
        )
    blocks = [names[start : start + _STILLS_A_TASK] for start in range(0, len(names), _STILLS_A_TASK)]
    tasks = [([(images[name], masks[name]) for name in block],) for block in blocks]
    found: dict[int, list[NDArray[np.float32] | None]] = {}
    for number, looked_at in in_processes(_looked_at, tasks, available_cores()):
        found[number] = looked_at
        progress(sum(map(len, found.values())), len(names))
    thumbnails = [thumbnail for number in range(len(blocks)) for thumbnail in found[number]]
    usable = [k for k, thumbnail in enumerate(thumbnails) if thumbnail is not None]
    pictures = np.array([thumbnails[k] for k in usable], np.float32).reshape(len(usable), -1)
    chosen = [usable[k] for k in first_of_each(pictures)]
    _log.info(
        "%d of %d stills are taken: %d are of no use, %d show a polyp again",
        len(chosen),
        len(names),
        len(names) - len(usable),
        len(usable) - len(chosen),
    )
    return [Still(str(images[names[k]].resolve()), str(masks[names[k]].resolve())) for k in chosen]


def first_of_each(pictures: NDArray[np.float32]) -> list[int]:
    """Numbers of the pictures, float32[n, m], that do not look like one with a lower number that is taken."""
    if len(pictures) == 0:
        return []
    centred = pictures - pictures.mean(axis=0) if len(pictures) > 2 else pictures - pictures.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    unit = centred / np.maximum(length, 1e-9)
    # Where few polyps make up a folder, what they have in common is in the mean, and their correlation is low.
    squares = np.square(centred, dtype=np.float64).sum(axis=1)
    least = _EQUAL**2 * pictures.shape[1]
    taken: list[int] = []
    for k in range(len(unit)):
        apart = squares[taken] + squares[k] - 2 * (centred[taken] @ centred[k])
        if not taken or ((unit[taken] @ unit[k]).max() < _SAME and apart.min() > least):
            taken.append(k)
    return taken


def _looked_at(pairs: list[tuple[Path, Path]]) -> list[NDArray[np.float32] | None]:
    """A thumbnail of each still, or None where it is of no use."""
    from polypcount.video import resize

    thumbnails: list[NDArray[np.float32] | None] = []
    for image, mask in pairs:
        boxes = mask_boxes(mask)
        pixels = read_image(image)
        largest = boxes[np.argmax((boxes[:, 2:] - boxes[:, :2]).max(axis=1))] if len(boxes) else np.zeros(4, np.float32)
        left, top, right, bottom = largest.astype(int).tolist()
        side, polyp = max(right - left, bottom - top), pixels[top:bottom, left:right]
        fits = _SMALLEST_PIXELS <= side <= _LARGEST_SHARE * min(pixels.shape[:2])
        if fits and (polyp.min(axis=2) > _WHITE).mean() < _LARGEST_WHITE:
            thumbnails.append(resize(pixels, _THUMBNAIL, _THUMBNAIL).astype(np.float32).ravel())
        else:
            thumbnails.append(None)
    return thumbnails
