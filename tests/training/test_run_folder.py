"""The folder of a run: where it may be, what it says, and what a resume makes of it."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from polypcount.errors import FileError, PolypcountError
from polypcount.training.recipe_file import load_recipe
from polypcount.training.run_folder import ENCODER_SCORES, EPOCH_COLUMNS, STEP_COLUMNS, RunFolder
from polypcount.version import __version__

HASH = "sha256:" + "ab" * 32


@pytest.fixture
def place(tmp_path: Path) -> RunFolder:
    """A run that has begun."""
    folder = RunFolder(tmp_path / "run")
    folder.begin(load_recipe("small"), {"id": "x1", "corpus_hash": HASH})
    return folder


def log_steps(place: RunFolder, epochs: int, steps: int = 3) -> None:
    for epoch in range(1, epochs + 1):
        for step in range(1, steps + 1):
            row = {"epoch": epoch, "step": step, "loss": 1 / (epoch + step), "learning_rate": 1e-5}
            place.log("steps.csv", STEP_COLUMNS, {**row, "crops_per_second": 123456.789})
        metrics = {"loss": 0.5, "validation_loss": None, "hit_rate_1": 0.25 * epoch}
        place.log("epochs.csv", place.epoch_columns, {"epoch": epoch, "steps": steps, **metrics})


def numbers(place: RunFolder, name: str) -> list[tuple[int, int]]:
    return [(int(row["epoch"]), int(row.get("step", 0))) for row in place.rows(name)]


def test_a_run_begins_with_its_recipe_and_machine(place: RunFolder) -> None:
    assert place.started
    assert place.recipe() == load_recipe("small")
    about = place.about()
    assert (about["id"], about["corpus_hash"]) == ("x1", HASH)
    assert about["environment"]["polypcount"] == __version__
    assert about["environment"]["packages"]["torch"].startswith("2.")
    place.add(finished=True)
    assert place.about() == {**about, "finished": True}
    assert sorted(path.name for path in place.folder.iterdir()) == ["recipe.yaml", "run.json"]


def test_a_folder_in_use_is_refused(place: RunFolder, tmp_path: Path) -> None:
    new = RunFolder(tmp_path / "not" / "yet")
    new.refuse_used()
    assert not new.started
    (tmp_path / "empty").mkdir()
    RunFolder(tmp_path / "empty").refuse_used()
    place.refuse_used()  # before its first step it may be begun again
    log_steps(place, 1)
    with pytest.raises(FileError, match="run holds a run already"):
        place.begin(load_recipe("temporal"), {})
    assert place.recipe().name == "small", "nothing was touched"
    (tmp_path / "empty" / "photo.png").write_text("")
    with pytest.raises(FileError, match="empty has other files"):
        RunFolder(tmp_path / "empty").refuse_used()
    with pytest.raises(FileError, match=r"photo.png is a file"):
        RunFolder(tmp_path / "empty" / "photo.png").refuse_used()
    with pytest.raises(FileError, match=r"below.* cannot be written: Not a directory"):
        RunFolder(tmp_path / "empty" / "photo.png" / "below").begin(load_recipe(), {})


def test_only_the_same_run_goes_on(place: RunFolder, tmp_path: Path) -> None:
    small = load_recipe("small")
    place.refuse_another(small, HASH)
    more = load_recipe(small, ["epochs=99", "name=longer"])
    place.refuse_another(more, HASH)
    for change, key, theirs, mine in (
        ("optimizer.lr=1.0", "optimizer.lr", "0.0005", "1.0"),
        ("seed=1", "seed", "42", "1"),
        ("data.leave_out=[a]", "data.leave_out", r"\['study', 'test'\]", r"\['a'\]"),
        ("crop.size=64", "crop.size", "128", "64"),
        ("augmentation.flip=false", "augmentation.flip", "True", "False"),
    ):
        with pytest.raises(FileError, match=rf"run: the run has {key} {theirs}, not {mine}"):
            place.refuse_another(load_recipe(small, [change]), HASH)
    with pytest.raises(FileError, match=r"the run has sampler\.\w+ \S+, not"):
        place.refuse_another(load_recipe(small, ["sampler.kind=neighbouring-frames"]), HASH)
    with pytest.raises(FileError, match=r"run: .* another corpus"):
        place.refuse_another(small, "sha256:" + "cd" * 32)
    with pytest.raises(FileError, match="none holds no run"):
        RunFolder(tmp_path / "none").refuse_another(small, HASH)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff\xfe"])
def test_a_damaged_description_is_one_line(place: RunFolder, content: bytes) -> None:
    (place.folder / "run.json").write_bytes(content)
    with pytest.raises(FileError, match=r"run.json is ") as caught:
        place.refuse_another(load_recipe("small"), HASH)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["epochs: [", "epochs: 0"])
def test_a_damaged_recipe_is_one_line(place: RunFolder, content: str) -> None:
    (place.folder / "recipe.yaml").write_text(content)
    with pytest.raises(PolypcountError, match=r"run/recipe.yaml: ") as caught:
        place.refuse_another(load_recipe("small"), HASH)
    assert "\n" not in str(caught.value)


def test_rows_come_back_as_they_were_written(place: RunFolder) -> None:
    assert place.rows("steps.csv") == []
    log_steps(place, 2)
    assert numbers(place, "steps.csv") == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    first = place.rows("steps.csv")[0]
    assert list(first) == list(STEP_COLUMNS)
    assert float(first["loss"]) == 0.5
    assert float(first["crops_per_second"]) == pytest.approx(123456.789, rel=1e-5)
    last = place.rows("epochs.csv")[-1]
    assert list(last) == [*EPOCH_COLUMNS, *ENCODER_SCORES]
    assert (last["validation_loss"], last["auroc"], last["hit_rate_1"]) == ("", "", "0.5"), "undefined is empty"
    assert (place.folder / "steps.csv").read_bytes().count(b"\n") == 7


@pytest.mark.parametrize(
    ("epoch", "step", "steps_left", "epochs_left"),
    [(0, 0, 0, 0), (0, 2, 2, 0), (1, 1, 4, 1), (2, 3, 9, 2), (3, 0, 9, 3)],
)
def test_what_comes_after_a_checkpoint_is_forgotten(
    place: RunFolder, epoch: int, step: int, steps_left: int, epochs_left: int
) -> None:
    log_steps(place, 3)
    before = (place.folder / "steps.csv").read_text(), (place.folder / "epochs.csv").read_text()
    place.forget_after(epoch, step)
    after = (place.folder / "steps.csv").read_text(), (place.folder / "epochs.csv").read_text()
    for was, left, kept in zip(before, after, (steps_left, epochs_left), strict=True):
        assert left.splitlines() == was.splitlines()[: kept + 1], "the header and the first so many rows"


def test_forgetting_goes_on_where_a_kill_cut_a_line_off(place: RunFolder) -> None:
    place.forget_after(1, 0)
    assert not (place.folder / "steps.csv").exists()
    log_steps(place, 2)
    whole = (place.folder / "steps.csv").read_text()
    for cut in range(0, len(whole), 19):
        (place.folder / "steps.csv").write_text(whole[:cut])
        place.forget_after(1, 1)
        place.log("steps.csv", STEP_COLUMNS, {"epoch": 2, "step": 2})
        lines = whole[: whole[:cut].rfind("\n") + 1].splitlines()[1:5]
        left = [(int(line.split(",")[0]), int(line.split(",")[1])) for line in lines]
        assert numbers(place, "steps.csv") == [*left, (2, 2)], whole[:cut]
    assert list(place.rows("steps.csv")[0]) == list(STEP_COLUMNS)


def test_what_a_power_cut_leaves_is_passed_over(place: RunFolder) -> None:
    log_steps(place, 1)
    with (place.folder / "steps.csv").open("ab") as file:
        file.write(b"\0" * 20 + b"\n1,4,x,1,1\n1,5,0.5,1e-5,3\n1,6,0.5\n1,7,0.5,1,1,1\n")
    assert numbers(place, "steps.csv") == [(1, 1), (1, 2), (1, 3), (1, 5)]
    place.forget_after(0, 9)
    assert numbers(place, "steps.csv") == [(1, 1), (1, 2), (1, 3), (1, 5)]
    (place.folder / "steps.csv").write_text("a,b\n1,2\n")
    with pytest.raises(FileError, match=r"steps\.csv is damaged"):
        place.forget_after(0, 9)


def test_the_picture_is_drawn_once_there_are_steps(place: RunFolder) -> None:
    place.draw()
    assert not (place.folder / "loss.svg").exists()
    place.log("steps.csv", STEP_COLUMNS, {"epoch": 1, "step": 1, "loss": 2.0, "learning_rate": 1e-5})
    place.draw()
    first = (place.folder / "loss.svg").read_bytes()
    assert ElementTree.fromstring(first).tag.endswith("svg")
    log_steps(place, 3)
    place.draw()
    assert (place.folder / "loss.svg").read_bytes() != first


def test_the_description_is_json_that_others_read(place: RunFolder) -> None:
    json.loads((place.folder / "run.json").read_text())
    with pytest.raises(ValueError, match="not JSON compliant"):
        place.add(loss=float("nan"))
    assert place.about()["id"] == "x1", "and stays when a value is none"
