"""Recipes: what those of the package say, how they build on each other, and what `--set` changes."""

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polypcount.errors import DataError
from polypcount.training.plain_yaml import read_yaml
from polypcount.training.recipe import Augmentation, NeighbourSettings, PolypViewSettings, Recipe, SegmentSettings
from polypcount.training.recipe_file import load_recipe, recipe_differences, recipe_names, recipe_text
from polypcount.video import CropRule

NONE = object()  # in place of a key that is not there


def flat(values: dict[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= flat(value, f"{above}{key}.") if isinstance(value, dict) else {f"{above}{key}": value}
    return found


def differences(name: str, base: str) -> dict[str, Any]:
    mine, theirs = (flat(load_recipe(one).model_dump(mode="json")) for one in (name, base))
    return {key: mine.get(key, NONE) for key in mine.keys() | theirs if mine.get(key, NONE) != theirs.get(key, NONE)}


def changed(*changes: str, recipe: str = "temporal") -> Recipe:
    return load_recipe(recipe, changes)


def test_the_package_has_these_recipes() -> None:
    assert recipe_names() == [
        "bundled",
        "detector",
        "mve",
        "published",
        "sfe",
        "small",
        "supervised",
        "temporal",
        "tpc",
    ]
    assert load_recipe() == load_recipe("temporal")


@pytest.mark.parametrize("name", [name for name in recipe_names() if name != "detector"])
def test_every_recipe_is_the_same_after_writing_and_reading(name: str, tmp_path: Path) -> None:
    recipe = load_recipe(name)
    assert recipe.name == name
    assert load_recipe(read_yaml(recipe_text(recipe))) == recipe
    (tmp_path / "own.yaml").write_text(recipe_text(recipe))
    assert load_recipe(tmp_path / "own.yaml") == load_recipe(str(tmp_path / "own.yaml")) == recipe
    assert load_recipe(recipe) == recipe


@settings(max_examples=25)
@given(
    name=st.text(st.characters(exclude_categories=["Cs"])),
    leave_out=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), max_size=3),
    lr=st.floats(1e-300, 10),
    clip=st.none() | st.floats(1e-3, 1e3),
    weights=st.booleans() | st.sampled_from(["true", "null", "1e-4", "~", "2020-01-01", "run/best", "a: b", ""]),
    scale=st.floats(1e-6, 1e6),
    hue=st.floats(0, 0.5),
    seed=st.integers(0, 2**32 - 1),
    sampler=st.sampled_from([NeighbourSettings(spread=0.5), SegmentSettings(strides=(3,)), PolypViewSettings()]),
)
def test_any_recipe_is_the_same_after_writing_and_reading(
    name: str,
    leave_out: list[str],
    lr: float,
    clip: float | None,
    weights: bool | str,
    scale: float,
    hue: float,
    seed: int,
    sampler: Any,
) -> None:
    base = load_recipe()
    recipe = base.model_copy(
        update={
            "name": name,
            "seed": seed,
            "data": base.data.model_copy(update={"leave_out": tuple(leave_out)}),
            "optimizer": base.optimizer.model_copy(update={"lr": lr, "clip": clip}),
            "model": base.model.model_copy(update={"weights": weights}),
            "crop": CropRule(scale=scale),
            "augmentation": Augmentation(hue=hue),
            "sampler": sampler,
        }
    )
    assert load_recipe(read_yaml(recipe_text(recipe))) == recipe


def test_temporal_is_the_paper() -> None:
    recipe = load_recipe("temporal")
    model, optimizer = recipe.model, recipe.optimizer
    assert (model.backbone, model.weights, model.pooling, model.positions) == ("resnet-50", True, "cls", False)
    assert (model.d, model.layers, model.heads, model.ff, model.dropout) == (128, 3, 8, 2048, 0.1)
    assert recipe.crop == CropRule(scale=5, size=232, shape="squash")
    assert recipe.sampler == PolypViewSettings(polyps=4, views=14, length=8, stride=4, min_frames=30, strict=False)
    assert (recipe.loss.targets, recipe.loss.temperature, recipe.loss.decay) == ("temporal", 0.25, 1.0)
    assert (optimizer.name, optimizer.lr, optimizer.weight_decay) == ("adamw", 1e-5, 1e-4)
    assert (optimizer.schedule, optimizer.backbone_factor, optimizer.clip) == ("constant", 1.0, None)
    assert (recipe.epochs, recipe.batches_per_epoch, recipe.seed) == (50, None, 42)
    assert recipe.augmentation.off
    assert recipe.validation.monitor == "loss"


# Of the resolved recipes, all keys that are not those of another.
NO_VIEWS = dict.fromkeys(("polyps", "views", "stride", "strict"), NONE)
SEGMENTS = {
    **{"kind": "tracklet-segments", "samples": 28, "strides": [1, 2, 3, 4]},
    **{"one_tracklet": 1.0, "one_tracklet_end": 1.0, "over": 1.0},
}
FRAMES = {
    **{"kind": "neighbouring-frames", "samples": 28, "spread": 30.0},
    **{"length": NONE, "min_frames": NONE},
}
PAIRS = {"loss.targets": "instance", "loss.temperature": 0.07}


