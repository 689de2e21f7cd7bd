"""Which boxes of a tracklet are looked at, and the duration of a recording: one rule for embedding and counting."""

import numpy as np
from numpy.typing import NDArray

MOST_LOOKED_AT = 32  # with twice as many, a vector moves by less than it does from one frame to the next
SHORTEST_SECONDS = 60


def looked_at_step(box_count: int) -> int:
    """The step for a tracklet: every `step`-th box is looked at, starting with the first.

    It is the smallest power of two that leaves at most `MOST_LOOKED_AT` boxes. A live counter does not know how long a
    tracklet will be. As the tracklet grows, it drops every second box, and ends with the same boxes as `count` for a
    whole file.
    """
    step = 1
    while -(-box_count // step) > MOST_LOOKED_AT:
        step *= 2
    return step


def looked_at(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The looked-at rows among the box rows of one tracklet, in time order."""
    return rows[:: looked_at_step(len(rows))]


def evenly(count: int, most: int) -> NDArray[np.int64]:
    """At most `most` of the numbers 0 .. count - 1, evenly spaced."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def duration_frames(frame_count: int, fps: float | None) -> float:
    """The duration that times between tracklets are divided by: the recording's length in frames, at least a minute.

    Without the minute, a few seconds in a short clip would count as much as the length of a whole procedure.
    Without a frame rate, as for a folder of stills, it is the number of frames.
    """
    return max(float(frame_count), SHORTEST_SECONDS * fps if fps else 1.0)
