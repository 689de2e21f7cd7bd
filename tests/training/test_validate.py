"""Validation: the same numbers as query by query, nothing learnt from it, None for what is undefined."""

import copy
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from polypcount.corpus import Corpus
from polypcount.evaluation import reidentification_scores, retrieval_scores
from polypcount.training.batches import read_clips
from polypcount.training.data import TrainingData, open_crops, training_data
from polypcount.training.learner import Learner, batch_targets
from polypcount.training.loss import soft_contrastive_loss
from polypcount.training.processes import Machine, new_fabric
from polypcount.training.recipe_file import load_recipe
from polypcount.training.start import new_model
from polypcount.training.validate import better, validate
from polypcount.video import CropStore

Scene = tuple[Learner, TrainingData, CropStore]
RECIPE: dict[str, Any] = {
    **{"base": "temporal", "crop": {"scale": 2, "size": 16}, "validation": {"of": "fragments", "batches": 2}},
    "model": {"backbone": "tiny", "weights": False, "d": 8, "heads": 2, "ff": 16, "layers": 1},
    "sampler": {"polyps": 2, "views": 3, "length": 4, "stride": 2},
    "data": {"validation_share": 0.15},
}


@pytest.fixture
def scene(drawn: Corpus, tmp_path: Path) -> Scene:
    recipe = load_recipe(RECIPE)
    fabric = new_fabric(Machine("cpu"))
    fabric.launch()
    judging = training_data(drawn, recipe)[1]
    assert judging is not None
    return Learner(fabric, new_model(recipe), recipe, None), judging, open_crops(judging, recipe.crop, tmp_path)


def test_values_are_those_of_one_query_after_the_other(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    learner, data, store = scene
    found = validate(*scene)
    encoder = copy.deepcopy(learner.encoder).eval()
    with torch.no_grad():
        one_by_one = []
        for rows in data.queries:
            clips = read_clips(store, [rows])
            one_by_one.append(encoder(learner.images(clips, None), clips.mask)[0].numpy())
        losses = []
        for batch in list(data.sampler.batches(0))[:2]:
            clips = read_clips(store, batch.rows)
            vectors = encoder.head(encoder(learner.images(clips, None), clips.mask))
            targets = batch_targets(batch, learner.recipe.loss)
            losses.append(float(soft_contrastive_loss(vectors, targets, 0.25)))
    assert {len(rows) for rows in data.queries} == {1, 4}, "views of different lengths"
    vectors = np.stack(one_by_one)
    assert found["loss"] == pytest.approx(np.mean(losses), rel=1e-4)
    retrieved = retrieval_scores(vectors, data.query_polyp)
    assert found["mean_average_precision"] == pytest.approx(retrieved.mean_average_precision, abs=1e-3)
    assert found["hit_rate_1"] == pytest.approx(retrieved.hit_rate_1, abs=0.05)
    assert found["auroc"] == pytest.approx(reidentification_scores(vectors, data.query_polyp).auroc, abs=1e-3)
    monkeypatch.setattr("polypcount.training.validate._FRAMES_AT_ONCE", 5)
    assert validate(*scene) == pytest.approx(found, abs=1e-3), "in however many parts"


def test_nothing_is_learnt_and_training_goes_on(scene: Scene) -> None:
    learner = scene[0]
    before = {name: values.clone() for name, values in learner.encoder.state_dict().items()}
    modes = [module.training for module in learner.encoder.modules()]
    first = validate(*scene)
    assert validate(*scene) == first, "the same batches each time"
    assert all(torch.equal(values, before[name]) for name, values in learner.encoder.state_dict().items())
    assert [module.training for module in learner.encoder.modules()] == modes
    assert True in modes
    assert False in modes
    assert all(parameter.grad is None for parameter in learner.encoder.parameters())


@pytest.mark.parametrize("count", [0, 1])
def test_without_others_to_find_retrieval_is_undefined(scene: Scene, count: int) -> None:
    learner, data, store = scene
    few = dataclasses.replace(data, queries=data.queries[:count], query_polyp=data.query_polyp[:count])
    found = validate(learner, few, store)
    assert found.pop("loss") is not None
    assert found == {"mean_average_precision": None, "hit_rate_1": None, "auroc": None}


def test_better_is_lower_for_the_loss_and_higher_for_the_rest() -> None:
    assert better({"loss": 2.0}, None, "loss")
    assert better({"loss": 2.0}, 2.5, "loss")
    assert not better({"loss": 2.0}, 2.0, "loss")
    assert better({"auroc": 0.6}, 0.5, "auroc")
    assert not better({"auroc": 0.6}, 0.6, "auroc")
    assert not better({"auroc": None}, None, "auroc"), "what is undefined is no improvement"
