"""The review page: a person looks at a count, corrects it, and the count follows."""

from polypcount.review.procedures import Procedure, find_procedures
from polypcount.review.review import Moment, Review
from polypcount.review.server import serve

__all__ = ["Moment", "Procedure", "Review", "find_procedures", "serve"]
