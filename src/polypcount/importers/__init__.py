"""Files of datasets and of other programs into corpora, and boxes of corpora into such files."""

from polypcount.importers.boxes.any_format import read_boxes
from polypcount.importers.merge import merge, published_counts
from polypcount.importers.reading import BoxConvention, Options
from polypcount.importers.registry import FORMATS, Format, read_corpus, write_boxes

__all__ = [
    "FORMATS",
    "BoxConvention",
    "Format",
    "Options",
    "merge",
    "published_counts",
    "read_boxes",
    "read_corpus",
    "write_boxes",
]
