"""Count the distinct polyps in a colonoscopy recording.

The names below are loaded when they are first used, so that `import polypcount` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from polypcount.version import __version__

if TYPE_CHECKING:
    from polypcount.corpus import Corpus, Embeddings, check, concatenate
    from polypcount.counting import Counter, count
    from polypcount.encoder import embed, load_encoder
    from polypcount.errors import PolypcountError
    from polypcount.evaluation import leave_one_out
    from polypcount.importers import merge, read_corpus, write_boxes
    from polypcount.simulate import simulate_timelines
    from polypcount.tracking import fragments, link_tracklets
    from polypcount.training import train


_HOME_OF = {
    "Corpus": "polypcount.corpus",
    "Embeddings": "polypcount.corpus",
    "check": "polypcount.corpus",
    "Counter": "polypcount.counting",
    "count": "polypcount.counting",
    "concatenate": "polypcount.corpus",
    "embed": "polypcount.encoder",
    "load_encoder": "polypcount.encoder",
    "PolypcountError": "polypcount.errors",
    "leave_one_out": "polypcount.evaluation",
    "merge": "polypcount.importers",
    "read_corpus": "polypcount.importers",
    "write_boxes": "polypcount.importers",
    "simulate_timelines": "polypcount.simulate",
    "fragments": "polypcount.tracking",
    "link_tracklets": "polypcount.tracking",
    "train": "polypcount.training",
}

__all__ = [
    "Corpus",
    "Counter",
    "Embeddings",
    "PolypcountError",
    "__version__",
    "check",
    "concatenate",
    "count",
    "embed",
    "fragments",
    "leave_one_out",
    "link_tracklets",
    "load_encoder",
    "merge",
    "read_corpus",
    "simulate_timelines",
    "train",
    "write_boxes",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'polypcount' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
