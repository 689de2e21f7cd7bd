"""A polyp taken from a still with a mask: lifted off its frame, its light evened out, so that it can be lit anew.

Nothing that belongs to the frame rather than to the tissue may stay, since it would give the identity away: black
corners, insets and burned-in text are left open, and highlights are filled from around them.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polypcount.errors import FileError
from polypcount.importers.pixels import image_size, read_mask
from polypcount.simulate.mucosa import Patient
from polypcount.simulate.noise import Picture
from polypcount.simulate.patches import POLYP_SHARE, SIDE, Patch, make_patch
from polypcount.video.images import read_image

_ALIKE = 0.75  # how far the colour is drawn to that of the patient
_LARGEST_HIGHLIGHT = 0.02 * SIDE**2
_LEAST_SHOWN = 0.2  # of the polyp
_EVENED = 0.7  # how much of the still's own light is taken out


def still_polyp(image: Path, mask: Path, patient: Patient) -> Patch:
    """The largest polyp of a still, in the colouring of a patient."""
    pixels, marked, usable = _cut_out(image, mask)
    if usable[marked].mean() < _LEAST_SHOWN:
        raise FileError(f"{image}: too little of its polyp can be seen for it to be animated; leave this still out")
    light = np.square(pixels)
    holes = ~usable | _highlights(pixels)
    light = _filled(light, holes)
    polyp = _soft(marked, 1.0)
    light = _evened(light, usable)
    around = usable & ~holes & (polyp < 0.2)
    mean = light[around if around.sum() > 200 else usable].mean(axis=0)
    gain = (np.square(patient.colour) / np.maximum(mean, 1e-3)) ** np.float32(_ALIKE)
    # Gains that differ much between colours would make it green or blue.
    light = light * np.clip(gain, gain.mean() * 0.8, gain.mean() * 1.25).clip(0.5, 1.8)
    colour = np.sqrt(np.clip(light, 0, 1))
    return make_patch(colour, _opacity(usable, polyp), _height(marked, colour), polyp)


def _cut_out(image: Path, mask: Path) -> tuple[Picture, NDArray[np.bool_], NDArray[np.bool_]]:
    """A square about the largest marked part: colour 0..1 [s, s, 3], polyp and tissue that is shown, bool[s, s]."""
    from PIL import Image
    from scipy import ndimage

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

    def cut(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
        given = Image.fromarray(picture)
        # A large still is first made smaller by averaging, so that no detail flickers.
        shrink = max(1, int(side / SIDE))
        small = given.reduce(shrink) if shrink > 1 else given
        corners = tuple(value / shrink for value in box)
        cut = small.transform((SIDE, SIDE), Image.Transform.EXTENT, corners, Image.Resampling.BILINEAR)
        return np.asarray(cut, np.float32) / np.float32(255)

    pixels = read_image(image)
    tissue = _tissue(pixels)
    inside = cut(np.full(marked.shape, 255, np.uint8)) > 0.99
    usable = (cut(tissue.astype(np.uint8) * 255) > 0.9) & inside
    return cut(pixels), cut(largest.astype(np.uint8) * 255) > 0.5, usable


def _tissue(pixels: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Where a frame shows tissue: not its black border and insets, nor what is written over them."""
    from scipy import ndimage

    dark = pixels.max(axis=2) < 26
    # Letters on a black ground vanish in it, as holes that are closed.
    dark = ndimage.binary_closing(np.pad(dark, 12, constant_values=True), iterations=6)[12:-12, 12:-12]
    parts, _ = ndimage.label(np.pad(dark, 1, constant_values=True))
    border = parts[1:-1, 1:-1] == parts[0, 0]  # the lumen is dark too, but not joined to the edge
    green = (pixels[..., 1] > 1.15 * pixels[..., 0].astype(np.float32)) & (pixels[..., 1] > 60)
    return ~ndimage.binary_dilation(border | green, iterations=4)


def _highlights(pixels: Picture) -> NDArray[np.bool_]:
    """Where lamp light is mirrored, or something white is written."""
    from scipy import ndimage

    low, high = pixels.min(axis=2), pixels.max(axis=2)
    around = ndimage.gaussian_filter(low, 8)
    white = (low > 0.72) | ((low - around > 0.14) & (high - low < 0.3))
    parts, _ = ndimage.label(white)
    white &= np.bincount(parts.ravel())[parts] < _LARGEST_HIGHLIGHT  # what is larger is white by itself
    return np.asarray(ndimage.binary_dilation(white, iterations=2))


def _filled(light: Picture, holes: NDArray[np.bool_]) -> Picture:
    """The same with holes filled from around them, the nearest parts first."""
    from scipy import ndimage

    filled, open_ = light.copy(), holes.copy()
    known = (~holes).astype(np.float32)
    for sigma in (2.0, 5.0, 12.0, 40.0):
        weight = ndimage.gaussian_filter(known, sigma)
        blurred = np.dstack([ndimage.gaussian_filter(light[..., c] * known, sigma) for c in range(3)])
        ready = open_ & (weight > 0.05)
        filled[ready] = blurred[ready] / weight[ready][:, None]
        open_ &= ~ready
    filled[open_] = light[~holes].mean(axis=0) if not holes.all() else 0.3
    return np.asarray(filled, np.float32)


def _evened(light: Picture, usable: NDArray[np.bool_]) -> Picture:
    """The same with most of the large differences of brightness taken out."""
    from scipy import ndimage

    weight = ndimage.gaussian_filter(usable.astype(np.float32), SIDE / 6) + 1e-3
    slow = ndimage.gaussian_filter(light.mean(axis=2) * usable, SIDE / 6) / weight
    middle = float(np.median(slow[usable])) if usable.any() else 0.3
    gain = (middle / np.maximum(slow, 0.05 * middle + 1e-4)) ** _EVENED
    return np.asarray(light * np.clip(gain, 0.5, 2.0)[..., None], np.float32)


def _opacity(usable: NDArray[np.bool_], polyp: Picture) -> Picture:
    """Fades out towards the edge of what is shown, and of the patch; slower beside the polyp than on it."""
    from scipy import ndimage

    room = np.pad(usable, 1)
    away = ndimage.distance_transform_edt(room)[1:-1, 1:-1] / SIDE
    beside, on = np.clip(away / 0.14, 0, 1), np.clip(away / 0.03, 0, 1)
    return np.asarray(beside + (on - beside) * ndimage.gaussian_filter(polyp, 5), np.float32)


def _height(marked: NDArray[np.bool_], colour: Picture) -> Picture:
    """A mound over the polyp, with the relief that its brightness hints at."""
    from scipy import ndimage

    away = ndimage.distance_transform_edt(marked) / SIDE
    mound = ndimage.gaussian_filter(np.sqrt(away * POLYP_SHARE), 4) * 0.35
    grey = ndimage.gaussian_filter(colour.mean(axis=2), 1.5)
    return np.asarray(mound + 0.02 * (grey - ndimage.gaussian_filter(grey, 12)), np.float32)


def _soft(marked: NDArray[np.bool_], sigma: float) -> Picture:
    from scipy import ndimage

    return np.asarray(ndimage.gaussian_filter(marked.astype(np.float32), sigma), np.float32)
