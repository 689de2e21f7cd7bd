"""A patch: the flat picture of a polyp and of the tissue around it, which a camera can look at from any side."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.simulate.noise import Picture

SIDE = 256
LEVELS = 5  # from 256 down to 16 pixels
POLYP_SHARE = 0.5  # of a patch's side is the longer side of the polyp's box

Channels = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Patch:
    """A patch at several resolutions.

    levels: uint8[s, s, 7] for s = 256, 128, ...: red, green, blue as if evenly lit; opacity; slope of the surface
        along x and y (128 is level); share of polyp.
    outline: float32[m, 2], x and y of points around the polyp, as shares of the side from the middle (-0.5 to 0.5).
    """

    levels: tuple[Channels, ...]
    outline: NDArray[np.float32]

    def level_for(self, pixels: float) -> Channels:
        """The level to take where the whole patch is that many pixels wide."""
        index = 0
        while index + 1 < LEVELS and self.levels[index].shape[0] > 1.5 * pixels:
            index += 1
        return self.levels[index]


def make_patch(colour: Picture, opacity: Picture, height: Picture, polyp: Picture) -> Patch:
    """From pictures of SIDE x SIDE pixels.

    colour: 0..1, [s, s, 3]. opacity: 0..1, where the patch covers what is behind it. height: in shares of the side.
    polyp: 0..1, above 0.5 inside.
    """
    slope_y, slope_x = np.gradient(height * SIDE)
    slopes = [np.clip(128 + 100 * slope, 0, 255) for slope in (slope_x, slope_y)]
    planes = np.dstack([255 * np.clip(colour, 0, 1), 255 * np.clip(opacity, 0, 1), *slopes, 255 * np.clip(polyp, 0, 1)])
    levels = [planes]
    while len(levels) < LEVELS:
        last = levels[-1]
        side = last.shape[0] // 2
        levels.append(last.reshape(side, 2, side, 2, -1).mean(axis=(1, 3)))
    return Patch(tuple(level.round().astype(np.uint8) for level in levels), outline_of(polyp > 0.5))


def outline_of(inside: NDArray[np.bool_], points: int = 48) -> NDArray[np.float32]:
    """Corners of the smallest convex shape around the polyp, float32[m, 2], at most `points` of them."""
    from scipy.spatial import ConvexHull

    y, x = np.nonzero(inside)
    side = inside.shape[0]
    corners = np.column_stack([x, y]) + 0.5
    if len(corners) >= 3 and np.ptp(x) > 0 and np.ptp(y) > 0:
        corners = corners[ConvexHull(corners).vertices]
        corners = corners[np.unique(np.linspace(0, len(corners) - 1, points).astype(int))]
    return np.asarray(corners / side - 0.5, np.float32)
