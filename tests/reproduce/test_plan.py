"""How long encoders are trained."""

import json
from pathlib import Path

import pytest

from polypcount.errors import DataError
from polypcount.reproduce import Benchmark, TrainingLength
from polypcount.reproduce.encoders import recipe_for
from polypcount.reproduce.plan import Equal, Plan
from polypcount.reproduce.rows import ENCODERS
from polypcount.training import Recipe
from polypcount.training.data import epoch_batches
from tests.reproduce.conftest import TINY

NAMES = ("sfe", "mve", "tpc", "temporal", "supervised", "views-2", "views-28")


def recipe(name: str, *changes: str, seed: int = 0) -> Recipe:
    return recipe_for(ENCODERS[name], seed, (*TINY, *changes))


def plan(file: Path, length: TrainingLength, *changes: str, encoders: int = 1) -> Plan:
    return Plan(file, length, recipe("temporal", *changes), encoders)


def test_by_default_all_have_the_steps_of_the_epochs_of_ours(benchmark_of_datasets: Benchmark, tmp_path: Path) -> None:
    planned = plan(tmp_path / "plan.json", TrainingLength(), "epochs=50")
    found = {name: planned.steps(recipe(name), benchmark_of_datasets) for name in NAMES}
    assert set(found.values()) == {50 * epoch_batches(benchmark_of_datasets.learn, recipe("temporal"))}
    assert not (tmp_path / "plan.json").exists(), "it follows from the data"


@pytest.mark.parametrize("equal", ["steps", "images"])
def test_a_number_of_steps_is_that_of_ours(equal: Equal, benchmark_of_datasets: Benchmark, tmp_path: Path) -> None:
    planned = plan(tmp_path / "plan.json", TrainingLength(steps=60, equal=equal))
    for name in NAMES:
        steps = planned.steps(recipe(name), benchmark_of_datasets)
        assert steps == (480 if name == "sfe" and equal == "images" else 60), "its views have one frame, not eight"
        assert (steps or 0) * recipe(name).images == 60 * 448 or equal == "steps"


def test_a_budget_is_shared_by_time_and_the_share_stays(benchmark_of_datasets: Benchmark, tmp_path: Path) -> None:
    long = ("epochs=100000",)
    length, file = TrainingLength(budget_minutes=2), tmp_path / "plan.json"
    first = plan(file, length, *long, encoders=4)
    assert first.steps(recipe("temporal", *long), benchmark_of_datasets) is None
    steps = first.measured_steps("temporal", recipe("temporal", *long), benchmark_of_datasets)
    kept = json.loads(file.read_text())["2 minutes"]
    assert kept["share_seconds"] == 30
    (entry,) = kept["encoders"].values()
    epochs = steps / epoch_batches(benchmark_of_datasets.learn, recipe("temporal"))
    assert steps * entry["seconds_of_step"] + epochs * entry["seconds_after_epoch"] == pytest.approx(30, rel=0.02)
    again = plan(file, length, *long)
    other_seed = recipe("temporal", *long, seed=7)
    assert again.steps(other_seed, benchmark_of_datasets) == steps, "the same for other seeds, whatever else is trained"
    assert again.steps(recipe("supervised"), benchmark_of_datasets) is None


def test_a_budget_is_no_longer_than_the_recipe(benchmark_of_datasets: Benchmark, tmp_path: Path) -> None:
    short = recipe("mve", "epochs=3")
    planned = plan(tmp_path / "plan.json", TrainingLength(budget_minutes=600))
    steps = planned.measured_steps("mve", short, benchmark_of_datasets)
    assert steps == 3 * epoch_batches(benchmark_of_datasets.learn, short)


def test_wishes_that_cannot_be() -> None:
    with pytest.raises(DataError, match="give one of them"):
        TrainingLength(budget_minutes=1, steps=1)
    for minutes in (0, -1, float("nan"), float("inf")):
        with pytest.raises(DataError, match="minutes above 0"):
            TrainingLength(budget_minutes=minutes)
    with pytest.raises(DataError, match="at least 1"):
        TrainingLength(steps=0)
