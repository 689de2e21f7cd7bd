"""`polypcount reproduce --plan`: what a reproduction takes, before anything is trained."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from polypcount.cli.main import app
from polypcount.errors import DataError, FileError
from tests.reproduce.conftest import TINY
from tests.reproduce.miniature import miniature

DATASETS = ("real-colon", "ldpolypvideo", "sun", "polypsset")


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("plan")
    miniature(folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLYPCOUNT_CACHE", str(folder / "cache"))
        patch.setenv("COLUMNS", "180")
        yield folder


def planned(place: Path, out: Path, *options: str, datasets: tuple[str, ...] = DATASETS) -> Result:
    given = [f"--{name}={place / 'data' / name}" for name in datasets]
    common = [f"--out={out}", "--plan", "--grid=coarse", "--threads=1"]
    return CliRunner().invoke(app, ["reproduce", *given, *common, *options, *(f"--set={change}" for change in TINY)])


def cells(text: str, start: str) -> list[str]:
    """Cells of the first line that starts so."""
    line = next(line for line in text.splitlines() if line.strip().startswith(start))
    return [cell for cell in line.strip().split("  ") if cell.strip()]


def test_it_counts_data_steps_hours_disk_and_memory_and_trains_nothing(place: Path, tmp_path: Path) -> None:
    done = planned(place, tmp_path / "out", "--seeds=0,1", "--rows=sfe,tpc,ours,frozen-ap,none", "--set=epochs=5")
    assert done.exit_code == 0, done.stderr or done.exception
    text = done.stdout
    learnt = {name: cells(text, f"{name} ") for name in DATASETS}
    assert [line[2].strip() for line in learnt.values()] == ["2", "10", "10", "5"], "videos"
    assert [(line[4].strip(), line[5].strip()) for line in learnt.values()] == [
        ("6", "85"),
        ("10", "160"),
        ("10", "100"),
        ("5", "39"),
    ], "polyps, and the paper's"
    assert "rows: none, sfe, tpc, ours, frozen-ap" in text
    for name in ("sfe", "tpc", "temporal"):
        line = cells(text, f"{name} ")
        steps, epoch, views, images = (int(cell.strip().replace(",", "")) for cell in line[2:6])
        assert line[1].strip() == "2 of 2"
        assert (steps, views, images) == (
            5 * int(cells(text, "temporal ")[3]),
            56,
            steps * (56 if name == "sfe" else 448),
        )
        assert epoch > 0
    for start in ("training: 6 left", "cutting: ", "encoding: ", "together: ", "disk: ", "memory: "):
        assert start in text
    assert not any((tmp_path / "out" / name).exists() for name in ("encoders", "vectors", "results", "table-1.md"))
    assert not list((place / "cache").glob("trial-*"))


def test_what_is_finished_is_not_counted(place: Path, tmp_path: Path) -> None:
    options = ("--rows=ours", "--steps=2")
    before = planned(place, tmp_path / "out", *options)
    assert "training: 1 left" in before.stdout
    given = [f"--{name}={place / 'data' / name}" for name in DATASETS]
    run = ["reproduce", *given, f"--out={tmp_path / 'out'}", "--grid=coarse", "--threads=1", *options]
    done = CliRunner().invoke(app, [*run, *(f"--set={change}" for change in TINY)])
    assert done.exit_code == 0, done.stderr
    assert "real: trainings to do: 1, each of 2 steps" in done.stderr
    after = planned(place, tmp_path / "out", *options).stdout
    for line in ("training: 0 left, 0 s", "cutting: 0 crops, 0 s", "encoding: 0 images, 0 s", "together: 0 s"):
        assert line in after


def test_real_colon_alone(place: Path, tmp_path: Path) -> None:
    done = planned(place, tmp_path / "out", "--rows=ours", "--steps=2", datasets=("real-colon",))
    assert done.exit_code == 0, done.stderr or done.exception
    assert "learnt from REAL-Colon alone (2 videos, 6 polyps)" in done.stderr
    assert "training: 1 left" in done.stdout


def test_tables_suffice_for_the_counts(place: Path, tmp_path: Path) -> None:
    for name in ("video_info.csv", "lesion_info.csv"):
        (tmp_path / "tables").mkdir(exist_ok=True)
        shutil.copy(place / "data" / "real-colon" / name, tmp_path / "tables")
    done = CliRunner().invoke(
        app, ["reproduce", f"--real-colon={tmp_path / 'tables'}", f"--out={tmp_path / 'out'}", "--plan"]
    )
    assert [cell.strip() for cell in cells(done.stdout, "real-colon ")][2:6] == ["2", "27", "6", "85"]
    assert done.exit_code == 0
    assert "not possible: any row" in done.stderr
    assert "training" not in done.stdout


def test_a_budget_is_planned_by_the_trial(place: Path, tmp_path: Path) -> None:
    done = planned(place, tmp_path / "out", "--rows=ours,tpc", "--budget=1", "--set=epochs=100000")
    assert done.exit_code == 0, done.stderr or done.exception
    assert int(cells(done.stdout, "temporal ")[2].strip().replace(",", "")) > 1
    assert not (tmp_path / "out" / "plan.json").exists()


def test_what_cannot_work_is_refused(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = planned(place, tmp_path / "weights", "--rows=ours", f"--set=model.weights={tmp_path / 'none.pth'}")
    assert "none.pth" in str(weights.exception)
    monkeypatch.setattr("polypcount.training.memory.available_memory", lambda: 1_000_000)
    memory = planned(place, tmp_path / "memory", "--rows=ours")
    assert isinstance(memory.exception, DataError)
    assert "1.0 MB are free" in str(memory.exception)
    monkeypatch.undo()
    monkeypatch.setenv("POLYPCOUNT_CACHE", str(tmp_path / "cache"))
    usage = type(shutil.disk_usage("/"))(1000, 999, 1)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    disk = planned(place, tmp_path / "disk", "--rows=ours", "--steps=2")
    assert isinstance(disk.exception, FileError)
    assert "POLYPCOUNT_CACHE" in str(disk.exception)
