"""Seeded noise: images that repeat without a seam, and values that drift in time."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]


def tileable_noise(side: int, coarseness: float, rng: np.random.Generator, stretch: float = 1.0) -> Float32:
    """Noise float32[side, side] of one size of detail, without a seam at the edges; mean 0 and standard deviation 1.

    Args:
        side: Side of the image in pixels.
        coarseness: Size of its spots as a share of the side.
        rng: Source of the noise.
        stretch: How much longer than wide the spots are, along x.
    """
    y = np.fft.fftfreq(side)[:, None] * side * coarseness
    x = np.fft.rfftfreq(side)[None, :] * side * coarseness * stretch
    spectrum = np.fft.rfft2(rng.standard_normal((side, side))) * np.exp(-(x**2 + y**2) * 2)
    spectrum[0, 0] = 0
    noise = np.fft.irfft2(spectrum, s=(side, side))
    return np.asarray(noise / max(noise.std(), 1e-9), np.float32)


def layered_noise(side: int, coarseness: Sequence[float], rng: np.random.Generator) -> Float32:
    """A sum of noises, float32[side, side], each 0.6 times as strong as the one before; standard deviation 1."""
    total = np.zeros((side, side), np.float32)
    for layer, size in enumerate(coarseness):
        total += tileable_noise(side, size, rng) * np.float32(0.6**layer)
    return total / max(float(total.std()), 1e-9)


class Drifts:
    """Values that drift in time, by name: each a sum of smooth random curves, with mean 0 and standard deviation 1.

    Args:
        seconds: Length of time that the curves cover.
        periods: Seconds after which each curve is independent of its earlier value.
        strengths: Strengths of the curves, for each name; only their ratio counts.
        rng: Source of the curves.
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
            position = np.asarray(seconds, float) / period
            left = np.minimum(np.maximum(position.astype(int), 0), len(values) - 2)
            part = np.minimum(np.maximum(position - left, 0), 1)
            part = part * part * (3 - 2 * part)
            # The mean of two independent values has a lower deviation; dividing by this makes it 1 everywhere.
            even = np.sqrt(part**2 + (1 - part) ** 2)
            total += values[left] * ((1 - part) / even)[:, None] + values[left + 1] * (part / even)[:, None]
        return dict(zip(self._names, total.T, strict=True))
