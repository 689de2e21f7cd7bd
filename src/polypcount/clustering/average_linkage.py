"""Average linkage, compiled: the tree of scipy, to the last bit, without holding Python's lock.

A chain of nearest neighbours is followed until two groups are nearest to each other, and these join. The distance of
the new group to any other is the mean over both parts, weighted by their sizes. The order of joins does not matter for
the tree, so they are sorted by distance at the end.
"""

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering.similarity import Matrix
from polypcount.compiled import compiled


def average_linkage(distance: Matrix) -> NDArray[np.float64]:
    """The tree over n units, float64[n - 1, 3]: the two nodes that join, and their distance; nearest first.

    Nodes 0 to n - 1 are the units, and node n + k is the group of join k.

    Args:
        distance: float64[n, n], symmetric; it is overwritten.
    """
    joins = _joins(distance)
    joins = np.asarray(joins[np.argsort(joins[:, 2], kind="stable")])
    _name_nodes(joins)
    return joins


@compiled()
def _joins(distance):  # type: ignore[no-untyped-def]
    """The joins in the order of the chain; a group has the number of its last unit."""
    n = len(distance)
    joins = np.empty((n - 1, 3))
    size = np.ones(n, np.int64)
    chain, length, first = np.empty(n, np.int64), 0, 0
    for k in range(n - 1):
        if length == 0:
            while size[first] == 0:
                first += 1
            chain[0], length = first, 1
        while True:
            one = chain[length - 1]
            # Of equally near groups, the one before in the chain is taken, so that the chain ends.
            other = chain[length - 2] if length > 1 else -1
            nearest = distance[one, other] if length > 1 else np.inf
            for i in range(n):
                if distance[one, i] < nearest and size[i] > 0 and i != one:
                    nearest, other = distance[one, i], i
            if length > 1 and other == chain[length - 2]:
                break
            chain[length] = other
            length += 1
        length -= 2
        gone, kept = min(one, other), max(one, other)
        joins[k, 0], joins[k, 1], joins[k, 2] = gone, kept, nearest
        for i in range(n):
            if size[i] > 0 and i != gone and i != kept:
                mean = (size[gone] * distance[gone, i] + size[kept] * distance[kept, i]) / (size[gone] + size[kept])
                distance[kept, i] = distance[i, kept] = mean
        size[kept] += size[gone]
        size[gone] = 0
    return joins


@compiled()
def _name_nodes(joins):  # type: ignore[no-untyped-def]
    """Put the numbers of nodes in place of the last units of groups; of the two, the lower comes first."""
    n = len(joins) + 1
    above = np.arange(2 * n - 1)  # of each node, one nearer to the root; a root is its own
    for k in range(n - 1):
        left, right = int(joins[k, 0]), int(joins[k, 1])
        while above[left] != left:
            above[left] = above[above[left]]
            left = above[left]
        while above[right] != right:
            above[right] = above[above[right]]
            right = above[right]
        joins[k, 0], joins[k, 1] = min(left, right), max(left, right)
        above[left] = above[right] = n + k
