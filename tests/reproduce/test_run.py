"""The comparison as a whole: which rows are run, what is kept, and what happens when something fails."""

import json
import logging
import shutil
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from polypcount.errors import DataError, FileError
from polypcount.progress import Progress, no_progress
from polypcount.reproduce import Benchmark, ReproduceSettings, StudySettings, TrainingLength, choose_rows, reproduce
from tests.reproduce.conftest import TINY
from tests.reproduce.reading import encoders, made, scores, tables


def settings(
    rows: str, *, seeds: tuple[int, ...] = (42,), changes: tuple[str, ...] = TINY, target_fpr: float = 0.05
) -> ReproduceSettings:
    study, length = StudySettings("coarse", target_fpr), TrainingLength(steps=2)
    return ReproduceSettings(choose_rows(rows.split(",")), seeds, changes, study, length, threads=1)


@pytest.fixture(scope="package")
def ours(benchmark_of_datasets: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ours") / "out"
    assert reproduce([benchmark_of_datasets], out, settings("ours,none")).failures == []
    return out


@pytest.fixture
def copied(ours: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ours, tmp_path / "out"))


def test_only_what_rows_need_is_trained_and_rows_and_seeds_add_up(
    benchmark_of_datasets: Benchmark, copied: Path
) -> None:
    assert list(encoders(copied)) == ["temporal 42"]
    assert {key[0] for key in scores(copied, "table-1")} == {"none", "ours"}
    before = made(copied)
    outcome = reproduce([benchmark_of_datasets], copied, settings("ours-ap", seeds=(42, 7)))
    fingerprints = encoders(copied)
    assert list(fingerprints) == ["temporal 42", "temporal 7"]
    assert fingerprints["temporal 7"] != fingerprints["temporal 42"]
    assert before.items() <= made(copied).items(), "what was there has not been touched"
    assert {key[0] for key in scores(copied, "table-3")} == {"ours", "ours-ap"}
    assert "ours, Temporal-AP" in {row[0] for row in outcome.tables["table-1"].rows}
    assert scores(copied, "table-3", "runs")["ours-ap", "closest", "fr"] == "2"
    assert scores(copied, "table-3", "seeds")["ours-ap", "closest", "pair_auroc"] != ""
    assert scores(copied, "table-3", "renders")["ours-ap", "closest", "pair_auroc"] == ""
    assert scores(copied, "table-1", "runs")["none", "fixed", "fr"] == "1", "it does not depend on the seed"
    reproduce([benchmark_of_datasets], copied, settings("ours-ap", seeds=(7,)))
    assert scores(copied, "table-3", "runs")["ours-ap", "closest", "fr"] == "1", "only the seeds that are asked for"


def test_other_settings_are_other_results_and_lost_files_are_made_again(
    benchmark_of_datasets: Benchmark, ours: Path, copied: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "polypcount.reproduce")
    reproduce([benchmark_of_datasets], copied, settings("ours", target_fpr=0.2))
    assert [record.getMessage() for record in caplog.records] == ["ours, seed 42, real: study"]
    assert len(list((copied / "results" / "real").glob("ours-*.json"))) == 2
    for kind in ("results", "vectors", "sweeps"):
        shutil.rmtree(copied / kind)
    reproduce([benchmark_of_datasets], copied, settings("ours,none"))
    assert scores(copied, "table-1") == scores(ours, "table-1")
    caplog.clear()
    reproduce([benchmark_of_datasets], copied, settings("ours"))
    assert caplog.records == [], "nothing is computed twice"


def test_stopped_in_the_middle_it_continues_to_the_same_tables(
    benchmark_of_datasets: Benchmark, ours: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def stop(done: int, total: int) -> None:
        if 0 < done < total:
            raise KeyboardInterrupt

    def stage(task: str) -> AbstractContextManager[Progress]:
        return nullcontext(stop if task == "temporal, seed 42, real: steps" else no_progress)

    with pytest.raises(KeyboardInterrupt):
        reproduce([benchmark_of_datasets], tmp_path, settings("ours,none"), stage)
    assert not encoders(tmp_path)
    caplog.set_level(logging.INFO, "polypcount.reproduce")
    reproduce([benchmark_of_datasets], tmp_path, settings("ours,none"))
    assert "temporal, seed 42, real: resuming" in caplog.text
    assert tables(tmp_path) == tables(ours)
    assert encoders(tmp_path) == encoders(ours)


def test_a_row_that_fails_is_told_and_others_are_written(benchmark_of_datasets: Benchmark, tmp_path: Path) -> None:
    """Without the test videos of the datasets there are fewer than the 28 polyps that a batch of 2 views takes."""
    some = (*TINY, "data.leave_out=[study, test]", "sampler.stride=4")  # which others do not have
    outcome = reproduce([benchmark_of_datasets], tmp_path, settings("views-2,none,views-28", changes=some))
    (line,) = outcome.failures
    assert line.startswith("views-2 (real, seed 42): a batch takes 28 polyps (sampler.polyps), and there are 27 of 27")
    assert {key[0] for key in scores(tmp_path, "table-2")} == {"views-28"}
    assert ("none", "fixed", "fr") in scores(tmp_path, "table-1")
    assert json.loads((tmp_path / "reproduce.json").read_text())["failures"] == [line]


def test_a_damaged_result_is_named(benchmark_of_datasets: Benchmark, copied: Path) -> None:
    (damaged,) = (copied / "results" / "real").glob("ours-*.json")
    damaged.write_text("{")
    with pytest.raises(FileError, match=damaged.name):
        reproduce([benchmark_of_datasets], copied, settings("none"))


def test_an_encoder_that_fails_is_tried_once(
    benchmark_of_datasets: Benchmark, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "polypcount.reproduce")
    without = (*TINY, "model.weights=/nowhere")
    outcome = reproduce([benchmark_of_datasets], tmp_path, settings("ours,ours-ap,time-only", changes=without))
    (line,) = outcome.failures
    assert line.startswith("ours, ours-ap (real, seed 42): ")
    assert sum(record.getMessage().endswith(": training") for record in caplog.records) == 1
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
