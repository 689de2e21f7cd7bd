"""The comparison as a whole: which rows are run, what is kept, and what happens when something fails."""

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from polypcount.errors import DataError, FileError
from polypcount.reproduce import Benchmark, Outcome, Settings, StudySettings, Wish, choose_rows, reproduce
from tests.reproduce.conftest import TINY
from tests.reproduce.reading import encoders, made, scores

Compare = Callable[..., Outcome]


def settings(rows: str, *, seeds: tuple[int, ...] = (42,), changes: tuple[str, ...] = TINY) -> Settings:
    return Settings(choose_rows(rows.split(",")), seeds, changes, StudySettings("coarse"), Wish(steps=2), threads=1)


@pytest.fixture(scope="package")
def ours(benchmark_of_datasets: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ours") / "out"
    assert reproduce([benchmark_of_datasets], out, settings("ours,none")).failures == []
    return out


@pytest.fixture
def copied(ours: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ours, tmp_path / "out"))


def test_only_what_rows_need_is_trained_and_rows_add_up(benchmark_of_datasets: Benchmark, copied: Path) -> None:
    assert list(encoders(copied)) == ["temporal 42"]
    assert {key[0] for key in scores(copied, "table-1")} == {"none", "ours"}
    before = made(copied)
    outcome = reproduce([benchmark_of_datasets], copied, settings("ours-ap,supervised"))
    assert list(encoders(copied)) == ["supervised 42", "temporal 42"]
    assert before.items() <= made(copied).items(), "what was there has not been touched"
    assert {key[0] for key in scores(copied, "table-3")} == {"ours", "ours-ap", "supervised"}
    assert "ours, Temporal-AP" in {row[0] for row in outcome.tables["table-1"].rows}


def test_another_seed_is_trained_and_both_make_a_spread(benchmark_of_datasets: Benchmark, copied: Path) -> None:
    before = made(copied)
    reproduce([benchmark_of_datasets], copied, settings("ours", seeds=(42, 7)))
    assert before.items() <= made(copied).items()
    found = encoders(copied)
    assert list(found) == ["temporal 42", "temporal 7"]
    assert found["temporal 7"] != found["temporal 42"]
    assert scores(copied, "table-1", "runs")["ours", "closest", "fr"] == "2"
    assert scores(copied, "table-1", "seeds")["ours", "closest", "pair_auroc"] != ""
    assert scores(copied, "table-1", "renders")["ours", "closest", "pair_auroc"] == ""
    assert scores(copied, "table-1", "runs")["none", "fixed", "fr"] == "1", "it does not depend on the seed"
    reproduce([benchmark_of_datasets], copied, settings("ours", seeds=(7,)))
    assert scores(copied, "table-1", "runs")["ours", "closest", "fr"] == "1", "only the seeds that were asked for"


def test_other_settings_are_other_results(
    benchmark_of_datasets: Benchmark, copied: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "polypcount.reproduce")
    wider = Settings(choose_rows(["ours"]), (42,), TINY, StudySettings("coarse", 0.2), Wish(steps=2), threads=1)
    reproduce([benchmark_of_datasets], copied, wider)
    assert [record.getMessage() for record in caplog.records] == ["ours, seed 42, real: study"]
    assert len(list((copied / "results" / "real").glob("ours-*.json"))) == 2
    caplog.clear()
    reproduce([benchmark_of_datasets], copied, settings("ours"))
    assert caplog.records == [], "and the first ones are still there"


def test_what_was_lost_is_made_again_alike(benchmark_of_datasets: Benchmark, ours: Path, copied: Path) -> None:
    for kind in ("results", "vectors", "sweeps"):
        shutil.rmtree(copied / kind)
    reproduce([benchmark_of_datasets], copied, settings("ours,none"))
    assert scores(copied, "table-1") == scores(ours, "table-1")
    assert (copied / "table-2.md").read_text() == (ours / "table-2.md").read_text()


def test_a_row_that_fails_is_told_and_others_are_written(benchmark_of_datasets: Benchmark, tmp_path: Path) -> None:
    """Without the test videos of the datasets there are fewer than the 28 polyps that a batch of 2 views takes."""
    some = tuple(change for change in TINY if "leave_out" not in change)
    outcome = reproduce([benchmark_of_datasets], tmp_path, settings("views-2,none,views-28", changes=some))
    (line,) = outcome.failures
    assert line.startswith("views-2 (real, seed 42): a batch takes 28 polyps (sampler.polyps), and there are 27 of 27")
    assert {key[0] for key in scores(tmp_path, "table-2")} == {"views-28"}
    assert ("none", "fixed", "fr") in scores(tmp_path, "table-1")
    assert json.loads((tmp_path / "reproduce.json").read_text())["failures"] == [line]


def test_changes_that_fit_only_some_recipes(benchmark_of_datasets: Benchmark, tmp_path: Path) -> None:
    outcome = reproduce([benchmark_of_datasets], tmp_path, settings("sfe", changes=(*TINY, "sampler.samples=6")))
    assert outcome.failures == []
    assert {key[0] for key in scores(tmp_path, "table-1")} == {"sfe"}


def test_a_damaged_result_is_named(benchmark_of_datasets: Benchmark, copied: Path) -> None:
    (damaged,) = (copied / "results" / "real").glob("ours-*.json")
    damaged.write_text("{")
    with pytest.raises(FileError, match=rf"{damaged.name} cannot be read .*; remove it, and it is made again"):
        reproduce([benchmark_of_datasets], copied, settings("none"))


def test_an_encoder_that_fails_is_tried_once(
    benchmark_of_datasets: Benchmark, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "polypcount.reproduce")
    without = (*TINY, "model.weights=/nowhere")
    outcome = reproduce([benchmark_of_datasets], tmp_path, settings("ours,ours-ap,time-only", changes=without))
    (line,) = outcome.failures
    assert line.startswith("ours, ours-ap (real, seed 42): ")
    assert sum("training" in record.getMessage() for record in caplog.records) == 1
    assert ("time-only", "closest", "fr") in scores(tmp_path, "table-4")


def test_folders_that_are_something_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="is a file"):
        reproduce([], tmp_path / "file", settings("none"))
    with pytest.raises(FileError, match="is not empty and not a reproduction"):
        reproduce([], tmp_path, settings("none"))


def test_wrong_keys_are_known_before_the_work() -> None:
    with pytest.raises(DataError, match=r"optimizer.lrr is unknown; did you mean lr\?"):
        settings("ours", changes=("optimizer.lrr=1",))
    assert settings("none", changes=("optimizer.lrr=1",)), "which trains nothing"
