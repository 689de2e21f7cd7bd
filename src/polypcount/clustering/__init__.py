"""From embeddings and positions of tracklets to groups."""

from polypcount.clustering.affinity import Propagation, affinity_propagation
from polypcount.clustering.base import Method, Sweep
from polypcount.clustering.bounds import NoClustering, Oracle
from polypcount.clustering.constraints import Constraints
from polypcount.clustering.grid import Grid, Preset
from polypcount.clustering.grouping import Grouping
from polypcount.clustering.methods import (
    AffinityPropagation,
    Agglomerative,
    TemporalAffinityPropagation,
    TemporalAgglomerative,
    Threshold,
    TimeOnly,
)
from polypcount.clustering.probability import PairProbability, ProbabilityLinkage, fit_pair_probability
from polypcount.clustering.scene import Scene
from polypcount.clustering.similarity import (
    VisualSimilarity,
    fuse,
    minmax,
    temporal_adjacency,
    visual_similarity,
)
from polypcount.clustering.sweep import run_tasks, sweep

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        NoClustering,
        Threshold,
        Agglomerative,
        TemporalAgglomerative,
        AffinityPropagation,
        TemporalAffinityPropagation,
        TimeOnly,
        Oracle,
    )
}

__all__ = [
    "METHODS",
    "AffinityPropagation",
    "Agglomerative",
    "Constraints",
    "Grid",
    "Grouping",
    "Method",
    "NoClustering",
    "Oracle",
    "PairProbability",
    "Preset",
    "ProbabilityLinkage",
    "Propagation",
    "Scene",
    "Sweep",
    "TemporalAffinityPropagation",
    "TemporalAgglomerative",
    "Threshold",
    "TimeOnly",
    "VisualSimilarity",
    "affinity_propagation",
    "fit_pair_probability",
    "fuse",
    "minmax",
    "run_tasks",
    "sweep",
    "temporal_adjacency",
    "visual_similarity",
]
