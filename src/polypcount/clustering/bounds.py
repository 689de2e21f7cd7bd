"""The two references that every method is compared with: no grouping at all, and the true polyps."""

from typing import ClassVar

import numpy as np

from polypcount.clustering.base import Method, SweepTask, completed
from polypcount.clustering.grid import Grid
from polypcount.clustering.grouping import Sweep
from polypcount.clustering.grouping_input import GroupingInput
from polypcount.errors import DataError


class NoClustering(Method):
    """Every tracklet is its own group, unless a must-link joins it: the count without any grouping."""

    name = "none"
    presets: ClassVar = {"paper": {}, "coarse": {}, "fine": {}}

    def prepare(self, tracklets: GroupingInput, grid: Grid) -> tuple[Sweep, list[SweepTask]]:
        """One point, and no tasks."""
        completed(self, grid)
        units = np.arange(len(tracklets.constraints.forbidden), dtype=np.int32)
        return Sweep.of(tracklets.constraints.spread(units[None])), []


class Oracle(Method):
    """The true polyps, given as `y`: the best that any grouping can do. Constraints are not used."""

    name = "oracle"
    presets: ClassVar = NoClustering.presets

    def prepare(self, tracklets: GroupingInput, grid: Grid) -> tuple[Sweep, list[SweepTask]]:
        """One point, and no tasks."""
        completed(self, grid)
        if tracklets.truth is None:
            raise DataError("the oracle needs the true polyps of the tracklets")
        return Sweep.of(np.unique(tracklets.truth, return_inverse=True)[1].astype(np.int32)[None]), []
