"""Small videos with made-up embeddings."""

import warnings

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.cluster import affinity_propagation as reference

from polypcount.clustering import GroupingInput


def polyps_in_time(count: int, seed: int, polyps: int = 3, noise: float = 0.8) -> GroupingInput:
    """Tracklets of some polyps, which come one after the other and now and then return."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(polyps, 8))
    truth = np.sort(rng.integers(0, polyps, count))
    late = rng.random(count) < 0.15
    truth[late] = rng.integers(0, polyps, late.sum())
    positions = np.sort(np.round(rng.random(count), 3))
    return GroupingInput.of(centres[truth] + noise * rng.normal(size=(count, 8)), positions, truth=truth)


def partition(labels: NDArray[np.int32]) -> set[frozenset[int]]:
    """The groups as sets of rows, whatever they are called."""
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


# The version whose ties and iteration counts are ours; another may decide ties otherwise.
PINNED = "1.9."


def scikit_learn(
    similarity: NDArray[np.float64], preference: float, **options: float
) -> tuple[list[int], NDArray[np.int32], int]:
    """Exemplars, labels and iterations by scikit-learn; where it finds no exemplar, every point is its own, as ours."""
    assert sklearn.__version__.startswith(PINNED)
    settings = {"damping": 0.9, "max_iter": 500, "convergence_iter": 50, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exemplars, labels, iterations = reference(
            similarity.copy(), preference=preference, random_state=42, return_n_iter=True, **settings
        )
    if (labels < 0).any():
        return list(range(len(similarity))), np.arange(len(similarity), dtype=np.int32), iterations
    return exemplars.tolist(), labels.astype(np.int32), iterations
