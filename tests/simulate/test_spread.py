"""How widely boxes are spread: small cases with stated answers, and real boxes against simulated ones."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from polypcount.corpus import Boxes, Corpus, Polyp, Video
from polypcount.simulate import TimelineSettings, simulate_scenes, simulate_timelines
from polypcount.simulate.figures import REAL_BOXES
from polypcount.simulate.spread import BoxSpread, box_spread

from ..conftest import DATA

WIDTH, HEIGHT, FPS = 200, 100, 10.0
REAL = DATA / "real-boxes"


def spread_of(*runs: tuple[int, list[tuple[float, float, float, float]]]) -> BoxSpread:
    """The figures of one polyp that is at these places (x, y, width, height), in frames from each run's first on."""
    rows = [(first + k, *box) for first, boxes in runs for k, box in enumerate(boxes)]
    frame, x, y, width, height = np.array(rows).T
    xyxy = np.column_stack([x - width / 2, y - height / 2, x + width / 2, y + height / 2])
    video = Video("v", 1000, FPS, WIDTH, HEIGHT)
    boxes = Boxes(np.zeros(len(frame), np.int32), frame.astype(int), xyxy, polyp=np.zeros(len(frame), np.int32))
    return box_spread(Corpus((video,), boxes, (Polyp("p", "v"),)))


def test_lengths_gaps_and_short_tracklets() -> None:
    still = (100.0, 50.0, 20.0, 20.0)
    spread = spread_of((0, [still] * 30), (50, [still] * 10), (100, [still] * 50))
    assert (spread.all_tracklets, spread.tracklets) == (3, 2)
    assert spread.seconds == pytest.approx((3.2, 4.0, 4.8))
    assert spread.gap_seconds == pytest.approx((7, 7, 7, 7)), "from the end of one to the start of the next long one"
    assert spread.short == pytest.approx(1 / 3)
    assert spread.fragmentation == 2
    assert np.isnan(spread.fragmentation_spread), "one video"
    assert (spread.motion, spread.size_within, spread.distance) == pytest.approx((0, 0, 0))
    assert np.isnan(spread.size_between), "two tracklets say too little"


def test_sizes_are_in_heights_of_the_image() -> None:
    runs = [(100 * k, [(100.0, 50.0, 20.0 * factor, 5.0 * factor)] * 30) for k, factor in enumerate((1, 2, 4))]
    spread = spread_of(*runs)
    assert spread.size == pytest.approx((0.12, 0.2, 0.36)), "0.1, 0.2 and 0.4"
    assert spread.size_between == pytest.approx(np.log(2))
    assert (spread.size_within, spread.aspect_within) == pytest.approx((0, 0))


def test_size_and_aspect_within_a_tracklet() -> None:
    spread = spread_of((0, [(100.0, 50.0, 20.0, 20.0), (100.0, 50.0, 40.0, 20.0)] * 20))
    assert spread.size_within == pytest.approx(np.log(2) / 4), "half of log 2 apart"
    assert spread.aspect_within == pytest.approx(np.log(2) / 2)


def test_motion_is_in_heights_and_places_in_shares_of_the_sides() -> None:
    moving = spread_of((0, [(60.0 + k, 50.0, 40.0, 20.0) for k in range(31)]))
    assert moving.motion == pytest.approx(0.01)
    assert moving.distance == pytest.approx((100 - 75) / WIDTH)


def test_boxes_at_an_edge() -> None:
    inside, left, below = (100.0, 50.0, 40.0, 40.0), (21.0, 50.0, 40.0, 40.0), (100.0, 79.9, 40.0, 40.0)
    spread = spread_of((0, [inside] * 40), (100, [left] * 20 + [inside] * 20), (200, [below] * 40))
    assert spread.edge == pytest.approx((0.5, 0.9))


def test_simulated_boxes_are_as_widely_spread_as_real_ones() -> None:
    """Every median lies within the range of the real recordings: the mean over seeds, and each seed within a tenth."""
    seeds = [box_spread(simulate_timelines(19, seed, "study")).medians for seed in (20, 21, 22)]
    for name, values in {key: [medians[key] for medians in seeds] for key in seeds[0]}.items():
        real = [medians[name] for medians in REAL_BOXES.values()]
        assert min(real) <= np.mean(values) <= max(real), name
        assert 0.9 * min(real) <= min(values), name
        assert max(values) <= 1.1 * max(real), name


def test_boxes_as_drawn_are_as_widely_spread(tmp_path: Path) -> None:
    """Around the outlines of drawn polyps, and at another size of the frame."""
    settings = TimelineSettings(width=640, height=512, minutes=12)
    medians = box_spread(simulate_scenes(tmp_path, 8, 23, "study", settings=settings, processes=1)).medians
    for name in ("motion", "size", "size_between", "size_within", "aspect_within", "distance", "edge"):
        real = [found[name] for found in REAL_BOXES.values()]
        assert 0.9 * min(real) <= medians[name] <= 1.1 * max(real), name


def test_nothing_to_measure() -> None:
    spread = box_spread(Corpus((Video("v", 10, FPS, WIDTH, HEIGHT),)))
    assert spread.tracklets == 0
    assert np.isnan([spread.short, spread.motion, spread.fragmentation, *spread.size]).all()


def test_the_figures_kept_of_real_boxes_are_those_of_the_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    if not REAL.is_dir():
        pytest.skip(f"real boxes are not at {REAL}")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    monkeypatch.delitem(sys.modules, "real_boxes", raising=False)
    measured = import_module("real_boxes").real(REAL)
    kept = {name: {key: round(value, 4) for key, value in one.medians.items()} for name, one in measured.items()}
    assert kept == REAL_BOXES
    assert [one.fragmentation for one in measured.values()][:3] == [36, 6, 16.5]
