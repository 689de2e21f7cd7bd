"""The two ends between which every method lies: no grouping at all, and the truth."""

from typing import ClassVar

import numpy as np

from polypcount.clustering.base import Labels, Method, Sweep, Task, completed
from polypcount.clustering.grid import Grid
from polypcount.clustering.scene import Scene
from polypcount.errors import DataError


class NoClustering(Method):
    """Every tracklet alone, unless it must be with another: the count without any grouping."""

    name = "none"
    presets: ClassVar = {"paper": {}, "coarse": {}, "fine": {}}

    def prepare(self, scene: Scene, grid: Grid) -> tuple[Sweep, list[Task]]:
        """One point, with nothing left to do."""
        completed(self, grid)
        units = np.arange(len(scene.constraints.forbidden), dtype=np.int32)
        return _known(scene.constraints.spread(units[None])), []


class Oracle(Method):
    """The true polyps, given as `y`: the best that any grouping can do. Constraints play no part."""

    name = "oracle"
    presets: ClassVar = {"paper": {}, "coarse": {}, "fine": {}}

    def prepare(self, scene: Scene, grid: Grid) -> tuple[Sweep, list[Task]]:
        """One point, with nothing left to do."""
        completed(self, grid)
        if scene.truth is None:
            raise DataError("the oracle needs the true polyps of the tracklets")
        return _known(np.unique(scene.truth, return_inverse=True)[1].astype(np.int32)[None]), []


def _known(labels: Labels) -> Sweep:
    return Sweep(labels, np.zeros(1, np.int32), np.ones(1, bool))
