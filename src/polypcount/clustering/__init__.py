"""From embeddings and positions of tracklets to groups."""

from polypcount.clustering.affinity import Propagation, affinity_propagation
from polypcount.clustering.similarity import fuse, minmax, temporal_adjacency, visual_similarity

__all__ = ["Propagation", "affinity_propagation", "fuse", "minmax", "temporal_adjacency", "visual_similarity"]