@pytest.mark.parametrize(
    ("name", "base", "expected"),
    [
        ("supervised", "temporal", {"loss.targets": "identity"}),
        ("mve", "temporal", {**PAIRS, **flat({"sampler": NO_VIEWS | SEGMENTS})}),
        ("sfe", "temporal", {**PAIRS, "model.pooling": "mean", **flat({"sampler": NO_VIEWS | FRAMES})}),
        (
            *("tpc", "mve"),
            {"sampler.one_tracklet": 0.8, "sampler.one_tracklet_end": 0.4, "sampler.over": 0.1},
        ),
    ],
)
def test_methods_differ_only_where_the_papers_say_so(name: str, base: str, expected: dict[str, Any]) -> None:
    assert differences(name, base) == {"name": name, **expected}


PUBLISHED = {
    "model.weights": "resnet50-11ad3fa6.pth",
    "model.normalise": "none",
    "model.batch_norm": "batch",
    "sampler.strict": True,
    "validation.monitor": "last",
}


def test_published_differs_in_these_keys_and_decisions_explain_each() -> None:
    assert differences("published", "temporal") == {"name": "published", **PUBLISHED}
    assert recipe_differences("published", "temporal") == PUBLISHED
    rows = (Path(__file__).parents[2] / "docs" / "decisions.md").read_text(encoding="utf-8").splitlines()
    for key in PUBLISHED:
        assert any(f"`{key}`" in row.split("|")[4] for row in rows if row.count("|") >= 5), key


def test_batches_of_all_methods_have_as_many_views() -> None:
    for name in ("temporal", "supervised", "sfe", "mve", "tpc"):
        sampler = load_recipe(name).sampler
        views = sampler.polyps * sampler.views if isinstance(sampler, PolypViewSettings) else 2 * sampler.samples
        assert views == 56, name


def test_changes_are_read_as_yaml() -> None:
    for text in ("1e-4", "1E-4", "1.0e-4", "0.0001", ".1e-3"):
        assert changed(f"optimizer.lr={text}").optimizer.lr == 1e-4
    assert changed("optimizer.lr=0.5", "optimizer.lr=0.25").optimizer.lr == 0.25, "the last one counts"
    assert changed(" data.leave_out = [study] ").data.leave_out == ("study",)
    assert changed("data.leave_out=[]").data.leave_out == ()
    assert changed("data={leave_out: [a, b]}").data.leave_out == ("a", "b")
    assert changed("optimizer.clip=2", "optimizer.clip=null").optimizer.clip is None
    assert changed("model.weights=false").model.weights is False
    assert changed("model.weights=runs/a=b").model.weights == "runs/a=b"
    assert changed("crop.size=64", "augmentation.flip=true").crop == CropRule(size=64)
    assert changed("sampler.views=3").sampler == PolypViewSettings(views=3)
    assert changed("sampler.strides=[2]", recipe="mve").sampler == SegmentSettings(strides=(2,))


def test_another_kind_of_sampler_begins_with_its_own_defaults() -> None:
    kind = "sampler.kind=neighbouring-frames"
    assert changed(kind).sampler == NeighbourSettings()
    assert changed(kind, "sampler.samples=9").sampler == NeighbourSettings(samples=9)
    assert changed("sampler.samples=9", kind).sampler == NeighbourSettings(samples=9), "in either order"
    assert changed("sampler.kind=polyp-views").sampler == load_recipe().sampler, "the same kind keeps its settings"
    recipe = load_recipe(
        {"base": "mve", "sampler": {"kind": "polyp-views", "views": 3}, "loss": {"targets": "identity"}}
    )
    assert recipe.sampler == PolypViewSettings(views=3)


@pytest.mark.parametrize("change", ["epochs", "=3", "optimizer..lr=3", "optimizer.=3"])
def test_a_change_without_key_or_value_is_refused(change: str) -> None:
    with pytest.raises(DataError, match=r"must be KEY=VALUE"):
        changed(change)


def test_a_change_that_cannot_be_made_is_refused() -> None:
    with pytest.raises(DataError, match=r"^optimizer.lr.x: lr has no keys"):
        changed("optimizer.lr.x=1")
    for value in ("[", "&a [*a]", "!!python/object/apply:os.getcwd []", "2020-13-45"):
        with pytest.raises(DataError, match=r"^epochs: .* is not valid YAML$"):
            changed(f"epochs={value}")


def test_values_that_are_given_stay_as_they_are() -> None:
    values: dict[str, Any]
    for values in ({"base": "small", "optimizer": {"lr": 1e-3}}, {"optimizer": {"lr": 1e-3}}):
        before = copy.deepcopy(values)
        assert load_recipe(values, ["optimizer.lr=1", "epochs=2"]).optimizer.lr == 1
        assert values == before
    recipe = load_recipe(values)
    assert load_recipe(recipe, ["optimizer.lr=1"]) != recipe
    assert recipe.optimizer.lr == 1e-3


def test_groups_of_a_recipe_are_joined_with_those_of_its_base() -> None:
    recipe = load_recipe({"base": "small", "optimizer": {"lr": 1.0}, "data": {"validation": ["x"]}})
    small = load_recipe("small")
    assert recipe.optimizer == small.optimizer.model_copy(update={"lr": 1.0})
    assert recipe.data.validation == ("x",)
    assert (recipe.crop, recipe.model, recipe.sampler) == (small.crop, small.model, small.sampler)
