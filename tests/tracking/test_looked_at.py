"""Which boxes of a tracklet are looked at: one rule for a whole file and for a tracklet that grows."""

import numpy as np
import pytest

from polypcount.tracking import MOST_LOOKED_AT, duration_frames, looked_at, looked_at_step


def test_the_step_is_the_smallest_power_of_two_that_leaves_few_enough() -> None:
    for count in range(1, 2000):
        powers = [2**k for k in range(12) if len(range(0, count, 2**k)) <= MOST_LOOKED_AT]
        assert looked_at_step(count) == min(powers)
        rows = np.arange(count) * 3 + 5
        assert looked_at(rows).tolist() == [3 * n + 5 for n in range(0, count, min(powers))]
    assert looked_at_step(0) == 1
    assert looked_at(np.empty(0, np.int64)).tolist() == []


def test_the_rule_by_example() -> None:
    assert [looked_at_step(count) for count in (1, 32, 33, 64, 65, 1000)] == [1, 1, 2, 2, 4, 32]
    assert looked_at(np.arange(33)).tolist() == list(range(0, 33, 2))


def test_a_tracklet_that_grows_ends_with_the_same_boxes() -> None:
    """A live counter keeps these boxes as the tracklet grows.

    up to box 31    0 1 2 3 ... 31    all 32
    with box 32     0 2 4 ... 30 32   every second is dropped, and of the next boxes only even ones are kept
    with box 64     0 4 8 ... 60 64   every second is dropped again
    """
    kept: list[int] = []
    for box in range(700):
        step = looked_at_step(box + 1)
        kept = [row for row in kept if row % step == 0] + [box] * (box % step == 0)
        assert kept == looked_at(np.arange(box + 1)).tolist()
        assert len(kept) <= MOST_LOOKED_AT
    assert kept == list(range(0, 700, 32))


@pytest.mark.parametrize(
    ("frame_count", "fps", "expected"),
    [(9000, 25.0, 9000), (9000, None, 9000), (50, 25.0, 1500), (50, None, 50), (0, None, 1), (1799, 29.97, 1799)],
)
def test_the_duration_is_the_recording_or_a_minute(frame_count: int, fps: float | None, expected: float) -> None:
    assert duration_frames(frame_count, fps) == pytest.approx(expected)
