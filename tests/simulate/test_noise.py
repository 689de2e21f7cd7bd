"""Noise without a seam, and values that wander: even everywhere, smooth, and forgotten after a while."""

import numpy as np
import pytest
from numpy.typing import NDArray

from polypcount.simulate.noise import Drifts, layered_noise, tileable_noise

PERIODS = (1.5, 12.0, 100.0)
STRENGTHS = {"even": (1, 1, 1), "slow": (0.1, 0.6, 1), "quick": (2, 0, 0)}
TIMES = np.array([0, 0.75, 50, 50.5, 56, 100, 299.9])  # on the values that curves go through, and between them


@pytest.fixture(scope="module")
def drawn() -> dict[str, NDArray[np.float64]]:
    """float64[seeds, times] by name."""
    each = [Drifts(300, PERIODS, STRENGTHS, np.random.default_rng([1, seed])).at(TIMES) for seed in range(3000)]
    return {name: np.array([values[name] for values in each]) for name in STRENGTHS}


@pytest.mark.parametrize("name", list(STRENGTHS))
def test_a_drift_has_mean_0_and_deviation_1_at_every_time(drawn: dict[str, NDArray[np.float64]], name: str) -> None:
    # The standard error of a mean over 3000 seeds is 0.018, that of a deviation 0.013.
    assert np.abs(drawn[name].mean(axis=0)).max() < 0.075
    assert np.abs(drawn[name].std(axis=0) - 1).max() < 0.055


def test_near_times_are_more_alike_than_far_ones(drawn: dict[str, NDArray[np.float64]]) -> None:
    def alike(name: str, one: int, other: int) -> float:
        return float(np.corrcoef(drawn[name][:, one], drawn[name][:, other])[0, 1])

    half_a_second, six, fifty, minutes = (alike("slow", 2, other) for other in (3, 4, 5, 6))
    assert half_a_second > 0.98
    assert half_a_second > six > fifty > minutes
    assert abs(minutes) < 0.08, "longer than the longest period"
    assert abs(alike("quick", 2, 4)) < 0.08, "6 s are four periods of it"
    assert alike("quick", 2, 3) < half_a_second
    names = np.corrcoef([drawn[name][:, 2] for name in STRENGTHS])
    assert np.abs(names[np.triu_indices(3, 1)]).max() < 0.08, "one has nothing to do with the other"


def test_a_drift_is_smooth() -> None:
    drift = Drifts(60, PERIODS, {"a": (1, 1, 1)}, np.random.default_rng(4))
    steps = [np.abs(np.diff(drift.at(np.arange(0, 60, step))["a"])).max() for step in (0.02, 0.01, 0.005)]
    assert steps[0] < 0.1
    assert steps[1] / steps[0] == pytest.approx(0.5, abs=0.05), "half the time, half the way: no jumps"
    assert steps[2] / steps[1] == pytest.approx(0.5, abs=0.05)


def test_a_drift_is_the_same_however_it_is_asked() -> None:
    drift = Drifts(20, PERIODS, STRENGTHS, np.random.default_rng(4))
    times = np.array([19.5, 3.0, 3.0, 0.0])
    together = drift.at(times)
    for name in STRENGTHS:
        assert together[name].tolist() == [drift.at(np.array([time]))[name][0] for time in times.tolist()]
        assert drift.at(np.empty(0))[name].shape == (0,)
    only_ratio = Drifts(20, PERIODS, {"a": (3, 3, 3)}, np.random.default_rng(4))
    same = Drifts(20, PERIODS, {"a": (1, 1, 1)}, np.random.default_rng(4))
    assert only_ratio.at(times)["a"] == pytest.approx(same.at(times)["a"])


@pytest.mark.parametrize("stretch", [1.0, 2.5])
def test_noise_has_no_seam(stretch: float) -> None:
    noise = tileable_noise(128, 0.05, np.random.default_rng(0), stretch)
    assert noise.dtype == np.float32
    assert noise.shape == (128, 128)
    assert (noise.mean(), noise.std()) == pytest.approx((0, 1), abs=1e-4)
    for axis in (0, 1):
        steps = np.abs(np.diff(noise, axis=axis, append=noise.take([0], axis=axis))).mean(axis=1 - axis)
        assert steps[-1] < 1.3 * steps.mean(), "from the last row to the first it is no further than elsewhere"
    along_x, along_y = (np.abs(np.diff(noise, axis=axis)).mean() for axis in (1, 0))
    assert along_y / along_x == pytest.approx(stretch, rel=0.15), "blots are that much longer along x"


def test_coarser_noise_changes_more_slowly() -> None:
    steps = [
        np.abs(np.diff(tileable_noise(256, coarseness, np.random.default_rng(2)), axis=0)).mean()
        for coarseness in (0.02, 0.04, 0.08)
    ]
    assert steps[0] / steps[1] == pytest.approx(2, rel=0.1)
    assert steps[1] / steps[2] == pytest.approx(2, rel=0.1)


def test_layers_are_weaker_the_finer_they_are() -> None:
    both, coarse = (layered_noise(256, sizes, np.random.default_rng(3)) for sizes in ((0.04, 0.01), (0.04,)))
    assert (both.mean(), both.std()) == pytest.approx((0, 1), abs=1e-4)
    assert np.corrcoef(both.ravel(), coarse.ravel())[0, 1] == pytest.approx(1 / np.hypot(1, 0.6), abs=0.03)
