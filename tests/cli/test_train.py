"""`polypcount train`, as its user runs it: in two processes, stopped, and with bad settings."""

import logging
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from polypcount import training
from polypcount.cli.main import app
from polypcount.corpus import Corpus
from polypcount.detection import train_detector
from polypcount.errors import DataErrors, PolypcountError
from polypcount.training import Stopped, train
from tests.conftest import Run
from tests.training.corpora import assert_same_gradients, drawn_corpus, rows, tiny, weights


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawn")
    return drawn_corpus(folder / "frames").save(folder / "corpus")


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    log = logging.getLogger("polypcount")
    handlers, level = list(log.handlers), log.level
    yield
    log.handlers, log.level = handlers, level


def test_two_processes_train_as_one(program: Run, corpus: Path, tmp_path: Path) -> None:
    changes = [*tiny("temporal"), "model.dropout=0", "batches_per_epoch=1"]
    train(Corpus.load(corpus), "temporal", tmp_path / "one", changes=changes, cache=tmp_path / "crops", log_to=[])
    given = ("train", corpus, "--out", tmp_path / "two", *(f"--set={change}" for change in changes))
    options = ("--accelerator", "cpu", "--devices", "2", "--views-at-once", "2", "--log-to", "none")
    own = {"POLYPCOUNT_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    result = program(*given, *options, env=own)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("trained; best epoch 1") == 1
    assert result.stderr.count("learning from 3 videos (2 polyps are for validation): 6 of 6 polyps") == 1
    assert result.stderr.count("validating on 1 videos: 2 of 2 polyps") == 1
    assert "distributed" not in result.stderr
    assert_same_gradients(tmp_path / "one", tmp_path / "two")
    losses = [float(rows(tmp_path / out / "steps.csv")[0]["loss"]) for out in ("one", "two")]
    assert losses[0] == pytest.approx(losses[1], rel=2e-6)
    first, second = (weights(tmp_path / out) for out in ("one", "two"))
    assert max(float((first[name] - second[name]).abs().max()) for name in first) < 1e-5


def test_two_processes_train_a_detector_as_one(program: Run, corpus: Path, tmp_path: Path) -> None:
    """Without random changes, and with an input of the proportions of the frames."""
    off = [
        "empty",
        "stretch",
        "rotation",
        "border",
        "exposure",
        "colour",
        "grey",
        "veil",
        "blur",
        "noise",
        "glare",
        "blank",
    ]
    changes = [
        *(
            "model.start=none",
            "model.channels=8",
            "model.width=192",
            "model.height=160",
            "side=96",
            "batch=4",
            "steps=2",
        ),
        *("data.of_polyp=1", "data.empty=0", "data.validation_share=0", "changes.zoom=1", "changes.shrink=1"),
        *("changes.flip=false", "changes.smear=0", *(f"changes.{name}=0" for name in off)),
    ]
    one = tmp_path / "one"
    train_detector(Corpus.load(corpus), "detector", one, changes=changes, cache=tmp_path / "crops", log_to=[])
    given = ("train", corpus, "--recipe", "detector", "--out", tmp_path / "two", *(f"--set={c}" for c in changes))
    options = ("--accelerator", "cpu", "--devices", "2", "--log-to", "none")
    result = program(*given, *options, env={"POLYPCOUNT_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"})
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("trained; best epoch 1") == 1
    assert f"polypcount count RECORDING --detector {tmp_path / 'two'}" in result.stdout
    losses = [[float(row["loss"]) for row in rows(tmp_path / out / "steps.csv")] for out in ("one", "two")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    first, second = (weights(tmp_path / out) for out in ("one", "two"))
    assert max(float((first[name] - second[name]).abs().max()) for name in first) < 1e-3


def test_a_stop_has_the_exit_code_of_its_signal(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise Stopped("stopped in epoch 2", signal.SIGTERM)

    monkeypatch.setattr(training, "train", stopped)
    result = CliRunner().invoke(app, ["train", str(corpus), "--out", str(tmp_path / "run")])
    assert result.exit_code == 128 + signal.SIGTERM
    assert "stopped in epoch 2 (--resume)" in result.stderr


def test_the_recipe_can_be_shown_and_bad_keys_are_one_line_each(tmp_path: Path) -> None:
    def show(*options: object) -> Any:
        return CliRunner().invoke(app, ["train", *map(str, options)])

    shown = show("--recipe", "tpc", "--show", "--set", "optimizer.lr=1e-4")
    assert shown.exit_code == 0
    assert "lr: 0.0001" in shown.stdout
    assert "one_tracklet_end: 0.4" in shown.stdout
    (tmp_path / "again.yaml").write_text(shown.stdout)
    assert show("--recipe", tmp_path / "again.yaml", "--show").stdout == shown.stdout
    bad = show("--show", "--set", "optimizer.lrr=1", "--set", "epochs=many").exception
    assert isinstance(bad, DataErrors)
    assert ["epochs" in line or "optimizer.lrr" in line for line in bad.lines] == [True, True]
    missing = show("--recipe", "small").exception
    assert isinstance(missing, PolypcountError)
    assert "CORPUS" in str(missing)
