"""Polyps from stills with masks: which stills of a folder can be used, and how a polyp is cut out and lit again.

A model could recognise a polyp by parts of the frame that are not tissue, so they are removed. Black corners, insets
and burned-in text become transparent, and highlights are filled from around them.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from polypcount.corpus import IMAGE_SUFFIXES
from polypcount.errors import FileError
from polypcount.importers.datasets.stills import find_masks
from polypcount.importers.reading import files_by_stem, image_size, list_files, mask_boxes, read_mask
from polypcount.machine import available_cores
from polypcount.natural import natural_key
from polypcount.progress import Progress, no_progress
from polypcount.simulate.mucosa import Patient
from polypcount.simulate.noise import Float32
from polypcount.simulate.patches import POLYP_SHARE, SIDE, Patch, make_patch
from polypcount.video import resize
from polypcount.video.images import read_image
from polypcount.workers import in_processes

_log = logging.getLogger(__name__)
_THUMBNAIL = 24
_SAME = 0.93  # two thumbnails with a higher correlation show the same polyp
_EQUAL = 6.0  # and so do two with a lower difference (root mean square, in levels)
_LARGEST_SHARE = 0.8  # largest polyp as a share of the still's shorter side, so that tissue is left around it
_SMALLEST_PIXELS = 40
_WHITE, _LARGEST_WHITE = 190, 0.2  # share of the polyp's box that may be overexposed
_STILLS_A_TASK = 50
_ALIKE = 0.75  # how far the colour is moved towards that of the patient
_LARGEST_HIGHLIGHT = 0.02 * SIDE**2
_LEAST_SHOWN = 0.2  # share of the polyp that must be visible
_SURELY_SHOWN = 0.15  # with a lower share of dark and green pixels it is
_DARK = 26
_CASE = re.compile(r"(\d+OLCV\d)_")
_NUMBERED = re.compile(r"(.*EndoCV2021_)0*(\d+)$")
_NEIGHBOURS, _ALIKE_NEIGHBOURS = 3, 0.5
_RIM = SIDE / 20  # slow changes of colour around a polyp are those over more pixels
_EVENED = 0.7  # how much of the still's own light is removed


@dataclass(frozen=True)
class Still:
    """The paths of a still and of its mask."""

    image: str
    mask: str


def list_stills(folder: Path, progress: Progress = no_progress) -> list[Still]:
    """The stills of a folder with `images/` (or images beside it) and `masks/`, in natural order, one for each polyp.

    Of stills that look nearly the same, which are frames of one polyp a moment apart, only the first is taken; so it is
    with stills that their names and their looks say are of one polyp, see `related`. Stills that cannot be animated
    are left out: their polyp fills the image, is tiny, overexposed or hardly visible, or the mask has another size.
    """
    if (folder / "images").is_dir():
        images = files_by_stem(folder / "images", IMAGE_SUFFIXES)
    else:
        images = {image.stem: image for image in list_files(folder, IMAGE_SUFFIXES)}
    masks = find_masks(folder)
    names = [name for name in sorted(images, key=natural_key) if name in masks]
    if not names:
        raise FileError(
            f"{folder} has no stills with masks; images/ and masks/ with files of the same name are expected"
        )
    pairs = [(images[name], masks[name]) for name in names]
    tasks = [(pairs[start : start + _STILLS_A_TASK],) for start in range(0, len(pairs), _STILLS_A_TASK)]
    blocks: dict[int, list[Float32 | None]] = {}
    for number, block in in_processes(_thumbnails, tasks, available_cores()):
        blocks[number] = block
        progress(sum(map(len, blocks.values())), len(names))
    thumbnails = [thumbnail for number in range(len(tasks)) for thumbnail in blocks[number]]
    usable = [k for k, thumbnail in enumerate(thumbnails) if thumbnail is not None]
    vectors = np.array([thumbnails[k] for k in usable], np.float32).reshape(len(usable), -1)
    group = related([names[k] for k in usable], vectors)
    firsts = set(np.unique(group, return_index=True)[1].tolist())
    chosen = [pairs[usable[k]] for k in first_of_each(vectors) if k in firsts]
    useless, again = len(names) - len(usable), len(usable) - len(chosen)
    if len(chosen) < len(names):
        used, of = len(chosen), len(names)
        _log.warning("%d of %d stills are used: %d are unusable, %d repeat a polyp", used, of, useless, again)
    return [Still(str(image.resolve()), str(mask.resolve())) for image, mask in chosen]


def first_of_each(images: Float32) -> list[int]:
    """The rows of images, float32[n, m], without those that look like an earlier row."""
    if len(images) == 0:
        return []
    centred = images - images.mean(axis=0) if len(images) > 2 else images - images.mean(axis=1, keepdims=True)
    unit = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-9)
    # With few polyps, the mean holds what they have in common, so even equal ones have a low correlation.
    squares = np.square(centred, dtype=np.float64).sum(axis=1)
    taken: list[int] = []
    for k in range(len(unit)):
        apart = squares[taken] + squares[k] - 2 * (centred[taken] @ centred[k])
        if not taken or ((unit[taken] @ unit[k]).max() < _SAME and apart.min() > _EQUAL**2 * images.shape[1]):
            taken.append(k)
    return taken


def related(names: Sequence[str], images: Float32) -> NDArray[np.int32]:
    """A number for each still, the same for stills that are known to be of one polyp by their names.

    It is the names of PolypGen that say so. Frames of one case, such as `176OLCV1_...`, are taken for one polyp. Frames
    whose numbers are at most 3 apart, such as `C3_EndoCV2021_0012` and `C3_EndoCV2021_0014`, are taken for one polyp if
    they look alike (correlation above 0.5; 8 % of stills that are far apart do, and 31 % of neighbours).

    Args:
        names: Of the stills, without suffix.
        images: float32[n, m], their thumbnails.
    """
    centred = images - images.mean(axis=0) if len(images) else images
    unit = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-9)
    cases: dict[str, int] = {}
    numbered: dict[tuple[str, int], int] = {}
    pairs: list[tuple[int, int]] = []
    for row, name in enumerate(names):
        if case := _CASE.match(name):
            pairs.append((row, cases.setdefault(case[1], row)))
        elif number := _NUMBERED.match(name):
            series, place = number[1], int(number[2])
            numbered[series, place] = row
            near = [numbered.get((series, place + step), row) for step in range(-_NEIGHBOURS, _NEIGHBOURS + 1)]
            pairs += [(row, other) for other in near if unit[row] @ unit[other] > _ALIKE_NEIGHBOURS]
    links = coo_array((np.ones(len(pairs)), tuple(np.array(pairs, int).reshape(-1, 2).T)), shape=(len(names),) * 2)
    return np.asarray(connected_components(links, directed=False)[1], np.int32)


def _thumbnails(pairs: list[tuple[Path, Path]]) -> list[Float32 | None]:
    """A thumbnail of each still, None where it is unusable."""
    thumbnails: list[Float32 | None] = []
    for image, mask in pairs:
        boxes, pixels = mask_boxes(mask), read_image(image)
        largest = boxes[np.argmax((boxes[:, 2:] - boxes[:, :2]).max(axis=1))] if len(boxes) else np.zeros(4, np.float32)
        left, top, right, bottom = largest.astype(int).tolist()
        side, polyp = max(right - left, bottom - top), pixels[top:bottom, left:right]
        fits = _SMALLEST_PIXELS <= side <= _LARGEST_SHARE * min(pixels.shape[:2])
        usable = fits and (polyp.min(axis=2) > _WHITE).mean() < _LARGEST_WHITE and _is_visible(image, mask, pixels)
        thumbnails.append(resize(pixels, _THUMBNAIL, _THUMBNAIL).astype(np.float32).ravel() if usable else None)
    return thumbnails


def _is_visible(image: Path, mask: Path, pixels: NDArray[np.uint8]) -> bool:
    """Whether enough of the polyp of a still can be seen for it to be animated."""
    marked = read_mask(mask)
    if marked.shape != pixels.shape[:2]:
        return False
    on_polyp = pixels[marked]
    if np.mean((on_polyp.max(axis=1) < _DARK) | _green(on_polyp)) < _SURELY_SHOWN:
        return True  # nearly always, and many times faster than cutting it out
    _, inside, usable = _cut_out(image, mask)
    return bool(inside.any() and usable[inside].mean() >= _LEAST_SHOWN)


def still_polyp(image: Path, mask: Path, patient: Patient) -> Patch:
    """The largest polyp of a still, in the colouring of a patient."""
    pixels, marked, usable = _cut_out(image, mask)
    if not marked.any() or usable[marked].mean() < _LEAST_SHOWN:
        raise FileError(f"{image}: too little of its polyp can be seen for it to be animated; leave this still out")
    holes = ~usable | _highlights(pixels)
    polyp = np.asarray(ndimage.gaussian_filter(marked.astype(np.float32), 1.0), np.float32)
    light = _evened(_filled(np.square(pixels), holes), usable)
    around = usable & ~holes & (polyp < 0.2)
    mean = light[around if around.sum() > 200 else usable].mean(axis=0)
    gain = (np.square(patient.colour) / np.maximum(mean, 1e-3)) ** np.float32(_ALIKE)
    # Gains that differ much between colours would make it green or blue.
    light = light * np.clip(gain, gain.mean() * 0.8, gain.mean() * 1.25).clip(0.5, 1.8)
    colour = np.sqrt(np.clip(_run_out(light, usable, marked, patient), 0, 1))
    return make_patch(colour, _opacity(usable, polyp), _height(marked, colour), polyp)


def _run_out(light: Float32, usable: NDArray[np.bool_], marked: NDArray[np.bool_], patient: Patient) -> Float32:
    """Move slow changes of colour towards the patient's wall, more and more away from the polyp.

    So no rim in other colours shows where the still ends and the drawn wall begins.
    """
    weight = ndimage.gaussian_filter(usable.astype(np.float32), _RIM) + np.float32(1e-3)
    slow = np.dstack([ndimage.gaussian_filter(light[..., c] * usable, _RIM) / weight for c in range(3)])
    away = np.clip(ndimage.distance_transform_edt(~marked) / (0.16 * SIDE), 0, 1)[..., None]
    gain = np.square(patient.colour) * np.float32(0.8) / np.maximum(slow, 0.02)
    return np.asarray(light * np.clip(gain, 0.25, 4) ** away, np.float32)


def _cut_out(image: Path, mask: Path) -> tuple[Float32, NDArray[np.bool_], NDArray[np.bool_]]:
    """A square about the largest marked part: colour [s, s, 3], 0 to 1; where the polyp and where tissue is, [s, s]."""
    marked = read_mask(mask)
    if image_size(image) != marked.shape[::-1]:
        raise FileError(f"{mask} must have the size of {image}")
    parts, count = ndimage.label(marked)
    if not count:
        raise FileError(f"{mask} marks nothing; leave this still out")
    largest = parts == 1 + np.argmax(np.bincount(parts.ravel())[1:])
    rows, columns = ndimage.find_objects(largest.astype(np.int32))[0]
    side = max(rows.stop - rows.start, columns.stop - columns.start) / POLYP_SHARE
    left, top = (columns.start + columns.stop - side) / 2, (rows.start + rows.stop - side) / 2
    box = (left, top, left + side, top + side)

    # A large still is first made smaller by averaging, so that no detail flickers.
    shrink = max(1, int(side / SIDE))

    def cut(pixels: NDArray[np.uint8]) -> Float32:
        small = Image.fromarray(pixels).reduce(shrink) if shrink > 1 else Image.fromarray(pixels)
        corners = tuple(value / shrink for value in box)
        square = small.transform((SIDE, SIDE), Image.Transform.EXTENT, corners, Image.Resampling.BILINEAR)
        return np.asarray(square, np.float32) / np.float32(255)

    pixels = read_image(image)
    inside = cut(np.full(marked.shape, 255, np.uint8)) > 0.99
    usable = (cut(_tissue(pixels).astype(np.uint8) * 255) > 0.9) & inside
    return cut(pixels), cut(largest.astype(np.uint8) * 255) > 0.5, usable


def _tissue(pixels: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Where a frame shows tissue: not its black border and insets, nor the text on them."""
    dark = pixels.max(axis=2) < _DARK
    # Closing the holes removes letters on black.
    dark = ndimage.binary_closing(np.pad(dark, 12, constant_values=True), iterations=6)[12:-12, 12:-12]
    parts, _ = ndimage.label(np.pad(dark, 1, constant_values=True))
    border = parts[1:-1, 1:-1] == parts[0, 0]  # the lumen is dark too, but does not touch the edge
    return ~ndimage.binary_dilation(border | _green(pixels), iterations=4)


