"""The encoder that a recipe begins with: shape, weights, normalisation."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from polypcount.encoder import Preprocessing, backbones, load_torch, save_encoder
from polypcount.encoder.backbones import IMAGENET_MEAN, IMAGENET_STD
from polypcount.errors import DataError, FileError, PolypcountError
from polypcount.training.recipe import Recipe
from polypcount.training.recipe_file import load_recipe
from polypcount.training.start import new_model
from polypcount.video import CropRule

TINY = {"backbone": "tiny", "weights": False, "d": 8, "heads": 2, "ff": 16, "layers": 2}


def recipe(seed: int = 42, **model: Any) -> Recipe:
    return load_recipe({"base": "temporal", "seed": seed, "crop": {"size": 24}, "model": {**TINY, **model}})


def same(a: nn.Module, b: nn.Module) -> bool:
    mine, theirs = a.state_dict(), b.state_dict()
    return mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in mine)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved encoder, whose statistics of batches are not the initial ones."""
    encoder = new_model(recipe(seed=7))
    encoder.train()(torch.randn(3, 2, 3, 24, 24), torch.ones(3, 2, dtype=torch.bool))
    return save_encoder(encoder, tmp_path_factory.mktemp("encoder") / "run")


def test_the_encoder_has_the_shape_of_the_recipe() -> None:
    encoder = new_model(recipe(dropout=0.3, positions=True))
    spec = encoder.spec
    assert (spec.backbone, spec.d, spec.layers, spec.heads, spec.ff) == ("tiny", 8, 2, 2, 16)
    assert (spec.dropout, spec.pooling, spec.positions) == (0.3, "cls", True)
    assert spec.preprocessing == Preprocessing(crop=CropRule(size=24), mean=IMAGENET_MEAN, std=IMAGENET_STD)
    assert new_model(recipe(normalise="none")).spec.preprocessing == Preprocessing(
        crop=CropRule(size=24), mean=(0, 0, 0), std=(1, 1, 1)
    )
    assert new_model(recipe(pooling="mean")).sequence.transformer is None


def test_the_seed_decides_on_the_weights(trained: Path) -> None:
    torch.manual_seed(1)
    first = new_model(recipe())
    torch.manual_seed(2)
    torch.rand(5)
    assert same(new_model(recipe()), first)
    assert not same(new_model(recipe(seed=1)), first)
    with_donor = new_model(recipe(weights=str(trained)))
    assert same(with_donor.sequence, first.sequence), "weights from elsewhere do not change what is drawn"


def test_the_backbone_of_another_encoder_is_taken(trained: Path) -> None:
    before = new_model(recipe(seed=7))
    encoder = new_model(recipe(weights=str(trained), layers=1, d=4))
    donor = load_torch(trained)
    assert same(encoder.backbone, donor.backbone)
    assert not same(encoder.backbone, before.backbone), "with its statistics of batches"
    assert (encoder.spec.d, encoder.spec.layers) == (4, 1), "and only the backbone"
    with pytest.raises(DataError, match=r"^model.weights .*run: its backbone is tiny, not lite0$"):
        new_model(recipe(weights=str(trained), backbone="lite0"))


@pytest.mark.parametrize("weights", [False, True, "donor"])
def test_training_goes_on_from_an_encoder(trained: Path, weights: bool | str) -> None:
    chosen = str(trained) if weights == "donor" else weights
    encoder = new_model(recipe(start=str(trained), weights=chosen, dropout=0.5, normalise="none"))
    assert same(encoder, load_torch(trained))
    assert encoder.spec.dropout == 0.5
    assert encoder.spec.preprocessing.mean == (0, 0, 0), "what is no weight is the recipe's"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"d": 4}, "its d is 8, and the recipe's is 4; set model.d=8"),
        ({"backbone": "lite0"}, "its backbone is tiny, and the recipe's is lite0; set model.backbone=tiny,"),
    ],
)
def test_an_encoder_of_another_shape_is_one_line(trained: Path, change: dict[str, Any], line: str) -> None:
    with pytest.raises(DataError) as caught:
        new_model(recipe(start=str(trained), **change))
    assert str(caught.value).startswith(f"model.start {trained}: {line}")
    assert "\n" not in str(caught.value)


def test_the_advice_of_the_refusal_can_be_followed(trained: Path) -> None:
    other = recipe(start=str(trained), d=4, positions=True)
    for _ in range(2):
        with pytest.raises(DataError) as caught:
            new_model(other)
        (advice,) = [word.strip(",") for word in str(caught.value).split() if word.startswith("model.") and "=" in word]
        other = load_recipe(other, [advice])
    new_model(other)


def test_a_backbone_of_the_same_name_and_other_tensors_is_one_line(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of two transformers models in folders of the same name."""
    made: list[nn.Module] = []
    tiny = backbones._tiny_network

    def wider_after_the_first() -> nn.Module:
        network = tiny()
        if made and isinstance(network, nn.Sequential):
            network[0], network[1], network[3] = nn.Conv2d(3, 9, 3), nn.BatchNorm2d(9), nn.Conv2d(9, 16, 3)
        made.append(network)
        return network

    monkeypatch.setattr(backbones, "_tiny_network", wider_after_the_first)
    settings: list[dict[str, Any]] = [{"weights": str(trained)}, {"start": str(trained)}]
    for model in settings:
        made.clear()  # the encoder in the folder is read first
        with pytest.raises(FileError, match=rf"^model.{next(iter(model))} .*: .* must have shape \[9") as caught:
            new_model(recipe(**model))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "model",
    [
        {"weights": "nowhere.pth", "backbone": "lite0"},
        {"weights": "."},
        {"start": "nowhere"},
        {"start": "nowhere", "backbone": "resnet-50", "weights": True},
        {"backbone": "./nowhere"},
        {"backbone": "nowhere.pth"},
        {"backbone": "there/is-none", "weights": True},
        {"d": 8, "heads": 3},
        {"pooling": "mean", "positions": True},
    ],
)
def test_what_is_missing_or_impossible_is_one_line(
    model: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PolypcountError) as caught:
        new_model(recipe(**model))
    assert "\n" not in str(caught.value)
    assert str(next(iter(model.values()))) in str(caught.value) or "heads" in model or "pooling" in model


def test_a_start_that_is_missing_is_known_before_the_backbone_is_sought(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def sought(*_: Any, **options: Any) -> None:
        asked.append(options["weights"])
        raise FileError("sought")

    monkeypatch.setattr("polypcount.training.start.new_encoder", sought)
    with pytest.raises(FileError, match="nowhere"):
        new_model(recipe(start=str(tmp_path / "nowhere"), weights=True))
    assert not asked
    with pytest.raises(FileError, match="sought"):
        new_model(recipe(start=str(trained), weights=True))
    assert asked == [False], "published weights are not needed where all are replaced"


def test_a_crop_too_small_for_a_network_is_one_line() -> None:
    with pytest.raises(DataError, match="size must be at least 8 pixels, found 4"):
        new_model(load_recipe(recipe(), ["crop.size=4"]))
