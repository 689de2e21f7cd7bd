"""Linking frame by frame, against linking the whole table."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polypcount.corpus import Boxes
from polypcount.errors import DataError
from polypcount.tracking import Linked, OnlineLinker, link_tracklets

Row = tuple[int, int, tuple[float, float, float, float]]  # frame, owner, box

# Few values, so that rows share owners and frames; a width of 10 moved by 1 .. 10 gives IoUs from 9/11 to 0.
BOX = st.builds(lambda x, y: (float(x), float(y), x + 10.0, y + 10.0), st.integers(0, 12), st.sampled_from([0, 5]))
ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(-1, 3), BOX), max_size=40)
SETTINGS = {"max_gap": st.integers(0, 3), "min_iou": st.sampled_from([0, 0.1, 0.25, 1 / 3, 0.5, 1])}


def by_frame(rows: list[Row], linker: OnlineLinker) -> dict[int, Linked]:
    """What the linker gives for each frame that has boxes."""
    given = {}
    for frame in sorted({row[0] for row in rows}):
        mine = [row for row in rows if row[0] == frame]
        given[frame] = linker.update(frame, [row[2] for row in mine], [row[1] for row in mine])
    return given


@settings(max_examples=120)
@given(rows=ROWS, **SETTINGS)
@example(rows=[], max_gap=1, min_iou=0.1)
def test_it_equals_linking_the_whole_table(rows: list[Row], max_gap: int, min_iou: float) -> None:
    rows.sort(key=lambda row: row[0])
    linker = OnlineLinker(max_gap, min_iou)
    given = by_frame(rows, linker)
    whole = link_tracklets(
        Boxes([0] * len(rows), [row[0] for row in rows], [row[2] for row in rows], track=[row[1] for row in rows]),
        max_gap,
        min_iou,
    )
    assert [number for linked in given.values() for number in linked.tracklet.tolist()] == whole.label.tolist()
    begins = [begin for linked in given.values() for begin in linked.begins.tolist()]
    assert np.flatnonzero(begins).tolist() == [whole.rows(k)[0] for k in range(len(whole))]


@settings(max_examples=60)
@given(rows=ROWS, **SETTINGS)
def test_a_tracklet_ends_once_and_as_soon_as_no_box_can_follow(rows: list[Row], max_gap: int, min_iou: float) -> None:
    linker = OnlineLinker(max_gap, min_iou)
    given = by_frame(rows, linker)
    last_frame = {number: frame for frame, linked in given.items() for number in linked.tracklet.tolist()}
    ended = {number: frame for frame, linked in given.items() for number in linked.ended}
    left = linker.finish()
    assert sorted([*ended, *left]) == sorted(last_frame.keys() - {-1})
    assert sum(len(linked.ended) for linked in given.values()) == len(ended)
    assert all(linked.ended == sorted(linked.ended) for linked in given.values())
    assert all(last_frame[number] <= frame for number, frame in ended.items())
    assert all(last_frame[number] + max_gap > max(given) for number in left), "could still get a box in the next frame"
    assert linker.finish() == []


def test_the_rule_by_example() -> None:
    linker = OnlineLinker()
    here, there = [0, 0, 10, 10], [50, 0, 60, 10]

    def linked(frame: int, boxes: list[list[int]], owners: list[int]) -> tuple[list[int], list[bool], list[int]]:
        tracklet, begins, ended = linker.update(frame, boxes, owners)
        assert tracklet.dtype == np.int64
        return tracklet.tolist(), begins.tolist(), ended

    assert linked(3, [here, there, here], [7, 0, -1]) == ([0, 1, -1], [True, True, False], [])
    assert linked(4, [here], [7]) == ([0], [False], [1])
    assert linked(5, [there], [7]) == ([2], [True], [0]), "a jump begins another"
    assert linked(9, [there], [7]) == ([3], [True], [2]), "and so does a gap"
    assert linker.finish() == [3]


def test_a_frame_without_boxes_ends_what_it_ends() -> None:
    linker = OnlineLinker(max_gap=2)
    linker.update(0, [[0, 0, 9, 9]], [4])
    assert linker.update(1, np.empty((0, 4)), []).ended == []
    assert linker.update(2, [], []).ended == [0]


def test_memory_does_not_grow() -> None:
    linker = OnlineLinker()

    def feed(start: int, stop: int) -> int:
        for frame in range(start, stop):
            linker.update(frame, [[0, 0, 9, 9], [5, 5, 20, 20]], [frame // 2, 10_000 + frame])
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = feed(0, 200)
        assert feed(200, 1200) - before < 5_000, "1000 remembered owners would be hundreds of kilobytes"
    finally:
        tracemalloc.stop()


def test_senseless_input_is_refused() -> None:
    linker = OnlineLinker()
    linker.update(4, [[0, 0, 9, 9]], [0])
    with pytest.raises(DataError, match="rising order from 0, found 4 after 4"):
        linker.update(4, [[0, 0, 9, 9]], [0])
    with pytest.raises(DataError, match="1 boxes and 2 owners"):
        linker.update(5, [[0, 0, 9, 9]], [0, 1])
    with pytest.raises(DataError, match="owner must be at least -1"):
        linker.update(5, [[0, 0, 9, 9]], [-2])
    with pytest.raises(DataError, match="x2 must be greater"):
        linker.update(5, [[9, 0, 0, 9]], [0])
    assert linker.update(5, [[0, 0, 9, 9]], [0]).tracklet == [0], "what was refused has left no trace"
    with pytest.raises(DataError, match="max_gap"):
        OnlineLinker(max_gap=-1)
    with pytest.raises(DataError, match="min_iou"):
        OnlineLinker(min_iou=1.5)
