"""Files of datasets and of other programs into corpora, and boxes of corpora into such files."""

from polypcount.importers.merge import merge, published_counts
from polypcount.importers.options import Options
from polypcount.importers.registry import FORMATS, Format, read_corpus, write_boxes

__all__ = ["FORMATS", "Format", "Options", "merge", "published_counts", "read_corpus", "write_boxes"]
