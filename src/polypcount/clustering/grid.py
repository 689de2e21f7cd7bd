"""Search grids: which values of a method's parameters are tried, and in which order."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from polypcount.errors import DataError

Preset = Literal["paper", "coarse", "fine"]


@dataclass(frozen=True)
class Grid:
    """All combinations of the values of some parameters.

    Attributes:
        axes: The values of each parameter by name. Points are numbered with the last parameter changing fastest. So
            points of one fused matrix, which differ in the preference or the threshold only, have adjacent numbers.
    """

    axes: Mapping[str, tuple[float, ...]]

    def __post_init__(self) -> None:
        try:
            axes = {name: tuple(map(float, values)) for name, values in self.axes.items()}
        except (TypeError, ValueError):
            raise DataError(f"a grid takes several numbers for each parameter, found {dict(self.axes)}") from None
        for name, values in axes.items():
            if not values:
                raise DataError(f"the grid has no value for {name}; give at least one")
            if not all(map(math.isfinite, values)):
                raise DataError(f"the grid's values for {name} must be finite numbers, found {list(values)}")
            if len(set(values)) < len(values):
                raise DataError(f"the grid's values for {name} must differ from each other, found {list(values)}")
        object.__setattr__(self, "axes", axes)

    def __len__(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each parameter."""
        return tuple(map(len, self.axes.values()))

    def point(self, index: int) -> dict[str, float]:
        """The parameters of one point."""
        if not 0 <= index < len(self):
            raise DataError(f"the grid has points 0 to {len(self) - 1}, asked for {index}")
        positions = np.unravel_index(index, self.shape)
        return {name: values[position] for (name, values), position in zip(self.axes.items(), positions, strict=True)}

    def blocks(self) -> list[tuple[dict[str, float], slice]]:
        """The combinations of all parameters but the last, and the points of each."""
        if not self.axes:
            return [({}, slice(0, 1))]
        names, inner = list(self.axes)[:-1], self.shape[-1]
        outer = itertools.product(*(self.axes[name] for name in names))
        return [
            (dict(zip(names, values, strict=True)), slice(k * inner, (k + 1) * inner)) for k, values in enumerate(outer)
        ]


def steps(first: float, last: float, step: float) -> tuple[float, ...]:
    """Numbers from first to last, both included, without the rounding errors of repeated addition."""
    count = round((last - first) / step)
    return tuple(round(first + k * step, 10) for k in range(count + 1))


THRESHOLDS: dict[Preset, tuple[float, ...]] = {
    "paper": steps(0, 1, 0.01),
    "coarse": steps(0, 1, 0.05),
    "fine": steps(0, 1, 0.001),
}
# Similarities lie between 0 and 1. With absolute ones, so do the preferences that make a difference.
PREFERENCES: dict[Preset, tuple[float, ...]] = {
    "paper": steps(-5, 5, 0.25),
    "coarse": (-5.0, -2.0, -1.0, -0.5, 0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9),
    "fine": steps(-5, -1.25, 0.25) + steps(-1, -0.05, 0.05) + steps(0, 1, 0.01),
}
ALPHAS: dict[Preset, tuple[float, ...]] = {
    "paper": steps(0, 1, 0.05),
    "coarse": steps(0.1, 0.9, 0.2),
    "fine": steps(0, 1, 0.05),
}
GAMMAS: dict[Preset, tuple[float, ...]] = {
    "paper": steps(0.1, 0.9, 0.1) + steps(1, 10, 0.375),
    "coarse": (0.5, 1.0, 2.0, 5.0, 10.0),
    "fine": (0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 7.5, 10.0, 15.0, 20.0),
}
