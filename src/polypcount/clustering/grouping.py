"""What a method gives back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering.similarity import Matrix


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups of the n tracklets of one video.

    labels: int32[n], the group of each tracklet, numbered 0 .. groups - 1 in the order of their first tracklets.
    exemplars: int32[groups], the tracklet that stands for each group: the one that affinity propagation chose, or
        else the one with the highest sum of similarities to its group.
    converged: whether affinity propagation came to rest; True for methods that have no such question.
    iterations: how many it took; 0 for other methods.
    method: name of the method; parameters: all of them, as given to its constructor.
    """

    labels: NDArray[np.int32]
    exemplars: NDArray[np.int32]
    converged: bool
    iterations: int
    method: str
    parameters: Mapping[str, Any]

    @property
    def count(self) -> int:
        """How many groups there are: the polyps counted."""
        return len(self.exemplars)


def renumber(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """The same groups, numbered 0 .. groups - 1 in the order of their first members."""
    _, first, group = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[group])


def medoids(labels: NDArray[np.int32], similarity: Matrix) -> NDArray[np.int32]:
    """The member of each group 0 .. groups - 1 with the highest sum of similarities to it; ties go to the first."""
    return np.array(
        [
            members[np.argmax(similarity[np.ix_(members, members)].sum(axis=0))]
            for members in (np.flatnonzero(labels == group) for group in range(int(labels.max(initial=-1)) + 1))
        ],
        np.int32,
    )
