"""What is kept of ended tracklets, and how much of it."""

import numpy as np
import pytest

from polypcount.corpus import Provenance, Video
from polypcount.counting import CountingPoint, CountReport
from polypcount.counting.decide import duration_of
from polypcount.counting.gather import RESAMPLES, Gathered
from polypcount.counting.tally import Tally, interval_meaning, least_boxes
from tests.counting.test_decide import POINT


def tracklet(number: int, angle: float, start: int, frames: int = 40, part: int = 0) -> Gathered:
    turned = np.deg2rad(angle)
    vector = np.array([np.cos(turned), np.sin(turned)], np.float32)
    return Gathered(number, start, start + frames, frames, np.repeat(vector[None], 1 + RESAMPLES, axis=0), part=part)


def tally_of(*tracklets: Gathered, most: int | None = None) -> Tally:
    tally = Tally(POINT, most=most)
    for one in tracklets:
        tally.add([one], 10_000)
    return tally


def report_of(tally: Tally) -> CountReport:
    return tally.report(Video("v", 10_000, 25.0), Provenance.now("test"))


@pytest.mark.parametrize(
    ("frames", "boxes"), [(0, 1), (1, 1), (30, 1), (31, 2), (53, 2), (899, 30), (900, 30), (901, 30), (10**6, 30)]
)
def test_how_long_a_tracklet_must_be(frames: int, boxes: int) -> None:
    assert least_boxes(frames) == boxes


@pytest.mark.parametrize(
    ("frames", "fps", "duration"), [(0, None, 1), (40, None, 40), (40, 25.0, 1500), (9000, 25.0, 9000), (0, 60.0, 3600)]
)
def test_time_is_a_share_of_at_least_a_minute(frames: int, fps: float | None, duration: float) -> None:
    assert duration_of(frames, fps) == duration


def test_nothing_one_and_two() -> None:
    assert report_of(tally_of()).count == 0
    one = report_of(tally_of(tracklet(0, 0, 5)))
    assert (one.count, one.interval.low, one.interval.high) == (1, 1, 1)
    two = report_of(tally_of(tracklet(1, 180, 500), tracklet(0, 0, 5)))
    assert [each.start_frame for each in two.tracklets] == [5, 500]
    assert [each.polyp for each in two.tracklets] == [1, 2]
    assert two.polyps[0].tracklets == (0,)


def test_those_seen_together_stay_apart() -> None:
    tally = tally_of(tracklet(0, 0, 5), tracklet(1, 0, 10), tracklet(2, 0, 500))
    assert report_of(tally).count == 1
    tally.seen_together([1, 0])
    assert tally.pairs(tally.ended).tolist() == [[0, 1]]
    assert report_of(tally).count == 2


def test_of_a_split_one_only_the_part_that_was_there_is_kept_apart() -> None:
    parts = [tracklet(0, 0, 0, 40), tracklet(0, 90, 40, 40, part=1)]
    tally = Tally(POINT)
    tally.add(parts, 1000)
    tally.add([tracklet(1, 0, 50, 20)], 1000)
    tally.seen_together([0, 1])
    assert tally.pairs(tally.ended).tolist() == [[1, 2]]
    number = np.array([0, 0, 1, -1, 7])
    assert tally.rows_of(number, np.array([39, 40, 55, 0, 0])).tolist() == [0, 1, 2, -1, -1]
    assert tally.rows_of(number, np.array([80, 79, 70, 0, 0])).tolist() == [-1, 1, -1, -1, -1]


def test_short_ones_are_dropped_with_what_is_known_of_them() -> None:
    tally = tally_of(tracklet(0, 0, 5), tracklet(1, 0, 10, frames=12))
    tally.seen_together([0, 1])
    assert tally.forget_short(30) == 1
    assert [one.number for one in tally.ended] == [0]
    assert tally.pairs(tally.ended).tolist() == []
    assert not tally._together


def test_a_long_stream_is_bounded_and_still_counted_right() -> None:
    tally, rng = Tally(POINT, most=40), np.random.default_rng(0)
    for number in range(2000):
        tally.add([tracklet(number, 90 * (number % 4) + rng.normal() * 3, number * 100)], number * 100 + 100)
        assert len(tally.ended) <= 40
    assert tally.count(200_000) == 4
    assert sum(one.box_count for one in tally.ended) == 2000 * 40
    assert tally.condensed == 2000 - len(tally.ended)
    assert tally.retired == 0
    assert report_of(tally).count == 4


def test_a_stream_of_nothing_but_new_polyps_is_bounded_too() -> None:
    point = strict_point()
    tally, rng = Tally(point, most=20), np.random.default_rng(0)
    for number in range(200):
        vector = rng.normal(size=64).astype(np.float32)
        vectors = np.repeat(vector[None], 1 + RESAMPLES, axis=0)
        tally.add([Gathered(number, number * 100, number * 100 + 40, 40, vectors)], number * 100 + 100)
    assert len(tally.ended) <= 20
    assert tally.count(20_000) == 200
    found = report_of(tally)
    assert found.count == 200
    assert found.interval.low <= 200 <= found.interval.high


def strict_point() -> CountingPoint:
    from dataclasses import replace

    return replace(POINT, parameters={**POINT.parameters, "threshold": 0.99}, values=(0.99,))


def test_the_interval_says_what_it_means() -> None:
    from dataclasses import replace

    assert "90 %" in interval_meaning(POINT)
    assert POINT.selected_on in interval_meaning(POINT)
    measured = replace(POINT, measured={"coverage": 0.87, "procedures": 60})
    assert "87 %" in interval_meaning(measured)
    assert "60 simulated procedures" in interval_meaning(measured)
