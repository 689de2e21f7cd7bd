"""Vectors of single frames of tracklets."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus.columns import (
    Columns,
    Float32Column,
    Int32Column,
    int_column,
    refuse_rows,
    refuse_unknown,
    slice_of,
    vector_column,
)
from polypcount.corpus.together import frame_keys
from polypcount.errors import DataError

MOST_FRAMES = 32
_TABLE = "frame vectors"


@dataclass(frozen=True, init=False, eq=False)
class FrameVectors(Columns):
    """Frame vectors of the looked-at frames of tracklets: one row per frame, at most 32 per tracklet.

    Attributes:
        tracklet: int32[m], row in the embeddings, rising.
        frame: int32[m], rising within a tracklet, and inside its span.
        vectors: float32[m, d], finite; without rows, d is 0.
    """

    tracklet: Int32Column
    frame: Int32Column
    vectors: Float32Column

    def __init__(self, tracklet: ArrayLike, frame: ArrayLike, vectors: ArrayLike) -> None:
        values = vector_column(_TABLE, vectors)
        self._set(
            tracklet=int_column(_TABLE, "tracklet", tracklet),
            frame=int_column(_TABLE, "frame", frame),
            vectors=values if len(values) else np.empty((0, 0), np.float32),
        )
        falls = np.diff(frame_keys(self.tracklet, self.frame), prepend=-1) <= 0
        refuse_rows(_TABLE, falls, lambda _: "tracklets, and the frames of a tracklet, must rise")
        counts = np.bincount(self.tracklet, minlength=1)
        if counts.max() > MOST_FRAMES:
            raise DataError(f"{_TABLE}: tracklet {counts.argmax()} has {counts.max()} frames, at most {MOST_FRAMES}")

    def of_tracklet(self, tracklet: int) -> slice:
        """Where the frames of a tracklet are."""
        return slice_of(self.tracklet, tracklet)

    def renumbered(self, row_now: NDArray[np.int64]) -> "FrameVectors":
        """The same frames, renumbered by the new row of each tracklet, int64[tracklets]; -1 leaves a tracklet out."""
        tracklet = row_now[self.tracklet]
        order = np.lexsort((self.frame, tracklet))[np.count_nonzero(tracklet < 0) :]
        return FrameVectors(tracklet[order], self.frame[order], self.vectors[order])

    def refuse_outside(self, start_frame: Int32Column, stop_frame: Int32Column) -> None:
        """Refuse frames of unknown tracklets, and frames outside the spans of their tracklets."""
        refuse_unknown(_TABLE, "tracklet", self.tracklet, len(start_frame))
        outside = (self.frame < start_frame[self.tracklet]) | (self.frame >= stop_frame[self.tracklet])
        refuse_rows(_TABLE, outside, lambda row: f"frame {self.frame[row]} is outside tracklet {self.tracklet[row]}")
