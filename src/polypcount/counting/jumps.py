"""Where the looks of a tracklet change at once, as where a tracker went over to another polyp."""

import numpy as np
from numpy.typing import NDArray

from polypcount.encoder import Encoder

WINDOW = 4  # looked-at frames on either side: one alone may be blurred or covered
# A polyp behind a fold changes its looks too, so only what leaves no doubt is split. Of 804 simulated tracklets of one
# polyp none is; of tracklets joined from two polyps, 42 % of stills and 6 % of drawn ones, which look more alike
# (benchmarks/count_accuracy.py --jumps).
SPLIT_BELOW = 0.5


def jumps(features: NDArray[np.float32], encoder: Encoder, below: float | None = None) -> list[int]:
    """Frames before which a tracklet is to be split, rising; none for most.

    A tracklet is split where the cosine between the vector of the `WINDOW` frames before and that of the `WINDOW`
    frames after is lowest, if it is less than `below`, `SPLIT_BELOW` where not given; and so is each part again.

    features: float32[t, f] of the frames that were looked at, in time order.
    """
    if len(features) < 2 * WINDOW:
        return []
    every = np.lib.stride_tricks.sliding_window_view(features, WINDOW, axis=0).transpose(0, 2, 1)
    vectors = encoder.encode_sequences(np.ascontiguousarray(every), np.ones(every.shape[:2], bool)).astype(np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    alike = (vectors[:-WINDOW] * vectors[WINDOW:]).sum(axis=1)  # of the cut before frame WINDOW, WINDOW + 1, ...
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
