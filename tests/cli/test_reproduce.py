"""`polypcount reproduce`, as its user runs it, on all four datasets in miniature."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from polypcount.cli.main import app
from polypcount.errors import PolypcountError
from polypcount.reproduce import Settings, StudySettings, Wish, choose_rows, real_benchmark, reproduce
from polypcount.reproduce.rows import ROWS, TABLES
from tests.reproduce.conftest import TINY
from tests.reproduce.miniature import miniature
from tests.reproduce.reading import encoders, made, scores, tables

Reproduce = Callable[..., "subprocess.CompletedProcess[str]"]
DATASETS = ("real-colon", "ldpolypvideo", "sun", "polypsset")
LONGER = 20


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reproduce")
    miniature(folder / "data")
    return folder


def arguments(place: Path, out: Path, *options: str) -> list[str]:
    datasets = [f"--{name}={place / 'data' / name}" for name in DATASETS]
    given = [*datasets, f"--out={out}", "--grid=coarse", "--threads=1", *options]
    return ["reproduce", *given, *(f"--set={change}" for change in TINY)]


def start(place: Path, out: Path, *options: str) -> "subprocess.Popen[str]":
    own = {"COLUMNS": "160", "OMP_NUM_THREADS": "1", "POLYPCOUNT_CACHE": str(place / "cache")}
    return subprocess.Popen(
        [str(Path(sys.executable).with_name("polypcount")), *arguments(place, out, *options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **own},
    )


@pytest.fixture(scope="module")
def run(place: Path) -> Reproduce:
    def run(out: Path, *options: str) -> "subprocess.CompletedProcess[str]":
        with start(place, out, *options) as process:
            said, complained = process.communicate(timeout=300)
        assert process.returncode == 0, complained
        return subprocess.CompletedProcess([], 0, said, complained)

    return run


@pytest.fixture(scope="module")
def whole(place: Path, run: Reproduce) -> Path:
    """Everything, once."""
    done = run(place / "whole", "--steps=4")
    for title in ("Table 1", "Table 2", "Table 3", "Table 4"):
        assert title in done.stdout
    assert "real-colon: 6 polyps, the paper's training set has 85 (-79)" in done.stderr
    return place / "whole"


def test_all_tables_have_all_rows(whole: Path) -> None:
    for name, table in TABLES.items():
        found = scores(whole, name)
        for line in table.lines:
            for rule in ("fixed",) if line.row == "none" else ("closest", "budget"):
                assert float(found[line.row, rule, "fr"]) > 0
                assert float(found[line.row, rule, "fpr"]) >= 0
                assert line.row == "none" or 0 <= float(found[line.row, rule, "pair_auroc"]) <= 1
        text = (whole / f"{name}.md").read_text()
        assert all(line.label in text for line in table.lines)
        assert (whole / "figures" / f"{name}.png").stat().st_size > 5_000
    assert scores(whole, "table-1")["none", "fixed", "fr"] == "3.0", "three tracklets of each polyp"
    assert "20.74 ± 20.78" in (whole / "table-1.md").read_text()
    told = json.loads((whole / "reproduce.json").read_text())
    assert len(told["results"]) == len(ROWS)
    assert told["failures"] == []
    reports = [json.loads(path.read_text()) for path in (whole / "encoders" / "real").glob("*.json")]
    assert sorted(report["steps"] for report in reports) == [0, *[4] * 9]
    assert len(set(encoders(whole).values())) == 10


def test_again_nothing_is_computed(whole: Path, run: Reproduce) -> None:
    before, shown = made(whole), tables(whole)
    done = run(whole, "--steps=4")
    assert made(whole) == before
    assert tables(whole) == shown
    assert len(done.stderr.splitlines()) == 5, "how many polyps there are to learn from, and no stage of work"


@pytest.fixture(scope="module")
def undisturbed(place: Path) -> Path:
    torch.set_num_threads(1)
    out = place / "undisturbed"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLYPCOUNT_CACHE", str(place / "cache"))
        data = real_benchmark({name: place / "data" / name for name in DATASETS}, out.with_name("corpora"))
        settings = Settings(choose_rows(["ours"]), (42,), TINY, StudySettings("coarse"), Wish(steps=LONGER), threads=1)
        assert reproduce([data], out, settings).failures == []
    return out


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_stopped_in_the_middle_it_goes_on_to_the_same_tables(
    how: signal.Signals, place: Path, run: Reproduce, undisturbed: Path, tmp_path: Path
) -> None:
    out, options = tmp_path / "out", ("--rows=ours", f"--steps={LONGER}")
    with start(place, out, *options) as process:
        while process.poll() is None:
            steps = list((out / "encoders").rglob("steps.csv"))
            if steps and len(steps[0].read_text().splitlines()) > 4:
                break
            time.sleep(0.002)
        process.send_signal(how)
        _, complained = process.communicate(timeout=60)
    assert not encoders(out), "it was stopped before the end of the training"
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert complained.splitlines()[-1] == "polypcount: stopped; the same command goes on from here"
        assert "Traceback" not in complained
    done = run(out, *options)
    assert "temporal, seed 42, real: going on" in done.stderr
    assert tables(out) == tables(undisturbed)
    assert encoders(out) == encoders(undisturbed)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--rows=our",), "there is no row 'our'"),
        (("--seeds=1,x",), "--seeds must be whole numbers from 0, separated by commas, found '1,x'"),
        (("--renders=",), "--renders must be whole numbers from 0"),
        (("--steps=1", "--budget=1"), "give one of them"),
        (("--simulated",), "give either --simulated or the folders"),
        (("--stills=.",), "--stills are for --simulated"),
        (("--set=optimizer.lrr=1",), "optimizer.lrr is unknown; did you mean lr?"),
    ],
)
def test_what_cannot_be_is_known_before_any_work(
    options: tuple[str, ...], told: str, place: Path, tmp_path: Path
) -> None:
    done = CliRunner().invoke(app, arguments(place, tmp_path / "out", *options))
    assert isinstance(done.exception, PolypcountError)
    assert told in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_data_must_be_named(place: Path, tmp_path: Path) -> None:
    nothing = CliRunner().invoke(app, ["reproduce", "--out", str(tmp_path)])
    assert "give either --simulated or the folders" in str(nothing.exception)
    one = CliRunner().invoke(app, ["reproduce", "--out", str(tmp_path), "--sun", str(place)])
    assert "the folder of real-colon is needed: --real-colon DIR" in str(one.exception)
