"""A polyp drawn from noise and simple shapes, for procedures that need no data at all: synthetic, and called so."""

import numpy as np

from polypcount.simulate.mucosa import Patient
from polypcount.simulate.noise import Picture, layered_noise, tileable_noise
from polypcount.simulate.patches import POLYP_SHARE, SIDE, Patch, make_patch

_RED, _PALE, _DARK = np.array([[0.80, 0.36, 0.32], [0.92, 0.76, 0.68], [0.58, 0.22, 0.20]], np.float32)


def drawn_polyp(patient: Patient, rng: np.random.Generator) -> Patch:
    """A polyp of this patient: a lobed mound with a pattern of pits or vessels of its own."""
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
    dome = np.clip(inside, 0, 1) ** np.float32(rng.uniform(0.35, 0.9))
    bumps = layered_noise(SIDE, (rng.uniform(0.04, 0.12), 0.03), rng)
    height = dome * np.float32(rng.uniform(0.10, 0.26)) * (1 + np.float32(rng.uniform(0.02, 0.12)) * bumps)
    toned = patient.colour * np.float32(rng.uniform(0.85, 1.15))
    tint = _RED if rng.uniform() < 0.7 else _PALE
    colour = toned + (tint - toned) * np.float32(rng.uniform(0.15, 0.6))
    colour = colour * (1 + np.float32(0.09) * layered_noise(SIDE, (0.1, 0.04, 0.015), rng)[..., None])
    colour = _patterned(colour, rng)
    # Its foot is redder or paler than the wall, and lies in its own shadow.
    foot = np.exp(-((inside / 0.09) ** 2))[..., None] * np.float32(rng.uniform(0.1, 0.35))
    colour = colour * (1 - foot) + foot * (_DARK if rng.uniform() < 0.6 else _PALE)
    opacity = np.clip((inside + np.float32(0.10)) * 9, 0, 1)
    return make_patch(colour, opacity, height.astype(np.float32), polyp)


def _patterned(colour: Picture, rng: np.random.Generator) -> Picture:
    """Pits (dots), ridges (lines) or a net of small vessels, of a size and strength of its own."""
    kind, size = rng.integers(3), float(rng.uniform(0.012, 0.035))
    noise = tileable_noise(SIDE, size, rng, stretch=float(rng.uniform(1.0, 2.5)))
    if kind == 0:
        mark = np.clip(noise - 0.6, 0, 1.2)
    elif kind == 1:
        mark = np.exp(-((noise / 0.35) ** 2))
    else:
        mark = np.exp(-((noise / 0.18) ** 2)) + 0.7 * np.exp(-((tileable_noise(SIDE, 2 * size, rng) / 0.12) ** 2))
    mark = np.clip(mark, 0, 1).astype(np.float32)[..., None] * np.float32(rng.uniform(0.12, 0.5))
    return np.asarray(colour * (1 - mark) + mark * (_DARK if rng.uniform() < 0.65 else _PALE), np.float32)
