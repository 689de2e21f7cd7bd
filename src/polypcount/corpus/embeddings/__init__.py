"""A vector for each tracklet, and the files that such vectors are kept in."""

from polypcount.corpus.embeddings.embeddings import Embeddings
from polypcount.corpus.embeddings.frames import FrameVectors

__all__ = ["Embeddings", "FrameVectors"]
