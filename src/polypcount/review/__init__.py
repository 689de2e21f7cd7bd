"""The review page: a person looks at a count, corrects it, and the count follows."""

from polypcount.review.procedures import Procedure, find_procedures
from polypcount.review.review import Review, Snapshot
from polypcount.review.server import serve

__all__ = ["Procedure", "Review", "Snapshot", "find_procedures", "serve"]
