"""What a method gives back: the groups of one video, or its groups at every point of a grid."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering.similarity import Matrix

Labels = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups of the n tracklets of one video.

    Attributes:
        labels: int32[n], the group of each tracklet. Groups are numbered from 0 in the order of their first tracklets.
        exemplars: int32[groups], the tracklet that represents each group: the one that affinity propagation chose, or
            else the one with the highest sum of similarities to its group.
        converged: Whether affinity propagation converged; True for other methods.
        iterations: How many iterations it took; 0 for other methods.
        method: Name of the method.
        parameters: All parameters of the method's constructor.
    """

    labels: Labels
    exemplars: Labels
    converged: bool
    iterations: int
    method: str
    parameters: Mapping[str, Any]

    @property
    def count(self) -> int:
        """Number of groups: the polyps counted."""
        return len(self.exemplars)


@dataclass(frozen=True, eq=False)
class Sweep:
    """The groups of one video at every point of a grid.

    Attributes:
        labels: int32[points, n]. Tracklets of one group share a number from 0 to n - 1. Affinity propagation numbers
            a group by the row of its exemplar.
        iterations: int32[points], as in `Grouping`.
        converged: bool[points], as in `Grouping`.
    """

    labels: Labels
    iterations: Labels
    converged: NDArray[np.bool_]

    @classmethod
    def of(cls, labels: Labels) -> "Sweep":
        """A sweep of a method that does not iterate, from labels int32[points, n]."""
        return cls(labels, np.zeros(len(labels), np.int32), np.ones(len(labels), bool))

    @classmethod
    def unfilled(cls, points: int, tracklets: int) -> "Sweep":
        """A sweep with every tracklet alone, for tasks to fill in."""
        return cls.of(np.tile(np.arange(tracklets, dtype=np.int32), (points, 1)))


def renumber(labels: Labels) -> Labels:
    """The same groups, numbered from 0 in the order of their first members."""
    _, first, group = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[group])


def medoids(labels: Labels, similarity: Matrix) -> Labels:
    """The member of each group 0 .. groups - 1 with the highest sum of similarities to the group; ties: the first."""
    groups = [np.flatnonzero(labels == group) for group in range(int(labels.max(initial=-1)) + 1)]
    return np.array([rows[np.argmax(similarity[np.ix_(rows, rows)].sum(axis=0))] for rows in groups], np.int32)
