"""Appearance drifts: tracklets near in time look more alike than far ones. Without difficulties nothing is there."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr

from polypcount.errors import DataError
from polypcount.simulate import Difficulty, TimelineSettings, simulate_timelines
from polypcount.simulate.appearance import FrameState, PolypLooks, PolypState
from polypcount.tracking import link_tracklets
from polypcount.video import CropRule

from .drawn import CLEAN, HEIGHT, WIDTH, Box, difference, procedure, scene_of, timeline

SPOT: Box = (50, 40, 90, 80)
TIMES = np.arange(0, 600, 0.5)


def told_apart(look: PolypLooks) -> NDArray[np.float64]:
    """float64[n, k]: dirt, blood, injection, folds, instrument and foam at n times, on similar scales."""
    return np.hstack(
        [
            look.surface[:, [3, 8, 9]],
            look.folds[:, :, 1],
            np.maximum(look.tool[:, :1], 0),
            np.maximum(look.foam[:, None], 0),
        ]
    )


def alike_when_near(times: NDArray[np.floating], vectors: NDArray[np.float64]) -> float:
    """Rank correlation, over pairs, of the distance in time with the distance of the vectors."""
    one, other = np.triu_indices(len(times), 1)
    far = np.linalg.norm(vectors[one] - vectors[other], axis=1)
    return float(spearmanr(np.abs(times[one] - times[other]), far).statistic)


def test_states_of_tracklets_near_in_time_are_more_alike() -> None:
    corpus = simulate_timelines(19, 3, "study")
    tracklets = link_tracklets(corpus.boxes)
    drawn, shuffled, rng = [], [], np.random.default_rng(0)
    for polyp in range(len(corpus.polyps)):
        mine = (tracklets.polyp == polyp) & (tracklets.box_count >= 30)
        if mine.sum() >= 8:
            fps = corpus.videos[tracklets.video[mine][0]].fps or 1
            times = (tracklets.start_frame[mine] + tracklets.stop_frame[mine]) / 2 / fps
            state = PolypState(float(times.min()), float(times.max()), Difficulty(), np.random.default_rng([5, polyp]))
            vectors = told_apart(state.at(times))
            drawn.append(alike_when_near(times, vectors))
            shuffled.append(alike_when_near(times, vectors[rng.permutation(len(times))]))
    assert len(drawn) > 20
    assert np.mean(drawn) > 0.35, "measured: 0.49 with a standard error of 0.04"
    assert np.mean(np.array(drawn) > 0) > 0.9
    assert abs(np.mean(shuffled)) < 0.1


def test_pixels_of_tracklets_near_in_time_are_more_alike() -> None:
    settings = TimelineSettings(width=WIDTH, height=HEIGHT, minutes=10)
    rule, drawn, shuffled = CropRule(scale=1.2, size=24), [], []
    rng = np.random.default_rng(0)
    for seed, index in ((1, 2), (2, 1)):
        scene = procedure(seed, index, settings=settings).scene()
        boxes = scene.boxes
        tracklets = link_tracklets(boxes)
        for polyp in np.unique(boxes.polyp).tolist():
            mine = np.flatnonzero((tracklets.polyp == polyp) & (tracklets.box_count >= 20))[:10]
            if len(mine) < 6:
                continue
            vectors = []
            for tracklet in mine.tolist():
                rows = tracklets.order[tracklets.first[tracklet] :][: tracklets.box_count[tracklet]]
                crops = [
                    scene.draw(int(boxes.frame[row]), rule.region(boxes.xyxy[row], WIDTH, HEIGHT), (24, 24))
                    for row in rows[[len(rows) // 4, 3 * len(rows) // 4]].tolist()
                ]
                vectors.append(np.mean(crops, axis=0).ravel())
            times, crops_mean = tracklets.start_frame[mine].astype(float), np.array(vectors)
            drawn.append(alike_when_near(times, crops_mean))
            shuffled.append(alike_when_near(times, crops_mean[rng.permutation(len(mine))]))
    assert len(drawn) >= 4
    assert np.mean(drawn) > 0.2, "measured over these 4 polyps: 0.35 with a standard error of 0.06"
    assert np.mean(drawn) > np.mean(shuffled) + 0.2


def test_without_difficulties_nothing_comes_before_the_polyp() -> None:
    for seed in range(20):
        state = PolypState(0, 600, CLEAN, np.random.default_rng(seed))
        look = state.at(TIMES)
        assert (look.surface[:, 3] > 6).all(), "dirt lies where noise of deviation 1 is above this"
        assert (look.surface[:, 8:] == 0).all(), "neither blood nor blue"
        assert (look.folds[:, :, 1] == -1).all()
        assert (look.tool[:, 0] < 0).all()
        assert len(state.bubbles(0.0, float(look.foam[0]))) == 0
        assert (look.foam < 0).all()
        common = FrameState(600, 1.25, CLEAN, np.random.default_rng(seed)).at(TIMES)
        assert (common.camera[:, 3] == 0).all(), "no narrow-band imaging"
        assert np.ptp(common.camera, axis=0).max() == 0
        assert np.ptp(common.light[:, :4], axis=0).max() == 0
        assert np.ptp(common.blur, axis=0).max() == 0
        assert (common.blur[:, 1:] == 0).all()
        assert common.blur[:, 0].max() <= 0.8 / 512


@pytest.mark.parametrize("name", [field.name for field in fields(Difficulty)])
def test_each_difficulty_changes_the_picture_by_itself(name: str) -> None:
    line = timeline({frame: {0: SPOT} for frame in range(0, 15000, 250)}, 15001)
    line.visits[0].pose[:, 3:] = [0.5, 0.6, 0.3]
    line.visits[0].pose[0, 3] = 0
    apart = []
    for seed in (3, 4):  # not everything happens in every procedure
        scene, clean = (
            scene_of(line, replace(CLEAN, **{name: strength}), seed, changed={0: "bare"}) for strength in (1, 0)
        )
        apart += [difference(scene.draw(frame), clean.draw(frame)) for frame in range(0, 15000, 1000)]
    assert max(apart) > 0.5, "mean over the whole frame"


def test_a_clean_polyp_looks_the_same_minutes_later() -> None:
    line = timeline({0: {0: SPOT}, 9000: {0: SPOT}}, 9001)
    apart: dict[str, list[float]] = {"clean": [], "study": []}
    for seed in range(2):
        for name, difficulty in (("clean", CLEAN), ("study", Difficulty())):
            scene = scene_of(line, difficulty, seed)
            inner = (58, 48, 82, 72)
            apart[name].append(difference(scene.draw(0, inner), scene.draw(9000, inner)))
    assert np.mean(apart["clean"]) < 10, "the lamp wanders a little"
    assert np.mean(apart["study"]) > 2 * np.mean(apart["clean"])


def test_difficulties_grow_with_their_strength() -> None:
    covered, blurred = [], []
    for strength in (0.0, 0.5, 1.0, 2.0):
        difficulty = Difficulty(*[strength] * 6)
        states = [PolypState(0, 600, difficulty, np.random.default_rng(seed)).at(TIMES) for seed in range(20)]
        frames = [FrameState(600, 1.25, difficulty, np.random.default_rng(seed)).at(TIMES) for seed in range(20)]
        covered.append(np.mean([np.maximum(state.folds[:, :, 1], 0).mean() for state in states]))
        blurred.append(np.mean([frame.blur[:, 0].mean() for frame in frames]))
    for measured in (covered, blurred):
        assert measured == sorted(measured)
        assert measured[-1] > measured[0]


def test_something_of_a_polyp_stays_to_be_seen() -> None:
    for seed in range(40):
        state = PolypState(0, 600, Difficulty(occlusion=3), np.random.default_rng(seed)).at(TIMES)
        assert np.maximum(state.folds[:, :, 1], 0).sum(axis=1).max() <= 0.86


def test_a_state_depends_on_the_time_alone() -> None:
    state = PolypState(10, 90, Difficulty(), np.random.default_rng(1))
    together = state.at(np.array([20.0, 50.0]))
    alone = state.at(np.array([50.0]))
    for name in ("surface", "folds", "tool", "foam"):
        assert np.array_equal(getattr(together, name)[1:], getattr(alone, name))
    assert np.array_equal(state.bubbles(31.0, 0.5), state.bubbles(31.0, 0.5))
    assert len(state.bubbles(31.0, 0.5)) == 31


@pytest.mark.parametrize("value", [-0.1, 3.1, math.nan, math.inf])
def test_senseless_strengths_are_refused(value: float) -> None:
    with pytest.raises(DataError, match="dirt must be from 0 to 3"):
        Difficulty(dirt=value)
