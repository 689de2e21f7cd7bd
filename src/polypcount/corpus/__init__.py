"""The types that travel between rooms, the folder they are kept in, and `check`."""

from polypcount.corpus.boxes import Boxes, FrameFiles
from polypcount.corpus.checks import check
from polypcount.corpus.corpus import Corpus, concatenate
from polypcount.corpus.embeddings import Embeddings, FrameVectors
from polypcount.corpus.findings import Finding, Findings
from polypcount.corpus.folder import is_corpus, refuse_unsuitable
from polypcount.corpus.geometry import iou
from polypcount.corpus.provenance import Provenance
from polypcount.corpus.records import IMAGE_SUFFIXES, Polyp, Video
from polypcount.corpus.together import refuse_crowded, tracklets_together
from polypcount.corpus.tracklets import Tracklets

__all__ = [
    "IMAGE_SUFFIXES",
    "Boxes",
    "Corpus",
    "Embeddings",
    "Finding",
    "Findings",
    "FrameFiles",
    "FrameVectors",
    "Polyp",
    "Provenance",
    "Tracklets",
    "Video",
    "check",
    "concatenate",
    "iou",
    "is_corpus",
    "refuse_crowded",
    "refuse_unsuitable",
    "tracklets_together",
]
