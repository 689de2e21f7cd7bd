"""The smallest situations in which counting goes right or wrong, each a video with a grouping to be judged."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

A, B, C = 0, 1, 2  # polyps


@dataclass(frozen=True, eq=False)
class Case:
    """A video of n tracklets in the order of their starts.

    story: what happens, and how it was grouped, in one sentence.
    frame_count: frames of the video.
    start_frame, stop_frame: int32[n], seen from start_frame up to, not including, stop_frame.
    polyp: int32[n], the truth.
    groups: int32[n], the grouping that is judged.
    vectors: float64[n, 2], embeddings made by hand.
    annotated_polyps: polyps of the video, with those that own no tracklet.
    """

    name: str
    story: str
    frame_count: int
    start_frame: NDArray[np.int32]
    stop_frame: NDArray[np.int32]
    polyp: NDArray[np.int32]
    groups: NDArray[np.int32]
    vectors: NDArray[np.float64]
    annotated_polyps: int


# start_frame, stop_frame, polyp, group, vector
Row = tuple[int, int, int, int, tuple[float, float]]


def _case(name: str, story: str, rows: Sequence[Row], lost_polyps: int = 0) -> Case:
    starts, stops, polyps, groups, vectors = zip(*rows, strict=True) if rows else ((),) * 5
    return Case(
        name=name,
        story=story,
        frame_count=1000,
        start_frame=np.array(starts, np.int32),
        stop_frame=np.array(stops, np.int32),
        polyp=np.array(polyps, np.int32),
        groups=np.array(groups, np.int32),
        vectors=np.array(vectors, np.float64).reshape(len(rows), 2),
        annotated_polyps=len(set(polyps)) + lost_polyps,
    )


def nothing() -> Case:
    """No tracklet."""
    return _case("nothing", "The one polyp is seen too briefly to leave a tracklet.", [], lost_polyps=1)


def one_tracklet() -> Case:
    """The least that can be counted."""
    return _case("one tracklet", "One polyp is seen once.", [(300, 520, A, 0, (1.0, 0.0))])


def two_same() -> Case:
    """One polyp twice, grouped right."""
    return _case(
        "two same",
        "One polyp is seen twice, and both tracklets are put together.",
        [(150, 350, A, 0, (1.0, 0.0)), (600, 800, A, 0, (0.96, 0.28))],
    )


def two_different() -> Case:
    """Two polyps once each, grouped right."""
    return _case(
        "two different",
        "Two polyps are seen once each, and kept apart.",
        [(150, 350, A, 0, (1.0, 0.0)), (600, 800, B, 1, (0.0, 1.0))],
    )


def late_return() -> Case:
    """A polyp comes back, looking more like another one than like itself."""
    return _case(
        "late return",
        "A polyp comes back much later, after another one, and is counted anew.",
        [
            (40, 150, A, 0, (1.0, 0.0)),
            (190, 290, A, 0, (0.8, 0.6)),
            (420, 540, B, 1, (0.0, 1.0)),
            (850, 960, A, 2, (0.6, 0.8)),
        ],
    )


def two_at_once() -> Case:
    """Two polyps in the same frames, which cannot be one."""
    return _case(
        "two at once",
        "Two polyps are seen in the same frames and put together, and the return of the first is counted anew.",
        [(100, 420, A, 0, (1.0, 0.0)), (260, 560, B, 0, (0.96, 0.28)), (720, 880, A, 1, (0.6, 0.8))],
    )


def twin_polyps() -> Case:
    """Two polyps that only time tells apart."""
    return _case(
        "twin polyps",
        "Two polyps far apart in time look almost the same, and are put together.",
        [
            (40, 150, A, 0, (1.0, 0.0)),
            (180, 280, A, 0, (0.96, 0.28)),
            (450, 570, B, 1, (0.0, 1.0)),
            (740, 830, C, 0, (0.96, 0.28)),
            (870, 970, C, 0, (1.0, 0.0)),
        ],
    )


def all_merged() -> Case:
    """The lowest count there can be."""
    return _case(
        "all merged", "Two polyps are seen twice each, and everything is put together.", _two_twice([0, 0, 0, 0])
    )


def all_split() -> Case:
    """The highest count there can be."""
    return _case("all split", "Two polyps are seen twice each, and nothing is put together.", _two_twice([0, 1, 2, 3]))


def one_polyp_only() -> Case:
    """No two polyps that could be merged, so the FPR is undefined."""
    return _case(
        "one polyp only",
        "The only polyp is seen three times, and its last tracklet is counted anew.",
        [(60, 220, A, 0, (1.0, 0.0)), (340, 460, A, 0, (0.96, 0.28)), (780, 930, A, 1, (0.28, 0.96))],
    )


def _two_twice(groups: Sequence[int]) -> list[Row]:
    first, second, third, fourth = groups
    return [
        (60, 200, A, first, (1.0, 0.0)),
        (250, 380, A, second, (0.96, 0.28)),
        (560, 700, B, third, (0.28, 0.96)),
        (780, 930, B, fourth, (0.0, 1.0)),
    ]


CASES = (
    nothing(),
    one_tracklet(),
    two_same(),
    two_different(),
    late_return(),
    two_at_once(),
    twin_polyps(),
    all_merged(),
    all_split(),
    one_polyp_only(),
)
