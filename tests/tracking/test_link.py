"""Linking, against a plain calculation of the same rule."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polypcount.corpus import Boxes, iou
from polypcount.errors import DataError
from polypcount.simulate import simulate_timelines
from polypcount.tracking import link_tracklets

Row = tuple[int, int, int, int, tuple[float, float, float, float]]  # video, frame, polyp, track, box


def plain_iou(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    shared = max(min(a[2], b[2]) - max(a[0], b[0]), 0) * max(min(a[3], b[3]) - max(a[1], b[1]), 0)
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


def plain_link(rows: list[Row], max_gap: int, min_iou: float) -> list[list[int]]:
    """Tracklets as lists of rows, in the order in which they are numbered: loops over videos, owners and rows."""
    tracklets = []
    for video in {row[0] for row in rows}:
        for kind in ("polyp", "track"):
            for number in {row[2] if kind == "polyp" else row[3] for row in rows}:
                mine = []
                for index, (v, _, polyp, track, _) in enumerate(rows):
                    owner = polyp if kind == "polyp" else track if polyp < 0 else -1
                    if v == video and owner == number and number >= 0:
                        mine.append(index)
                mine.sort(key=lambda index: (rows[index][1], index))
                for before, index in zip([None, *mine], mine, strict=False):
                    if (
                        before is None
                        or rows[index][1] - rows[before][1] > max_gap
                        or plain_iou(rows[before][4], rows[index][4]) < min_iou
                    ):
                        tracklets.append([index])
                    else:
                        tracklets[-1].append(index)
    return sorted(tracklets, key=lambda t: (rows[t[0]][0], rows[t[0]][1], t[0]))


def boxes_of(rows: list[Row]) -> Boxes:
    video, frame, polyp, track, box = zip(*rows, strict=True) if rows else ([], [], [], [], [])
    return Boxes(video, frame, box, polyp=polyp, track=track)


# Few values, so that rows share owners, frames and edges; a width of 10 moved by 1 .. 10 gives IoUs from 9/11 to 0.
BOX = st.builds(lambda x, y: (float(x), float(y), x + 10.0, y + 10.0), st.integers(0, 12), st.sampled_from([0, 5]))
ROW = st.tuples(st.integers(0, 2), st.integers(0, 8), st.integers(-1, 2), st.integers(-1, 2), BOX)
ODD_BOX = st.builds(
    lambda x, y, w, h: (x, y, x + w, y + h),
    *(st.floats(-50, 50, width=32) for _ in range(2)),
    *(st.floats(0.0625, 100, width=32) for _ in range(2)),
).filter(lambda b: np.float32(b[2]) > np.float32(b[0]) and np.float32(b[3]) > np.float32(b[1]))
ODD_ROW = st.tuples(st.integers(0, 1), st.integers(0, 5), st.integers(-1, 1), st.integers(-1, 1), ODD_BOX)


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[None]:
    """Work in blocks of three boxes, so that small cases go over their borders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polypcount.tracking.link._BLOCK", 3)
        yield


@settings(max_examples=400)
@given(
    rows=st.lists(ROW, max_size=30),
    max_gap=st.integers(0, 3),
    min_iou=st.sampled_from([0, 0.1, 0.25, 1 / 3, 0.5, 1]),
)
@example(rows=[], max_gap=1, min_iou=0.1)
def test_linking_equals_the_plain_calculation(rows: list[Row], max_gap: int, min_iou: float) -> None:
    tracklets = link_tracklets(boxes_of(rows), max_gap, min_iou)
    expected = plain_link(rows, max_gap, min_iou)
    assert [tracklets.rows(k).tolist() for k in range(len(tracklets))] == expected
    for number, members in enumerate(expected):
        assert (tracklets.label[members] == number).all()
        assert tracklets.video[number] == rows[members[0]][0]
        assert tracklets.start_frame[number] == rows[members[0]][1]
        assert tracklets.stop_frame[number] == rows[members[-1]][1] + 1
        assert tracklets.polyp[number] == rows[members[0]][2]
        assert tracklets.box_count[number] == len(members)
    assert np.count_nonzero(tracklets.label >= 0) == sum(map(len, expected))


@settings(max_examples=150)
@given(rows=st.lists(ODD_ROW, max_size=15))
def test_linking_odd_coordinates_equals_the_plain_calculation(rows: list[Row]) -> None:
    boxes = boxes_of(rows)
    kept = [(*row[:4], tuple(box)) for row, box in zip(rows, boxes.xyxy.astype(float).tolist(), strict=True)]
    tracklets = link_tracklets(boxes)
    assert [tracklets.rows(k).tolist() for k in range(len(tracklets))] == plain_link(kept, 1, 0.1)


