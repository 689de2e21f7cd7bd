"""Recipes that are refused: one plain line for each bad key, and no harm from a bad file."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polypcount.errors import DataError, FileError, PolypcountError
from polypcount.training.recipe_file import load_recipe

Write = Callable[[str | bytes], Path]
KINDS = "'neighbouring-frames', 'tracklet-segments', 'polyp-views'"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str | bytes) -> Path:
        path = tmp_path / "own.yaml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("optimizer.learning=1", "optimizer.learning is unknown; known are name, lr, weight_decay, backbone_factor,"),
        ("optimizer.lrr=1", "optimizer.lrr is unknown; did you mean lr?"),
        (
            "a.b.c=1",
            "a is unknown; known are name, seed, epochs, batches_per_epoch, steps, data, crop, model, sampler,",
        ),
        ("base=tpc", "base is unknown; known are"),
        ("sampler.view=3", "sampler.view is unknown; did you mean views?"),
        ("sampler.samples=3", "sampler.samples is unknown; known are polyps, views, length, stride, min_frames,"),
        ("crop.sise=3", "crop.sise is unknown; did you mean size?"),
        ("augmentation.zoom=3", "augmentation.zoom is unknown; known are flip, rotation, shift, scale,"),
        ("sampler={views: 3}", "sampler.kind is missing"),
        ("sampler.kind=views", f"sampler.kind must be one of {KINDS}, found "),
        ("sampler=null", "sampler must be a group of keys"),
        ("crop=small", "crop must be a group of keys, found 'small'"),
        ("optimizer.lr=fast", "optimizer.lr must be a number, found 'fast'"),
        ("optimizer.lr={2020-01-01: 1}", "must be plain JSON values"),
        ("optimizer.lr=0", "optimizer.lr must be above 0, found 0"),
        ("optimizer.lr=.nan", "optimizer.lr must be a finite number"),
        ("optimizer.lr=1e38", "optimizer.lr must be at most 10"),
        ("optimizer.lr=true", "optimizer.lr must be a number, found True"),
        ("optimizer.warmup=0.1", "optimizer.warmup is for optimizer.schedule=cosine"),
        ("optimizer.name=sgd", "optimizer.name must be 'adamw' or 'adam', found 'sgd'"),
        ("epochs=1.5", "epochs must be a whole number, found 1.5"),
        ("seed=4294967296", "seed must be below 4294967296, found 4294967296"),
        ("model.weights=3", "model.weights must be text, found 3"),
        ("data.leave_out=study", "data.leave_out must be a list, found 'study'"),
        ("data.leave_out=[study, 3]", "data.leave_out[1] must be text, found 3"),
        ("sampler.views=1", "sampler.views must be at least 2, found 1"),
        ("crop.size=0", "crop: size must be from 1 to 4096 pixels, found 0"),
        ("crop.size=true", "crop.size must be a whole number, found True"),
        ("crop.shape=round", "crop.shape must be 'squash' or 'pad', found 'round'"),
        ("augmentation.rotation=181", "augmentation.rotation must be at most 180, found 181"),
        ("augmentation.flip=1", "augmentation.flip must be true or false, found 1"),
        ("loss.targets=instance", "loss.targets instance needs two views of a sample: set sampler.kind to"),
        ("validation={monitor: last, patience: 2}", "validation.patience needs a value to watch"),
    ],
)
def test_one_line_names_the_key_and_what_was_found(change: str, line: str) -> None:
    with pytest.raises(DataError) as caught:
        load_recipe("temporal", [change])
    assert str(caught.value).startswith(f"recipe temporal: {line}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("recipe", "change", "line"),
    [
        ("sfe", "sampler.spread=0.1", "sampler.spread must be at least 0.5, found 0.1"),
        ("mve", "sampler.strides=[]", "sampler.strides"),
        ("mve", "sampler.strides=[1, x]", "sampler.strides[1] must be a whole number, found 'x'"),
        ("mve", "sampler.one_tracklet=2", "sampler.one_tracklet must be at most 1, found 2"),
        ("tpc", "sampler.views=2", "sampler.views is unknown; known are samples, length, strides,"),
    ],
)
def test_samplers_have_keys_of_their_own(recipe: str, change: str, line: str) -> None:
    with pytest.raises(DataError) as caught:
        load_recipe(recipe, [change])
    assert str(caught.value).startswith(f"recipe {recipe}: {line}")


def test_each_bad_key_has_a_line() -> None:
    values: dict[Any, Any] = {"epochs": 0, "crop": {"size": 0}, "optimizer": {"lrr": 1, "clip": True}, 3: 4}
    with pytest.raises(DataError) as caught:
        load_recipe(values)
    lines = sorted(str(caught.value).splitlines())
    assert [line.split()[:2] for line in lines] == [
        ["recipe:", name] for name in ("3", "crop:", "epochs", "optimizer.clip", "optimizer.lrr")
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("epochs: 3\nseed: [\n", "not valid YAML, line 3: "),
        ("epochs: 3\n  seed: 4\n", "not valid YAML, line 2: mapping values are not allowed here"),
        ("epochs: 3\nepochs: 4\n", "not valid YAML, line 2: the key epochs is there twice"),
        ("crop: {size: 3, size: 4}", "not valid YAML, line 1: the key size is there twice"),
        ("\n\nname: 2020-13-45", "not valid YAML, a value is not valid: month must be in 1..12"),
        ("seed: " + "9" * 5000, "not valid YAML, a value is not valid"),
        ("name: !!bool x", "not valid YAML, a value is not valid"),
        ("name: " + "[" * 5_000, "not valid YAML, it is nested too deeply"),
        (b"epochs: 3\0", "not valid YAML, special characters are not allowed"),
        (b"\x89PNG\r\n\xff\xfe", "is not a text file in UTF-8"),
        ("", "must be keys and values"),
        ("- epochs\n", "must be keys and values"),
        ("#" * 70_000, "is too large to be a recipe"),
        (
            "base: nowhere",
            "there is no recipe '.*nowhere': give one of bundled, detector, mve, published, .*, or",
        ),
    ],
)
def test_a_file_that_is_no_recipe_is_refused(write: Write, content: str | bytes, message: str) -> None:
    path = write(content)
    with pytest.raises(FileError, match=message) as caught:
        load_recipe(path)
    assert str(path.parent) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_recipe_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    for name in ("temporall", "", "a\0b", tmp_path, tmp_path / "none.yaml"):
        with pytest.raises(
            FileError,
            match=r"^there is no recipe '.*': give one of bundled, detector, mve, .*, or a YAML file$",
        ):
            load_recipe(name)
    with pytest.raises(FileError, match=r"cannot be read: File name too long$"):
        load_recipe("a" * 5000)


def test_a_file_that_may_not_be_read_is_one_line(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("epochs: 3")
    path.chmod(0)
    if os.access(path, os.R_OK):  # root reads all

        def refuse(*_: object, **__: object) -> str:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(FileError, match=r"own.yaml: the recipe cannot be read: Permission denied$"):
        load_recipe(path)


def test_a_base_is_sought_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "first.yaml").write_text("base: small\nepochs: 7\nseed: 3\n")
    (tmp_path / "second.yaml").write_text("base: below/first.yaml\nseed: 4\n")
    recipe = load_recipe(tmp_path / "second.yaml")
    assert (recipe.epochs, recipe.seed, recipe.crop) == (7, 4, load_recipe("small").crop)


@pytest.mark.parametrize(("first", "second"), [("own.yaml", "own.yaml"), ("other.yaml", "own.yaml")])
def test_recipes_that_build_on_each_other_are_refused(write: Write, first: str, second: str) -> None:
    path = write(f"base: {first}")
    (path.parent / "other.yaml").write_text(f"base: {second}")
    with pytest.raises(DataError, match="base must be the name of a recipe"):
        load_recipe(path)
    with pytest.raises(DataError, match=r"base must be the name of a recipe .*, found 3$"):
        load_recipe({"base": 3})


def test_nothing_in_a_file_is_run(write: Write, tmp_path: Path) -> None:
    for tag in ("object/apply:os.mkdir", "object/new:os.mkdir", "name:os.mkdir"):
        with pytest.raises(FileError, match=r"line 2: could not determine a constructor for the tag 'tag:yaml.org"):
            load_recipe(write(f"epochs: 3\nname: !!python/{tag} [{tmp_path / 'made'}]\n"))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "content",
    [
        "\n".join(["a0: &a0 [x]", *(f"a{k}: &a{k} [{','.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 30))]),
        "optimizer: &a {lr: *a}",
        "name: &a [*a]",
    ],
)
def test_a_file_of_aliases_is_refused_at_once(write: Write, content: str) -> None:
    with pytest.raises(PolypcountError, match=r"line \d: the alias \*a0? must be written out"):
        load_recipe(write(content))


def test_a_base_that_is_another_kind_of_file_is_not_shown(write: Write, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear Gertrude")
    with pytest.raises(FileError, match="must be keys and values, found text") as caught:
        load_recipe(write("base: letter.txt"))
    assert "Gertrude" not in str(caught.value)
