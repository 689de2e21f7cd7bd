"""Average linkage gives the tree of scipy, to the last bit."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from polypcount.clustering.average_linkage import average_linkage


@pytest.mark.parametrize("levels", [0, 1, 4, 10, 10**9])
def test_the_tree_is_that_of_scipy(levels: int) -> None:
    """levels: How many different distances there are; with few, nearly all are equal."""
    rng = np.random.default_rng(levels)
    for _ in range(60):
        n = int(rng.integers(2, 40))
        upper = np.triu(rng.integers(0, levels + 1, (n, n)) / (levels + 1), 1)
        distance = upper + upper.T
        expected = linkage(squareform(distance), "average")
        assert np.array_equal(average_linkage(distance), expected[:, :3])


def test_one_unit_has_no_joins() -> None:
    assert average_linkage(np.zeros((1, 1))).shape == (0, 3)
