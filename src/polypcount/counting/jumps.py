"""Where the appearance of a tracklet changes suddenly, because a tracker jumped to another polyp."""

import numpy as np
from numpy.typing import NDArray

from polypcount.encoder import Encoder

WINDOW = 4  # looked-at frames on either side: one alone may be blurred or covered
# A polyp behind a fold changes its appearance too, so only clear cases are split. Of 1,506 simulated tracklets of one
# polyp, 7 are split. Of tracklets joined from two polyps, 60 % are split if the polyps come from stills, and 20 % if
# they are drawn, since drawn polyps are more similar (benchmarks/count_accuracy.py --jumps).
SPLIT_BELOW = 0.5


def jumps(features: NDArray[np.float32], encoder: Encoder, below: float | None = None) -> list[int]:
    """Where a tracklet is split: frames that begin a new part, rising; none for most tracklets.

    For each possible cut, the vector of the `WINDOW` frames before it is compared with that of the `WINDOW` frames
    after it. A tracklet is split at the lowest cosine, if that is less than `below`. Then each part is split by the
    same rule.

    Args:
        features: float32[t, f], frame features of the looked-at frames, in time order.
        encoder: Computes the vectors.
        below: Highest cosine of a split; `SPLIT_BELOW` by default.
    """
    if len(features) < 2 * WINDOW:
        return []
    every = np.lib.stride_tricks.sliding_window_view(features, WINDOW, axis=0).transpose(0, 2, 1)
    vectors = encoder.encode_sequences(np.ascontiguousarray(every), np.ones(every.shape[:2], bool)).astype(np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    alike = (vectors[:-WINDOW] * vectors[WINDOW:]).sum(axis=1)  # cosine at the cut before frame WINDOW, WINDOW + 1, ...
    return _cuts(alike, 0, len(features), SPLIT_BELOW if below is None else below)


def _cuts(alike: NDArray[np.float64], first: int, last: int, below: float) -> list[int]:
    """Cuts of the frames first .. last - 1, both windows within them."""
    if last - first < 2 * WINDOW:
        return []
    inside = alike[first : last - 2 * WINDOW + 1]
    lowest = int(np.argmin(inside))
    if not inside[lowest] < below:
        return []
    cut = first + lowest + WINDOW
    return [*_cuts(alike, first, cut, below), cut, *_cuts(alike, cut, last, below)]
