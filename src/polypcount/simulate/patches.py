"""A patch: the flat image of a polyp and the tissue around it, seen by the camera from any side; and drawn polyps."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from polypcount.simulate.layers import Texture, packed
from polypcount.simulate.mucosa import Patient
from polypcount.simulate.noise import Float32, layered_noise, tileable_noise

SIDE = 256
LEVELS = 5  # from 256 down to 16 pixels
POLYP_SHARE = 0.5  # longer side of the polyp's box, as a share of the patch's side

_RED, _PALE, _DARK = np.array([[0.80, 0.36, 0.32], [0.92, 0.76, 0.68], [0.58, 0.22, 0.20]], np.float32)


@dataclass(frozen=True, eq=False)
class Patch:
    """A patch at several resolutions.

    Attributes:
        levels: uint8[s, s, 7] for s = 256, 128, ...: red, green, blue under even light; opacity; slope of the surface
            along x and y (128 is level); share of polyp.
        outline: float32[m, 2], x and y of points around the polyp, as shares of the side from the middle (-0.5 to 0.5).
    """

    levels: tuple[NDArray[np.uint8], ...]
    outline: NDArray[np.float32]

    @cached_property
    def to_disc(self) -> NDArray[np.float64]:
        """float64[3, 3], from the patch to a polyp with the area of a disc of diameter 1 about 0, see `projection`."""
        middle = (self.outline.min(axis=0) + self.outline.max(axis=0)) / 2
        scale = float(np.sqrt(np.pi / 4 / max(_area(self.outline), 1e-6)))
        return np.array([[scale, 0, -scale * middle[0]], [0, scale, -scale * middle[1]], [0, 0, 1]])

    @cached_property
    def _textures(self) -> list[Texture]:
        return [packed(level) for level in self.levels]

    def level_for(self, pixels: float) -> Texture:
        """The level to use where the whole patch is this many pixels wide."""
        index = 0
        while index + 1 < LEVELS and self.levels[index].shape[0] > 1.5 * pixels:
            index += 1
        return self._textures[index]


def make_patch(colour: Float32, opacity: Float32, height: Float32, polyp: Float32) -> Patch:
    """A patch from images of SIDE x SIDE pixels.

    Args:
        colour: [s, s, 3], 0 to 1.
        opacity: 0 to 1; 1 hides what is behind the patch.
        height: In shares of the side.
        polyp: 0 to 1; above 0.5 inside the polyp.
    """
    slope_y, slope_x = np.gradient(height * SIDE)
    slopes = [np.clip(128 + 100 * slope, 0, 255) for slope in (slope_x, slope_y)]
    planes = np.dstack([255 * np.clip(colour, 0, 1), 255 * np.clip(opacity, 0, 1), *slopes, 255 * np.clip(polyp, 0, 1)])
    levels = [planes]
    while len(levels) < LEVELS:
        last = levels[-1]
        side = last.shape[0] // 2
        levels.append(last.reshape(side, 2, side, 2, -1).mean(axis=(1, 3)))
    return Patch(tuple(level.round().astype(np.uint8) for level in levels), _outline(polyp > 0.5))


def _outline(inside: NDArray[np.bool_], points: int = 48) -> Float32:
    """Corners of the convex hull of the polyp, float32[m, 2], at most `points` of them."""
    y, x = np.nonzero(inside)
    side = inside.shape[0]
    corners = np.column_stack([x, y]) + 0.5
    if len(corners) >= 3 and np.ptp(x) > 0 and np.ptp(y) > 0:
        corners = corners[ConvexHull(corners).vertices]
        corners = corners[np.unique(np.linspace(0, len(corners) - 1, points).astype(int))]
    return np.asarray(corners / side - 0.5, np.float32)


def _area(outline: Float32) -> float:
    """Of the polygon with these corners."""
    x, y = outline.astype(np.float64).T
    return float(abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2)


def drawn_polyp(patient: Patient, rng: np.random.Generator) -> Patch:
    """A synthetic polyp from noise and simple shapes: a lobed mound with its own pattern of pits or vessels."""
    y, x = (np.mgrid[0:SIDE, 0:SIDE].astype(np.float32) + 0.5) / SIDE - 0.5
    angle = np.arctan2(y, x)
    radius = np.full_like(x, POLYP_SHARE / 2)
    lobes = rng.integers(1, 5)
    for wave in range(1, 6):
        strength = rng.uniform(0.02, 0.09) * (1.6 if wave == lobes else 1.0) / wave**0.5
        radius *= 1 + np.float32(strength) * np.cos(wave * angle + np.float32(rng.uniform(0, 2 * np.pi)))
    stretch = rng.uniform(0.65, 1.0)
    inside = 1 - np.hypot(x, y / np.float32(stretch)) / radius
    polyp = np.clip(inside * 14 + 0.5, 0, 1)
    # It rises gently from the wall; a sharp edge would be a dark line.
    dome = np.sin(np.pi / 2 * np.clip(inside, 0, 1) ** np.float32(rng.uniform(0.5, 0.85))) ** 2
    bumps = layered_noise(SIDE, (rng.uniform(0.04, 0.12), 0.03), rng)
    height = dome * np.float32(rng.uniform(0.12, 0.26)) * (1 + np.float32(rng.uniform(0.01, 0.06)) * bumps)
    toned = patient.colour * np.float32(rng.uniform(0.85, 1.2))
    tint = _RED if rng.uniform() < 0.7 else _PALE
    colour = toned + (tint - toned) * np.float32(rng.uniform(0.25, 0.65))
    colour = colour * (1 + np.float32(0.06) * layered_noise(SIDE, (0.1, 0.04, 0.015), rng)[..., None])
    colour = _patterned(colour, rng)
    # Its foot is redder or paler than the wall.
    rim = np.exp(-((inside / 0.12) ** 2))[..., None] * np.float32(rng.uniform(0.05, 0.25))
    colour = colour * (1 - rim) + rim * (_DARK if rng.uniform() < 0.6 else _PALE)
    opacity = np.clip((inside + np.float32(0.14)) * 6, 0, 1)
    return make_patch(colour, opacity, height.astype(np.float32), polyp)


def _patterned(colour: Float32, rng: np.random.Generator) -> Float32:
    """Add pits (dots), ridges (lines) or a net of small vessels, of random size and strength."""
    kind, size = rng.integers(3), float(rng.uniform(0.012, 0.035))
    noise = tileable_noise(SIDE, size, rng, stretch=float(rng.uniform(1.0, 2.5)))
    if kind == 0:
        mark = np.clip(noise - 0.6, 0, 1.2)
    elif kind == 1:
        mark = np.exp(-((noise / 0.35) ** 2))
    else:
        mark = np.exp(-((noise / 0.18) ** 2)) + 0.7 * np.exp(-((tileable_noise(SIDE, 2 * size, rng) / 0.12) ** 2))
    mark = np.clip(mark, 0, 1).astype(np.float32)[..., None] * np.float32(rng.uniform(0.03, 0.16))
    return np.asarray(colour * (1 - mark) + mark * (_DARK if rng.uniform() < 0.65 else _PALE), np.float32)
