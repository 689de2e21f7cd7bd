"""Means and spreads over runs, by hand and by independent calculation."""

import math
import statistics

import numpy as np
import pytest

from polypcount.evaluation import Mean
from polypcount.reproduce.results import Run
from polypcount.reproduce.tables import spread_of


def run(benchmark: str, seed: int | None, value: float, deviation: float = math.nan) -> Run:
    mean = Mean(value, deviation, value - 1, value + 1, 3, 4)
    return Run("ours", benchmark, seed, {"closest": {"fr": mean}}, mean)


def fr(one: Run) -> Mean:
    return one.rules["closest"]["fr"]


def test_two_renders_of_three_seeds() -> None:
    rng = np.random.default_rng(0)
    values, deviations = rng.random((2, 3)) + 1, rng.random((2, 3))
    runs = [
        run(f"render-{r}", seed, values[r, seed].item(), deviations[r, seed].item())
        for r in range(2)
        for seed in range(3)
    ]
    found = spread_of(runs, fr)
    assert found.mean == pytest.approx(statistics.mean(values.ravel().tolist()))
    assert found.videos == pytest.approx(math.sqrt(statistics.mean(d * d for d in deviations.ravel().tolist())))
    within = [statistics.variance(values[r].tolist()) for r in range(2)]
    assert found.seeds == pytest.approx(math.sqrt(sum(within) / 2))
    assert found.renders == pytest.approx(statistics.stdev(statistics.mean(values[r].tolist()) for r in range(2)))
    assert (found.low, found.high) == pytest.approx((found.mean - 1, found.mean + 1))
    assert (found.least, found.most, found.runs) == (values.min(), values.max(), 6)


def test_one_run_has_its_own_spread_over_videos_and_no_other() -> None:
    found = spread_of([run("real", 42, 2.32, 1.80)], fr)
    assert (found.mean, found.runs) == (2.32, 1)
    assert found.videos == pytest.approx(1.80)
    assert math.isnan(found.seeds)
    assert math.isnan(found.renders)


def test_no_run_and_undefined_runs() -> None:
    for runs in ([], [run("real", 1, math.nan)]):
        found = spread_of(runs, fr)
        assert found.runs == 0
        assert all(math.isnan(value) for value in (found.mean, found.videos, found.seeds, found.renders, found.least))
    found = spread_of([run("real", 1, math.nan), run("real", 2, 3.0)], fr)
    assert (found.mean, found.runs) == (3.0, 1)


def test_equal_runs_have_no_spread() -> None:
    found = spread_of([run(f"render-{r}", seed, 2.0) for r in range(2) for seed in range(2)], fr)
    assert (found.mean, found.seeds, found.renders) == (2.0, 0.0, 0.0)
    assert math.isnan(found.videos)
