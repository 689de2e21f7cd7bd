"""Boxes as a detector gives them: the stated rates, which last for a while, and the same for the same seed."""

import numpy as np
import pytest

from polypcount.corpus import Boxes, Corpus, Polyp, Video, check, iou
from polypcount.errors import DataError
from polypcount.simulate import TimelineSettings, simulate_timelines
from polypcount.simulate.detector import DetectorRates, as_detected
from polypcount.tracking import link_tracklets, track_boxes

NO_ALARMS = DetectorRates(alarms_per_minute=0, jitter=0)


@pytest.fixture(scope="module")
def truth() -> Corpus:
    return simulate_timelines(4, 31, "study", TimelineSettings(minutes=10))


def keys(boxes: Boxes) -> set[tuple[int, int]]:
    return set(zip(boxes.video.tolist(), boxes.frame.tolist(), strict=True))


def test_the_share_that_is_found_is_the_stated_one(truth: Corpus) -> None:
    for recall in (0.6, 0.9):
        found = as_detected(truth, 1, DetectorRates(recall, 0, jitter=0)).boxes
        assert (found.score >= 0.5).sum() == pytest.approx(recall * len(truth.boxes), rel=0.01)
        assert found.score.min() >= 0.1
        assert keys(found) <= keys(truth.boxes)


def test_misses_last_for_a_while(truth: Corpus) -> None:
    """If frames were missed one by one, a gap would rarely be longer than two frames."""
    found = keys(as_detected(truth, 1, NO_ALARMS).boxes)
    missed = np.array([key not in found for key in sorted(keys(truth.boxes))])
    again = missed[1:][missed[:-1]].mean()
    assert 0.02 < missed.mean() < 0.2
    assert again > 0.7, "after a missed frame, the next is missed, too"


def test_small_polyps_are_missed_more_often(truth: Corpus) -> None:
    found = as_detected(truth, 1, NO_ALARMS).boxes
    found = found.take(np.flatnonzero(found.score >= 0.5))
    sizes = [np.median((boxes.xyxy[:, 2:] - boxes.xyxy[:, :2]).prod(axis=1)) for boxes in (found, truth.boxes)]
    assert sizes[0] > 1.03 * sizes[1]


def test_jitter_has_the_stated_strength() -> None:
    n = 4000
    boxes = Boxes(np.zeros(n, int), np.arange(n), np.tile([200, 200, 300, 260], (n, 1)), polyp=np.zeros(n, int))
    corpus = Corpus((Video("v", n, 25.0, 640, 512),), boxes, (Polyp("p", "v"),))
    found = as_detected(corpus, 2, DetectorRates(0.99, 0, jitter=0.05)).boxes.xyxy
    middle, size = (found[:, :2] + found[:, 2:]) / 2, found[:, 2:] - found[:, :2]
    assert middle.std(axis=0) == pytest.approx([5, 3], rel=0.3)
    assert np.log(size).std(axis=0) == pytest.approx(0.05, rel=0.3)
    assert np.median(iou(found[1:], found[:-1])) > 0.9, "from frame to frame it moves little"


def test_false_alarms_come_as_often_as_stated_and_stay() -> None:
    corpus = Corpus((Video("v", 60 * 60 * 25, 25.0, 640, 512),))
    found = as_detected(corpus, 3, DetectorRates(alarms_per_minute=4, alarm_seconds=0.4)).boxes
    lengths = link_tracklets(track_boxes(found, [25.0])).box_count
    begun = 1 + (np.diff(found.frame) > 1).sum()
    assert begun == pytest.approx(240, rel=0.2)
    assert 0.15 < np.median(lengths) / 25 < 0.8
    assert found.xyxy.min() >= 0
    assert (found.xyxy.max(axis=0) <= [640, 512, 640, 512]).all()
    assert check(Corpus(corpus.videos, found)).counts()["error"] == 0


def test_the_same_seed_gives_the_same_boxes_without_polyps(truth: Corpus) -> None:
    one, same, other = (as_detected(truth, seed) for seed in (5, 5, 6))
    assert one.content_hash == same.content_hash != other.content_hash
    assert (one.boxes.polyp == -1).all()
    assert (one.boxes.track == -1).all()
    assert one.polyps == truth.polyps
    assert one.provenance is not None
    assert one.provenance.parameters["detector"]["recall"] == 0.8


def test_no_videos_and_senseless_rates() -> None:
    assert len(as_detected(Corpus(()), 1).boxes) == 0
    for setting in ({"recall": 1.0}, {"alarms_per_minute": -1.0}, {"jitter": float("nan")}):
        with pytest.raises(DataError, match=next(iter(setting))):
            DetectorRates(**setting)
