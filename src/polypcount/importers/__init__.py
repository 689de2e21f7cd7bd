"""Files of datasets and of other programs into corpora, and boxes of corpora into such files."""

from polypcount.importers.boxes.any_format import read_boxes
from polypcount.importers.merge import merge, published_counts
from polypcount.importers.published import REAL_COLON, TRAINING, PublishedCounts
from polypcount.importers.reading import BoxConvention, Options
from polypcount.importers.registry import FORMATS, Format, read_corpus, write_boxes

__all__ = [
    "FORMATS",
    "REAL_COLON",
    "TRAINING",
    "BoxConvention",
    "Format",
    "Options",
    "PublishedCounts",
    "merge",
    "published_counts",
    "read_boxes",
    "read_corpus",
    "write_boxes",
]
