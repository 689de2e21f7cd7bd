"""Means over videos, against plain calculations."""

import math
import statistics
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polypcount.errors import DataError
from polypcount.evaluation import VideoScores, mean_of, score_video, summarise, summary

VALUES = st.lists(st.floats(-5, 5) | st.just(math.nan), max_size=25)


@given(values=VALUES)
def test_mean_and_deviation_are_over_the_defined_values(values: list[float]) -> None:
    found = mean_of(values, resamples=50)
    defined = [value for value in values if not math.isnan(value)]
    assert (found.count, found.total) == (len(defined), len(values))
    assert found.mean == pytest.approx(statistics.fmean(defined) if defined else math.nan, nan_ok=True, abs=1e-9)
    if len(defined) > 1:
        assert found.std == pytest.approx(statistics.stdev(defined), abs=1e-9)
        assert min(defined) - 1e-9 <= found.low <= found.high <= max(defined) + 1e-9
    else:
        assert np.isnan([found.std, found.low, found.high]).all()


def drawn_means(values: list[float], resamples: int, seed: int) -> list[float]:
    """One draw after another, from the same source of numbers."""
    rng = np.random.default_rng(seed)
    means = []
    for rows in rng.integers(len(values), size=(resamples, len(values))):
        defined = [values[row] for row in rows if not math.isnan(values[row])]
        if defined:
            means.append(sum(defined) / len(defined))
    return means


def test_the_interval_is_of_means_of_draws_of_all_videos() -> None:
    values = [0.0, 3.0, math.nan, math.nan, math.nan, 1.5, math.nan]
    means = drawn_means(values, 2000, seed=4)
    assert len(means) < 2000, "some draws have no defined value and are left out"
    found = mean_of(values, level=0.8, resamples=2000, seed=4)
    assert (found.low, found.high) == pytest.approx(np.quantile(means, [0.1, 0.9]))
    assert mean_of(values, level=0.5, resamples=2000, seed=4).low > found.low


@pytest.mark.parametrize("at_a_time", [1, 40, 10**6])
def test_the_interval_does_not_depend_on_how_it_is_worked_out(at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [1.0, math.nan, 2.0, 5.0, 9.0, 9.5]
    monkeypatch.setattr(summary, "DRAWS_AT_A_TIME", at_a_time)
    found = mean_of(values, resamples=500, seed=2)
    assert (found.low, found.high) == pytest.approx(np.quantile(drawn_means(values, 500, 2), [0.025, 0.975]))


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    samples = rng.normal(3.0, 1.0, (300, 40))
    covered = [found.low <= 3.0 <= found.high for found in (mean_of(row, resamples=500) for row in samples)]
    assert 0.90 < np.mean(covered) < 0.98


def test_the_seed_decides() -> None:
    values = np.random.default_rng(1).random(19)
    assert mean_of(values) == mean_of(values)
    assert mean_of(values, resamples=100, seed=1).low != mean_of(values, resamples=100, seed=2).low


def test_no_draw_with_a_defined_value_leaves_the_interval_open() -> None:
    values = [1.0, 2.0] + [math.nan] * 40
    found = [mean_of(values, resamples=1, seed=seed) for seed in range(40)]
    assert any(math.isnan(one.low) for one in found)
    assert all(one.mean == 1.5 for one in found)


def test_bad_input() -> None:
    with pytest.raises(DataError, match=r"values must have the shape \[videos\], found \[1, 2\]"):
        mean_of([[1.0, 2.0]])
    with pytest.raises(DataError, match="values must be finite, or NaN where undefined, found infinity in row 1"):
        mean_of([1.0, math.inf])
    with pytest.raises(DataError, match="found 95"):
        mean_of([1.0, 2.0], level=95)
    with pytest.raises(DataError, match="and 0"):
        mean_of([1.0, 2.0], resamples=0)


def videos() -> list[VideoScores]:
    return [
        score_video([0, 0, 1, 1], [0, 0, 0, 1], annotated_polyps=3),  # one of each kind of merging
        score_video([0, 1, 2], [5, 5, 5]),  # one polyp, counted three times
        score_video([0, 0], [0, 0]),  # one polyp, right
        score_video([], [], annotated_polyps=1),  # nothing found
        score_video([0, 0, 0], [0, 1, 2]),  # three polyps, counted once
    ]


def test_summary_of_five_videos_by_hand() -> None:
    found = summarise(videos(), resamples=50)
    expected: dict[str, list[float]] = {
        "fr": [2 / 2, 3, 1, 1 / 3],
        "fr_all": [2 / 3, 3, 1, 0, 1 / 3],
        "fr_single_polyp": [3, 1],
        "fr_multi_polyp": [1, 1 / 3],
        "fpr": [1 / 3, 1],  # the last of the first video's polyp 0 is with polyp 1: one of three pairs
        "fpr_zero_filled": [1 / 3, 0, 0, 0, 1],
        "tpr": [1 / 3, 0, 1],
        "precision": [1 / 2, 1, 0],
        "count_error": [0, 2, 0, -2],  # the fourth video has no tracklet
        "absolute_count_error": [0, 2, 0, 2],
        "exact_count": [1, 0, 1, 0],
        "count_error_all": [-1, 2, 0, -1, -2],
        "absolute_count_error_all": [1, 2, 0, 1, 2],
        "exact_count_all": [0, 0, 1, 0, 0],
        "adjusted_rand": [0, 0, 1, 0],
        "v_measure": [videos()[0].v_measure, 0, 1, 0],
        "bcubed_f1": [videos()[0].bcubed_f1, 1 / 2, 1, 1 / 2],
    }
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].mean == pytest.approx(statistics.fmean(values)), name
        assert found[name].std == pytest.approx(statistics.stdev(values)), name
        assert (found[name].count, found[name].total) == (len(values), 5), name


def test_settings_are_handed_on_and_the_same_videos_drawn_for_every_score() -> None:
    found = summarise(videos(), level=0.8, resamples=9, seed=6)
    alone = [video.fr_all for video in videos()]
    assert found["fr_all"] == mean_of(alone, level=0.8, resamples=9, seed=6)
    for other in ({"level": 0.5}, {"resamples": 3}, {"seed": 7}):  # so few draws tell every setting apart
        assert found["fr_all"] != mean_of(alone, **{"level": 0.8, "resamples": 9, "seed": 6, **other})  # type: ignore[arg-type]


def test_no_videos() -> None:
    for name, mean in summarise([]).items():
        assert np.isnan([mean.mean, mean.std, mean.low, mean.high]).all(), name
        assert astuple(mean)[4:] == (0, 0)
