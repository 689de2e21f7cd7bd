"""What is kept of a stream, and how much of it; and how long a tracklet must be."""

import numpy as np
import pytest

from polypcount.clustering import OperatingPoint
from polypcount.counting.assemble import interval_meaning
from polypcount.counting.bounded import BoundedEvidence
from polypcount.counting.decide import group
from polypcount.counting.evidence import RESAMPLES, Evidence, rows_of_boxes, together_rows
from polypcount.counting.tracklets import least_boxes
from tests.counting.test_decide import POINT


def tracklet(number: int, angle: float, start: int, frames: int = 40, part: int = 0) -> Evidence:
    turned = np.deg2rad(angle)
    vector = np.array([np.cos(turned), np.sin(turned)], np.float32)
    return evidence_of(vector, number, start, frames, part)


def evidence_of(vector: np.ndarray, number: int, start: int, frames: int = 40, part: int = 0) -> Evidence:
    vectors = np.repeat(vector[None], 1 + RESAMPLES, axis=0)
    looked_at = np.arange(start, start + 4, dtype=np.int32)
    return Evidence(number, part, start, start + frames, frames, vectors, looked_at, np.repeat(vector[None], 4, axis=0))


def bounded(most: int, point: OperatingPoint = POINT) -> BoundedEvidence:
    kept: BoundedEvidence

    def groups(evidence: object) -> np.ndarray:
        return group(evidence, together_rows(evidence, list(kept.together)), 1e6, point)  # type: ignore[arg-type]

    kept = BoundedEvidence(most, groups)
    return kept


@pytest.mark.parametrize(
    ("frames", "boxes"), [(0, 1), (1, 1), (30, 1), (31, 2), (53, 2), (899, 30), (900, 30), (901, 30), (10**6, 30)]
)
def test_how_long_a_tracklet_must_be(frames: int, boxes: int) -> None:
    assert least_boxes(frames) == boxes


def test_of_a_split_one_only_the_part_that_was_there_is_kept_apart() -> None:
    evidence = [tracklet(0, 0, 0, 40), tracklet(0, 90, 40, 40, part=1), tracklet(1, 0, 50, 20)]
    assert together_rows(evidence, [(0, 1)]).tolist() == [[1, 2]]
    assert together_rows(evidence, [(1, 7)]).tolist() == []
    number = np.array([0, 0, 1, -1, 7])
    assert rows_of_boxes(evidence, number, np.array([39, 40, 55, 0, 0])).tolist() == [0, 1, 2, -1, -1]
    assert rows_of_boxes(evidence, number, np.array([80, 79, 70, 0, 0])).tolist() == [-1, 1, -1, -1, -1]


def test_short_ones_are_dropped_with_what_is_known_of_them() -> None:
    kept = bounded(600)
    kept.add([tracklet(1, 0, 10, frames=12)])
    kept.add([tracklet(0, 0, 5)])
    kept.seen_together([1, 0, 1])
    assert [one.number for one in kept.evidence] == [0, 1]
    assert kept.together == {(0, 1)}
    assert kept.drop_short(30) == 1
    assert [one.number for one in kept.evidence] == [0]
    assert not kept.together


def test_a_long_stream_is_bounded_and_still_counted_right() -> None:
    kept, rng = bounded(40), np.random.default_rng(0)
    for number in range(500):
        kept.add([tracklet(number, 90 * (number % 4) + rng.normal() * 3, number * 100)])
        assert len(kept.evidence) <= 40
    labels = group(kept.evidence, together_rows(kept.evidence, list(kept.together)), 1e6, POINT)
    assert len(np.unique(labels)) == 4
    assert sum(one.box_count for one in kept.evidence) == 500 * 40
    assert kept.condensed == 500 - len(kept.evidence)
    assert kept.retired == 0
    for one in kept.evidence:
        assert len(one.frames) == len(one.frame_vectors) <= 32
        assert (np.diff(one.frames) > 0).all()


def test_a_stream_of_nothing_but_new_polyps_is_bounded_too() -> None:
    strict = POINT.model_copy(update={"parameters": {**POINT.parameters, "threshold": 0.99}, "values": (0.99,)})
    kept, rng = bounded(20, strict), np.random.default_rng(0)
    for number in range(100):
        kept.add([evidence_of(rng.normal(size=64).astype(np.float32), number, number * 100)])
    assert len(kept.evidence) <= 20
    assert kept.retired + len(kept.evidence) == 100


def test_the_interval_says_what_it_means() -> None:
    assert "90 %" in interval_meaning(POINT)
    assert POINT.selected_on in interval_meaning(POINT)
    measured = POINT.model_copy(update={"measured": {"coverage": 0.87, "procedures": 60.0}})
    assert "87 %" in interval_meaning(measured)
    assert "60 simulated procedures" in interval_meaning(measured)
    assert "given as 3" in interval_meaning(POINT, (3, 3))
    assert "at least 2" in interval_meaning(POINT, (2, None))
    assert "1 to 4" in interval_meaning(POINT, (1, 4))
    assert "at most 4" in interval_meaning(POINT, (0, 4))
    assert "not measured" in interval_meaning(POINT)
