"""How long encoders are trained."""

import json
from pathlib import Path

import pytest

from polypcount.errors import DataError
from polypcount.reproduce import Benchmark, TrainingLength
from polypcount.reproduce.encoders import recipe_for
from polypcount.reproduce.plan import Plan, affordable_steps, batches_of, length_changes
from polypcount.reproduce.rows import ENCODERS
from polypcount.training import load_recipe
from polypcount.training.recipe import SegmentSettings
from tests.reproduce.conftest import TINY


def steps(recipe: str, wanted: int, natural: int) -> tuple[int, int]:
    """Epochs, and batches of each, of a recipe as it is after the changes."""
    before = load_recipe(recipe)
    after = load_recipe(recipe, length_changes(before, wanted, natural))
    return after.epochs, after.batches_per_epoch or 0


def test_steps_are_ten_epochs_rounded_up() -> None:
    assert steps("temporal", 600, 100) == (10, 60)
    assert steps("temporal", 601, 100) == (10, 61)
    assert steps("tpc", 600, 13) == (10, 60), "pairs are drawn again to fill an epoch"
    assert steps("temporal", 4, 100) == (4, 1)
    assert steps("temporal", 1, 0) == (1, 1)
    assert steps("temporal", 600, 25) == (24, 25), "fragments are not, so there are more epochs"


@pytest.mark.parametrize("name", ["sfe", "tpc", "temporal", "views-2", "views-28"])
def test_every_sampler_gives_the_steps(name: str, benchmark_of_datasets: Benchmark) -> None:
    recipe = recipe_for(ENCODERS[name], 0, TINY)
    changes = length_changes(recipe, 60, batches_of(recipe, benchmark_of_datasets.learn))
    after = recipe_for(ENCODERS[name], 0, TINY, changes)
    assert after.batches_per_epoch is not None
    given = min(batches_of(after, benchmark_of_datasets.learn), after.batches_per_epoch)
    assert 60 <= given * after.epochs < 60 + after.epochs


def test_without_a_wish_recipes_stay_as_they_are(tmp_path: Path) -> None:
    assert Plan(tmp_path / "plan.json", TrainingLength(), 9).planned(load_recipe("temporal")) == []


def test_a_budget_is_shared_by_time_and_the_share_stays(benchmark_of_datasets: Benchmark, tmp_path: Path) -> None:
    recipe = recipe_for(ENCODERS["temporal"], 0, (*TINY, "epochs=100000"))
    length = TrainingLength(budget_minutes=2)
    plan = Plan(tmp_path / "plan.json", length, 4)
    assert plan.planned(recipe) is None
    changes = plan.work_out("temporal", recipe, benchmark_of_datasets)
    kept = json.loads((tmp_path / "plan.json").read_text())["2 minutes"]
    assert kept["share_seconds"] == 30
    (entry,) = kept["encoders"].values()
    after = load_recipe(recipe, changes)
    assert after.batches_per_epoch is not None
    steps_planned = after.epochs * after.batches_per_epoch
    needed = steps_planned * entry["seconds_of_step"] + after.epochs * entry["seconds_after_epoch"]
    assert needed == pytest.approx(30, rel=0.1)
    again = Plan(tmp_path / "plan.json", length, 1)
    other_seed = recipe_for(ENCODERS["temporal"], 7, (*TINY, "epochs=100000"))
    assert again.planned(other_seed) == changes, "the same for other seeds, and whatever else is trained now"
    assert again.planned(recipe_for(ENCODERS["supervised"], 0, TINY)) is None
    assert Plan(tmp_path / "plan.json", TrainingLength(steps=5), 1).planned(recipe) is None


def test_a_budget_is_no_longer_than_the_recipe(benchmark_of_datasets: Benchmark, tmp_path: Path) -> None:
    recipe = recipe_for(ENCODERS["mve"], 0, (*TINY, "epochs=3"))
    changes = Plan(tmp_path / "plan.json", TrainingLength(budget_minutes=600), 1).work_out(
        "mve", recipe, benchmark_of_datasets
    )
    after = load_recipe(recipe, changes)
    learn = benchmark_of_datasets.learn
    assert isinstance(recipe.sampler, SegmentSettings)
    shown = -(-len(learn.boxes) // (2 * recipe.sampler.samples * recipe.sampler.length))
    assert shown > batches_of(recipe, learn)
    steps = after.epochs * (after.batches_per_epoch or 0)
    assert 3 * shown <= steps < 3 * shown + after.epochs, "rounded up to whole epochs"


def test_affordable_steps_by_hand() -> None:
    assert affordable_steps(100, step=0.5, after_epoch=2, most=None) == 160  # 10 x 2 s, and 80 s of steps
    assert affordable_steps(100, step=0.5, after_epoch=2, most=20) == 160
    assert affordable_steps(100, step=0.5, after_epoch=2, most=4) == 100  # 25 epochs of 4 x 0.5 + 2 s
    assert affordable_steps(10, step=0.5, after_epoch=2, most=None) == 0


def test_wishes_that_cannot_be() -> None:
    with pytest.raises(DataError, match="give one of them"):
        TrainingLength(budget_minutes=1, steps=1)
    for minutes in (0, -1, float("nan"), float("inf")):
        with pytest.raises(DataError, match="minutes above 0"):
            TrainingLength(budget_minutes=minutes)
    with pytest.raises(DataError, match="at least 1"):
        TrainingLength(steps=0)
