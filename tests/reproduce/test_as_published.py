"""`--as-published`: the same switches for all encoders."""

import pytest

from polypcount.reproduce import ReproduceSettings, choose_rows
from polypcount.reproduce.rows import ENCODERS
from polypcount.training import load_recipe


@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder_gets_the_switches_that_it_has(name: str) -> None:
    settings = ReproduceSettings(choose_rows([]), as_published=True, changes=["model.weights=mine.pth"])
    recipe, published = settings.recipe(ENCODERS[name], None), load_recipe("published")
    assert recipe.model == load_recipe(ENCODERS[name].recipe).model.model_copy(
        update={"weights": "mine.pth", "normalise": "none", "batch_norm": "batch"}
    )
    assert (recipe.data, recipe.validation) == (published.data, published.validation)
    assert getattr(recipe.sampler, "strict", True)
    assert recipe.loss == load_recipe(ENCODERS[name].recipe).loss
    if name == "temporal":
        expected = load_recipe("published", ["model.weights=mine.pth", "name=temporal"])
        assert recipe == expected