def _green(pixels: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Where a picture is green: marks of the machine, not tissue."""
    return np.asarray((pixels[..., 1] > 1.15 * pixels[..., 0].astype(np.float32)) & (pixels[..., 1] > 60))


def _highlights(pixels: Float32) -> NDArray[np.bool_]:
    """Where the lamp is mirrored, or white text is."""
    low, high = pixels.min(axis=2), pixels.max(axis=2)
    around = ndimage.gaussian_filter(low, 8)
    white = (low > 0.72) | ((low - around > 0.14) & (high - low < 0.3))
    parts, _ = ndimage.label(white)
    white &= np.bincount(parts.ravel())[parts] < _LARGEST_HIGHLIGHT  # larger parts are white tissue
    return np.asarray(ndimage.binary_dilation(white, iterations=2))


def _filled(light: Float32, holes: NDArray[np.bool_]) -> Float32:
    """Fill holes from around them, the nearest parts first."""
    filled, left, valid = light.copy(), holes.copy(), (~holes).astype(np.float32)
    for sigma in (2.0, 5.0, 12.0, 40.0):
        weight = ndimage.gaussian_filter(valid, sigma)
        blurred = np.dstack([ndimage.gaussian_filter(light[..., c] * valid, sigma) for c in range(3)])
        ready = left & (weight > 0.05)
        filled[ready] = blurred[ready] / weight[ready][:, None]
        left &= ~ready
    filled[left] = light[~holes].mean(axis=0) if not holes.all() else 0.3
    return np.asarray(filled, np.float32)


def _evened(light: Float32, usable: NDArray[np.bool_]) -> Float32:
    """Remove most of the slow changes of brightness."""
    weight = ndimage.gaussian_filter(usable.astype(np.float32), SIDE / 6) + 1e-3
    slow = ndimage.gaussian_filter(light.mean(axis=2) * usable, SIDE / 6) / weight
    middle = float(np.median(slow[usable])) if usable.any() else 0.3
    gain = (middle / np.maximum(slow, 0.05 * middle + 1e-4)) ** _EVENED
    return np.asarray(light * np.clip(gain, 0.5, 2.0)[..., None], np.float32)


def _opacity(usable: NDArray[np.bool_], polyp: Float32) -> Float32:
    """Fades out towards the edge of the tissue and of the patch; more slowly beside the polyp than on it."""
    away = ndimage.distance_transform_edt(np.pad(usable, 1))[1:-1, 1:-1] / SIDE
    beside, on = np.clip(away / 0.14, 0, 1), np.clip(away / 0.03, 0, 1)
    return np.asarray(beside + (on - beside) * ndimage.gaussian_filter(polyp, 5), np.float32)


def _height(marked: NDArray[np.bool_], colour: Float32) -> Float32:
    """A mound over the polyp, with a relief that follows its brightness."""
    away = ndimage.distance_transform_edt(marked) / SIDE
    mound = ndimage.gaussian_filter(np.sqrt(away * POLYP_SHARE), 4) * 0.35
    grey = ndimage.gaussian_filter(colour.mean(axis=2), 1.5)
    return np.asarray(mound + 0.02 * (grey - ndimage.gaussian_filter(grey, 12)), np.float32)
