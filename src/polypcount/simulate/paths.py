"""Smooth paths of a polyp's box through the frame, as the camera moves about it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_WAVES = 4
_SMALLEST, _LARGEST = 0.07, 0.75  # side of a box as a share of the frame's height


@dataclass(frozen=True)
class CameraPath:
    """Where the camera looks during one episode: a sum of slow waves for each of x, y, log distance and log aspect.

    Attributes:
        amplitude: float64[4, waves].
        hertz: float64[4, waves].
        phase: float64[4, waves].
    """

    amplitude: NDArray[np.float64]
    hertz: NDArray[np.float64]
    phase: NDArray[np.float64]

    @classmethod
    def random(cls, rng: np.random.Generator) -> "CameraPath":
        """A random path."""
        shape = (4, _WAVES)
        strength = np.array([[0.12], [0.12], [0.22], [0.08]])
        return cls(
            amplitude=strength * rng.uniform(0.3, 1.0, shape),
            hertz=rng.uniform(0.02, 0.3, shape),
            phase=rng.uniform(0, 2 * np.pi, shape),
        )

    def boxes(
        self,
        seconds: NDArray[np.float64],
        size_mm: float,
        offset: float,
        width: int,
        height: int,
        rng: np.random.Generator,
    ) -> NDArray[np.float32]:
        """Boxes [n, 4] in whole pixels inside the frame, of a polyp `offset` frame widths beside the path."""
        angle = 2 * np.pi * self.hertz[:, :, None] * seconds + self.phase[:, :, None]
        x, y, log_scale, log_aspect = (self.amplitude[:, :, None] * np.sin(angle)).sum(axis=1)
        side = np.clip(0.11 * size_mm**0.5 * np.exp(log_scale), _SMALLEST, _LARGEST) * height
        half_width, half_height = side * np.exp(log_aspect / 2) / 2, side * np.exp(-log_aspect / 2) / 2
        # The hand of the annotator shakes a little.
        shake = rng.normal(0, 0.01, (2, len(seconds))) * side
        centre_x = np.clip(0.5 + offset + x, 0.1, 0.9) * width + shake[0]
        centre_y = np.clip(0.5 + y, 0.1, 0.9) * height + shake[1]
        left, right = np.clip([centre_x - half_width, centre_x + half_width], 0, width).round()
        top, bottom = np.clip([centre_y - half_height, centre_y + half_height], 0, height).round()
        return np.column_stack([left, top, right, bottom]).astype(np.float32)