@settings(max_examples=50)
@given(rows=st.lists(ROW, max_size=25), seed=st.integers(0, 1000))
def test_the_order_of_rows_changes_nothing_where_a_frame_has_one_box(rows: list[Row], seed: int) -> None:
    rows = list({(row[0], row[1], row[2] if row[2] >= 0 else row[3] + 10): row for row in rows}.values())
    order = np.random.default_rng(seed).permutation(len(rows))
    straight, mixed = link_tracklets(boxes_of(rows)), link_tracklets(boxes_of([rows[k] for k in order]))
    assert sorted(sorted(straight.rows(k).tolist()) for k in range(len(straight))) == sorted(
        sorted(order[mixed.rows(k)].tolist()) for k in range(len(mixed))
    )


def linked(*rows: tuple[int, float], **options: float) -> list[int]:
    """Labels of 10 x 10 boxes of one polyp, given as (frame, x)."""
    boxes = boxes_of([(0, frame, 0, -1, (x, 0.0, x + 10, 10.0)) for frame, x in rows])
    labels: list[int] = link_tracklets(boxes, **options).label.tolist()  # type: ignore[arg-type]
    return labels


def test_the_rule_by_example() -> None:
    assert linked((0, 0), (1, 0), (2, 0)) == [0, 0, 0]
    assert linked((0, 0), (2, 0)) == [0, 1], "a missing frame breaks"
    assert linked((0, 0), (2, 0), max_gap=2) == [0, 0]
    assert linked((0, 0), (1, 10)) == [0, 1], "touching boxes share no area"
    assert linked((0, 0), (1, 10), min_iou=0) == [0, 0]
    assert linked((0, 0), (0, 1)) == [0, 0], "two boxes of a polyp in a frame: linked where they overlap"
    assert linked((0, 0), (0, 50), (1, 0)) == [0, 1, 2], "else each is a tracklet of its own"
    assert linked((7, 3)) == [0]
    assert linked() == []


@pytest.mark.parametrize(("shift", "value"), [(5.0, 1 / 3), (6.0, 0.25), (2.5, 0.6), (9.0, 1 / 19)])
def test_an_iou_exactly_at_the_threshold_links(shift: float, value: float) -> None:
    a, b = np.array([[0, 0, 10, 10]], np.float32), np.array([[shift, 0, 10 + shift, 10]], np.float32)
    assert iou(a, b)[0] == value
    assert linked((0, 0), (1, shift), min_iou=value) == [0, 0]
    assert linked((0, 0), (1, shift), min_iou=np.nextafter(value, 1)) == [0, 1]


def test_a_tenth_exactly() -> None:
    boxes = Boxes([0, 0], [0, 1], [[0, 0, 10, 11], [0, 0, 11, 1]], polyp=[0, 0])
    assert iou(boxes.xyxy[:1], boxes.xyxy[1:])[0] == 10 / 111
    boxes = Boxes([0, 0], [0, 1], [[0, 0, 10, 10], [0, 0, 10, 1]], polyp=[0, 0])
    assert iou(boxes.xyxy[:1], boxes.xyxy[1:])[0] == 0.1
    assert link_tracklets(boxes).label.tolist() == [0, 0]


def test_a_track_is_linked_only_where_no_polyp_is_known() -> None:
    boxes = boxes_of(
        [
            (0, k, polyp, track, (0.0, 0.0, 9.0, 9.0))
            for k, (polyp, track) in enumerate([(-1, 4), (-1, 4), (0, 4), (0, 5), (-1, -1), (-1, 0)])
        ]
    )
    assert link_tracklets(boxes).label.tolist() == [0, 0, 1, 1, -1, 2]


def test_large_numbers_do_not_run_into_each_other() -> None:
    top = 2**31 - 1
    rows = [(v, 0, p, t, (0.0, 0.0, 9.0, 9.0)) for v in (0, top) for p, t in ((top, -1), (-1, top), (0, -1), (-1, 0))]
    assert link_tracklets(boxes_of(rows)).label.tolist() == list(range(8))


@pytest.mark.parametrize("options", [{"max_gap": -1}, {"min_iou": -0.1}, {"min_iou": 1.5}, {"min_iou": float("nan")}])
def test_senseless_settings_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(DataError, match="must be"):
        linked((0, 0), **options)


def test_iou_equals_the_plain_calculation() -> None:
    boxes = simulate_timelines(1, 1, like="study").boxes.xyxy
    exact = [tuple(box) for box in boxes.astype(float).tolist()]
    assert iou(boxes[:-1], boxes[1:]).tolist() == [plain_iou(a, b) for a, b in pairwise(exact)]
