"""Sweeps over grids: the same as one point at a time, for every point."""

import threading
from typing import Any

import numpy as np
import pytest

from polypcount.clustering import METHODS, Grid, Method, Oracle, TemporalAffinityPropagation, run_tasks, sweep
from polypcount.clustering.grid import GAMMAS, steps
from polypcount.clustering.similarity import fuse, temporal_adjacency, visual_similarity
from polypcount.errors import DataError
from tests.clustering.inputs import partition, polyps_in_time, scikit_learn


def test_presets() -> None:
    sizes = {
        name: {preset: len(method().grid(preset)) for preset in ("paper", "coarse", "fine")}
        for name, method in METHODS.items()
    }
    assert sizes["threshold"]["paper"] == 101
    assert sizes["ap"]["paper"] == 41
    assert sizes["temporal-ap"]["paper"] == 34 * 21 * 41 == 29_274
    for name, size in sizes.items():
        assert name in ("none", "oracle") or size["coarse"] < min(size["paper"], size["fine"])
    assert GAMMAS["paper"][:10] == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    assert GAMMAS["paper"][10:12] == (1.375, 1.75)
    assert GAMMAS["paper"][-1] == 10
    assert steps(-5, 5, 0.25)[20] == 0


def test_points_are_numbered_with_the_last_parameter_fastest() -> None:
    grid = Grid({"gamma": (1, 2), "alpha": (0.1, 0.2, 0.3)})
    assert [tuple(grid.point(k).values()) for k in range(6)] == [
        (1, 0.1), (1, 0.2), (1, 0.3), (2, 0.1), (2, 0.2), (2, 0.3),
    ]  # fmt: skip
    assert grid.blocks() == [({"gamma": 1}, slice(0, 3)), ({"gamma": 2}, slice(3, 6))]
    assert len(Grid({})) == 1
    assert Grid({}).point(0) == {}


@pytest.mark.parametrize("kind", METHODS.values(), ids=METHODS)
def test_a_sweep_is_one_point_after_the_other(kind: type[Method]) -> None:
    tracklets = polyps_in_time(14, 5)
    if kind is not Oracle:
        tracklets = type(tracklets).of(tracklets.vectors, tracklets.positions, [[0, 1], [3, 9]], [[4, 11], [11, 2]])
    grid = kind().grid("coarse")
    found = sweep(kind(), tracklets, grid, threads=2)
    assert found.labels.shape == (len(grid), 14)
    for point in range(0, len(grid), max(1, len(grid) // 25)):
        one = kind(**grid.point(point)).group(tracklets)
        assert partition(found.labels[point]) == partition(one.labels)
        assert (found.iterations[point], found.converged[point]) == (one.iterations, one.converged)


@pytest.mark.parametrize(("count", "seed"), [(9, 0), (30, 1)])
def test_the_full_grid_equals_scikit_learn_wherever_it_is_sampled(count: int, seed: int) -> None:
    tracklets = polyps_in_time(count, seed, polyps=4)
    assert tracklets.positions is not None
    method = TemporalAffinityPropagation(similarity="minmax-euclidean")
    grid = method.grid("paper")
    found = sweep(method, tracklets, grid)
    visual = visual_similarity(tracklets.vectors, "minmax-euclidean")
    rng = np.random.default_rng(seed)
    for point in rng.choice(len(grid), 120, replace=False).tolist():
        at = grid.point(point)
        similarity = fuse(visual, temporal_adjacency(tracklets.positions, at["gamma"]), at["alpha"])
        _, labels, iterations = scikit_learn(similarity, at["preference"])
        assert partition(found.labels[point]) == partition(labels), at
        assert found.iterations[point] == iterations, at


def test_a_parameter_that_the_grid_leaves_out_is_the_methods_own() -> None:
    tracklets = polyps_in_time(20, 7)
    grid = Grid({"alpha": (0.2, 0.8)})
    found = sweep(TemporalAffinityPropagation(0.3, gamma=2), tracklets, grid)
    for point, alpha in enumerate((0.2, 0.8)):
        one = TemporalAffinityPropagation(0.3, gamma=2, alpha=alpha).group(tracklets)
        assert partition(found.labels[point]) == partition(one.labels)


def test_progress_counts_every_point() -> None:
    told: list[tuple[int, int]] = []
    method = TemporalAffinityPropagation()
    for preset in ("paper", "coarse"):
        told.clear()
        grid = method.grid(preset)
        sweep(method, polyps_in_time(3, 0), grid, progress=lambda done, total: told.append((done, total)))
        assert told[-1] == (len(grid), len(grid))


def test_tasks_are_taken_when_they_are_needed_and_errors_come_through() -> None:
    taken, gate = [], threading.Event()

    def tasks() -> Any:
        for number in range(100):
            taken.append(number)
            yield lambda: 1 if gate.wait() else 0

    running = run_tasks(tasks(), threads=2)
    threading.Timer(0.2, gate.set).start()  # until then no task ends
    assert next(running) == 1
    assert len(taken) == 3, "two at work and one in waiting"
    assert sum(running) == 99

    def fails() -> int:
        raise DataError("no")

    with pytest.raises(DataError, match="no"):
        list(run_tasks([fails], threads=2))
    with pytest.raises(DataError, match="threads must be at least 1, found 0"):
        list(run_tasks([], threads=0))


def test_a_product_has_no_alpha_to_search() -> None:
    method = TemporalAffinityPropagation(fusion="product")
    assert list(method.grid("paper").axes) == ["gamma", "preference"]
    found = sweep(method, polyps_in_time(9, 1), method.grid("coarse"))
    assert len(found.labels) == 5 * 11


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"alpha": ()}, "no value for alpha"),
        ({"alpha": 3}, "takes several numbers for each parameter"),
        ({"alpha": (0.1, 0.1)}, "must differ"),
        ({"alpha": (float("inf"),)}, "must be finite"),
        ({"beta": (1.0,)}, "temporal-ap has no parameter beta to search; it has: gamma, alpha, preference"),
        ({"alpha": (2.0,)}, "alpha must be a number from 0 to 1, found 2"),
    ],
)
def test_bad_grids(axes: dict[str, tuple[float, ...]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        sweep(TemporalAffinityPropagation(), polyps_in_time(4, 0), Grid(axes))
