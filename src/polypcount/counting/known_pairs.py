"""Pairs of tracklets that somebody knows to be one polyp, or two."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.errors import DataError


def _no_pairs() -> NDArray[np.int64]:
    return np.empty((0, 2), np.int64)


@dataclass(frozen=True, eq=False)
class KnownPairs:
    """Constraints on the tracklets of a recording, beside those that were seen in one frame.

    Attributes:
        one_polyp: int64[m, 2], rows of tracklets that are one polyp.
        two_polyps: int64[k, 2], rows of tracklets that are two.
    """

    one_polyp: NDArray[np.int64] = field(default_factory=_no_pairs)
    two_polyps: NDArray[np.int64] = field(default_factory=_no_pairs)

    @classmethod
    def of_polyps(cls, polyp: ArrayLike, together: NDArray[np.int64]) -> "KnownPairs":
        """The pairs that follow from known polyps.

        Args:
            polyp: int[n], the polyp of each tracklet; -1 where it is not known.
            together: int64[m, 2], rows of tracklets with boxes in one frame.

        Raises:
            DataError: Two tracklets of one polyp have boxes in one frame.
        """
        owner = np.asarray(polyp)
        first, second = together.T
        clash = np.flatnonzero((owner[first] == owner[second]) & (owner[first] >= 0))
        if len(clash):
            one, other = together[clash[0]].tolist()
            raise DataError(
                f"tracklets {one + 1} and {other + 1} have boxes in one frame and are named as one polyp, so the named "
                "polyps cannot be kept",
                mend="keep_polyps",
            )
        members = [np.flatnonzero(owner == number) for number in np.unique(owner[owner >= 0])]
        # Members of a polyp are linked in a row. Of two polyps, one tracklet of each is enough.
        return cls(
            _pairs([pair for rows in members for pair in pairwise(rows)]),
            _pairs(list(combinations([rows[0] for rows in members], 2))),
        )


def _pairs(rows: Sequence[tuple[np.integer, np.integer]]) -> NDArray[np.int64]:
    return np.array(rows, np.int64).reshape(-1, 2)
