"""Seeded noise: pictures that repeat without a seam, and values that wander in time."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.float32]


def tileable_noise(side: int, coarseness: float, rng: np.random.Generator, stretch: float = 1.0) -> Picture:
    """float32[side, side], mean 0 and deviation 1: noise of one size of detail, without a seam at the edges.

    coarseness: size of its blots as a share of the side. stretch: how much longer than wide they are, along x.
    """
    y = np.fft.fftfreq(side)[:, None] * side * coarseness
    x = np.fft.rfftfreq(side)[None, :] * side * coarseness * stretch
    spectrum = np.fft.rfft2(rng.standard_normal((side, side))) * np.exp(-(x**2 + y**2) * 2)
    spectrum[0, 0] = 0
    noise = np.fft.irfft2(spectrum, s=(side, side))
    return np.asarray(noise / max(noise.std(), 1e-9), np.float32)


def layered_noise(side: int, coarseness: Sequence[float], rng: np.random.Generator) -> Picture:
    """float32[side, side], mean 0 and deviation 1: a sum of noises, each 0.6 times as strong as the one before."""
    total = np.zeros((side, side), np.float32)
    for layer, size in enumerate(coarseness):
        total += tileable_noise(side, size, rng) * np.float32(0.6**layer)
    return total / max(float(total.std()), 1e-9)


class Drifts:
    """Values that wander in time, by name: each a sum of smooth random curves, slow and quick, mean 0 and deviation 1.

    seconds: how long they go on. periods: seconds after which each curve has forgotten its value.
    strengths: for each name, of its curves; only their ratio counts.
    """

    def __init__(
        self,
        seconds: float,
        periods: Sequence[float],
        strengths: Mapping[str, Sequence[float]],
        rng: np.random.Generator,
    ) -> None:
        self._names = list(strengths)
        table = np.array(list(strengths.values()), float)
        table /= np.linalg.norm(table, axis=1, keepdims=True)
        self._curves = [
            (period, rng.standard_normal((int(seconds / period) + 4, len(table))) * strength)
            for period, strength in zip(periods, table.T, strict=True)
        ]

    def at(self, seconds: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Values at these times, which should lie between 0 and the length."""
        total = np.zeros((len(seconds), len(self._names)))
        for period, values in self._curves:
            place = np.asarray(seconds, float) / period
            left = np.minimum(np.maximum(place.astype(int), 0), len(values) - 2)
            part = np.minimum(np.maximum(place - left, 0), 1)
            part = part * part * (3 - 2 * part)
            # Between two independent values the deviation of their mean is lower; this makes it even.
            even = np.sqrt(part**2 + (1 - part) ** 2)
            total += values[left] * ((1 - part) / even)[:, None] + values[left + 1] * (part / even)[:, None]
        return dict(zip(self._names, total.T, strict=True))
