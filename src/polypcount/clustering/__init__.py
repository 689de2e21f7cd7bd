"""From embeddings and positions of tracklets to groups."""

from polypcount.clustering.affinity import affinity_propagation
from polypcount.clustering.base import Method
from polypcount.clustering.bounds import NoClustering, Oracle
from polypcount.clustering.constraints import Constraints
from polypcount.clustering.grid import Grid, Preset
from polypcount.clustering.grouping import Grouping, Sweep
from polypcount.clustering.grouping_input import GroupingInput
from polypcount.clustering.methods import (
    AffinityPropagation,
    Agglomerative,
    TemporalAffinityPropagation,
    TemporalAgglomerative,
    Threshold,
    TimeOnly,
)
from polypcount.clustering.operating_point import COUNTING_METHODS, METHODS, Band, OperatingPoint, Scope, group_into
from polypcount.clustering.probability import PairProbability, ProbabilityLinkage, fit_pair_probability
from polypcount.clustering.similarity import (
    VisualSimilarity,
    fuse,
    minmax,
    temporal_adjacency,
    visual_similarity,
)
from polypcount.clustering.sweep import run_tasks, sweep

__all__ = [
    "COUNTING_METHODS",
    "METHODS",
    "AffinityPropagation",
    "Agglomerative",
    "Band",
    "Constraints",
    "Grid",
    "Grouping",
    "GroupingInput",
    "Method",
    "NoClustering",
    "OperatingPoint",
    "Oracle",
    "PairProbability",
    "Preset",
    "ProbabilityLinkage",
    "Scope",
    "Sweep",
    "TemporalAffinityPropagation",
    "TemporalAgglomerative",
    "Threshold",
    "TimeOnly",
    "VisualSimilarity",
    "affinity_propagation",
    "fit_pair_probability",
    "fuse",
    "group_into",
    "minmax",
    "run_tasks",
    "sweep",
    "temporal_adjacency",
    "visual_similarity",
]
