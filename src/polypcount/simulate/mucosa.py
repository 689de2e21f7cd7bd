"""The wall of the colon, drawn from noise: colour, vessels, folds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.simulate.layers import Texture, packed
from polypcount.simulate.noise import Float32, layered_noise, tileable_noise

SIDE = 512
_PALE, _RED, _YELLOW = np.array([[0.88, 0.66, 0.56], [0.84, 0.48, 0.40], [0.84, 0.62, 0.38]], np.float32)
_VESSEL = np.array([0.66, 0.26, 0.25], np.float32)


@dataclass(frozen=True, eq=False)
class Patient:
    """What the tissue of one patient has in common.

    Attributes:
        colour: float32[3], of the mucosa under even light.
        vessels: How visible they are, 0 to 1.
        grain: Strength of the texture.
    """

    colour: NDArray[np.float32]
    vessels: float
    grain: float

    @classmethod
    def random(cls, rng: np.random.Generator) -> "Patient":
        """A patient drawn at random."""
        weights = rng.dirichlet([2.0, 2.0, 0.8]).astype(np.float32)
        colour = weights @ np.array([_PALE, _RED, _YELLOW]) * np.float32(rng.uniform(0.85, 1.05))
        return cls(colour, float(rng.uniform(0.2, 1.0)), float(rng.uniform(0.3, 1.0)))


def draw_wall(patient: Patient, rng: np.random.Generator) -> Texture:
    """The wall without a seam, 512 x 512 points: red, green, blue under even light; slopes around and along it."""
    blotches = layered_noise(SIDE, (0.12, 0.05, 0.02), rng)[..., None]
    grain = tileable_noise(SIDE, 0.006, rng)[..., None] * np.float32(0.022 * patient.grain)
    colour = patient.colour * (1 + np.float32(0.07) * blotches * np.array([0.6, 1.0, 1.1], np.float32) + grain)
    vessel = _vessels(rng)[..., None] * np.float32(patient.vessels)
    colour = colour * (1 - vessel) + vessel * _VESSEL * (patient.colour / np.float32(0.62))
    folds = _folds(rng)
    relief = folds + np.float32(0.0035) * layered_noise(SIDE, (0.06, 0.025), rng)
    slope_y = (np.roll(relief, -1, 0) - np.roll(relief, 1, 0)) * SIDE / 2
    slope_x = (np.roll(relief, -1, 1) - np.roll(relief, 1, 1)) * SIDE / 2
    slopes = [np.clip(128 + 50 * slope, 0, 255) for slope in (slope_x, slope_y)]
    # Less light gets to the bottom of a furrow.
    colour = colour * (1 + np.float32(1.2) * (folds - folds.max()))[..., None]
    return packed(np.dstack([255 * np.clip(colour, 0, 1), *slopes]).round().astype(np.uint8))


def _vessels(rng: np.random.Generator) -> Float32:
    """0 to 1: lines where noise passes through 0, of two widths, fading in and out."""
    total = np.zeros((SIDE, SIDE), np.float32)
    for coarseness, width in ((0.16, 0.035), (0.07, 0.06)):
        lines = np.exp(-((tileable_noise(SIDE, coarseness, rng) / width) ** 2))
        total += lines * np.clip(0.3 + 0.4 * tileable_noise(SIDE, 0.2, rng), 0, 1)
    return np.clip(total, 0, 1) * np.float32(0.7)


def _folds(rng: np.random.Generator) -> Float32:
    """Height of ring-shaped folds, in shares of the side: ridges at uneven distances along y, bent around x."""
    bend = tileable_noise(SIDE, 0.25, rng, stretch=1.5) * np.float32(0.02)
    along = (np.arange(SIDE, dtype=np.float32)[:, None] / SIDE + bend) % 1
    height = np.zeros((SIDE, SIDE), np.float32)
    count = int(rng.integers(3, 6))
    for position in (np.arange(count) + rng.uniform(-0.25, 0.25, count)) / count:
        apart = (along - position + 0.5) % 1 - 0.5
        width, rise = rng.uniform(0.03, 0.07), rng.uniform(0.03, 0.09)
        reach = np.clip(1 + 0.6 * tileable_noise(SIDE, 0.3, rng), 0.1, 1.6)
        height += np.float32(rise) * reach * np.exp(-((apart / width) ** 2))
    return height
