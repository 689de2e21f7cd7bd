"""`polypcount train`, as its user runs it: killed, stopped, resumed, in two processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from polypcount.encoder import load_encoder
from polypcount.training.checkpoint import load_state
from tests.conftest import Run
from tests.training.corpora import drawn_corpus, tiny
from tests.training.test_train import assert_same_gradients, equal, rows

LONGER = ("epochs=4", "batches_per_epoch=2", "augmentation.rotation=20", "augmentation.blur=1")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("drawn")
    return drawn_corpus(place / "frames").save(place / "corpus")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYPCOUNT_CACHE", str(tmp_path_factory.getbasetemp() / "train-cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def arguments(corpus: Path, out: Path, *changes: str) -> list[str]:
    given = [*tiny("temporal"), *changes]
    return ["train", str(corpus), "--out", str(out), "--log-to", "none", *(f"--set={change}" for change in given)]


def disturbed(corpus: Path, out: Path, how: int, after_steps: int) -> "subprocess.CompletedProcess[str]":
    """Train, and send a signal once so many steps are done."""
    program = Path(sys.executable).with_name("polypcount")
    command = [str(program), *arguments(corpus, out, *LONGER)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        steps = out / "steps.csv"
        while process.poll() is None and (not steps.exists() or len(steps.read_text().splitlines()) <= after_steps):
            time.sleep(0.002)
        os.kill(process.pid, how)
        said, complained = process.communicate(timeout=60)
    assert not (out / "encoder.json").exists(), "it was disturbed before its end"
    return subprocess.CompletedProcess(command, process.returncode, said, complained)


@pytest.fixture(scope="module")
def undisturbed(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    program = Path(sys.executable).with_name("polypcount")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "POLYPCOUNT_CACHE": str(out.parent / "cache")}
    subprocess.run([program, *arguments(corpus, out, *LONGER)], check=True, env=environment)
    return out


def test_killed_and_resumed_it_ends_with_the_same_weights(
    polypcount: Run, corpus: Path, undisturbed: Path, tmp_path: Path
) -> None:
    killed = disturbed(corpus, tmp_path / "run", signal.SIGKILL, after_steps=3)
    assert killed.returncode == -signal.SIGKILL
    result = polypcount("train", corpus, "--out", tmp_path / "run", "--resume", "--log-to", "none")
    assert result.returncode == 0, result.stderr
    assert equal(undisturbed, tmp_path / "run")
    assert load_encoder(undisturbed).fingerprint == load_encoder(tmp_path / "run").fingerprint
    assert len(rows(tmp_path / "run" / "steps.csv")) == 8


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_it_ends_ready_to_be_resumed(
    how: signal.Signals, polypcount: Run, corpus: Path, undisturbed: Path, tmp_path: Path
) -> None:
    stopped = disturbed(corpus, tmp_path / "run", how, after_steps=1)
    assert stopped.returncode == 128 + how
    assert "--resume goes on from there" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    course = load_state(tmp_path / "run" / "checkpoints" / "last.safetensors")[1]["course"]
    assert course["steps_done"] == len(rows(tmp_path / "run" / "steps.csv"))
    result = polypcount("train", corpus, "--out", tmp_path / "run", "--resume", "--log-to", "none")
    assert result.returncode == 0, result.stderr
    assert equal(undisturbed, tmp_path / "run")


@pytest.mark.parametrize("pieces", [(), ("--views-at-once", "2")])
def test_two_processes_train_as_one(pieces: tuple[str, ...], polypcount: Run, corpus: Path, tmp_path: Path) -> None:
    one_step = ("model.dropout=0", "batches_per_epoch=1")
    for out, more in (("one", ()), ("two", ("--devices", "2", *pieces))):
        result = polypcount(*arguments(corpus, tmp_path / out, *one_step), "--accelerator", "cpu", *more)
        assert result.returncode == 0, result.stderr
        assert result.stdout.count("trained; best epoch 1") == 1
        assert "distributed" not in result.stderr
    assert_same_gradients(tmp_path / "one", tmp_path / "two")
    losses = [float(rows(tmp_path / out / "steps.csv")[0]["loss"]) for out in ("one", "two")]
    assert losses[0] == pytest.approx(losses[1], rel=2e-6)
    after = [load_state(tmp_path / out / "checkpoints" / "last.safetensors")[0] for out in ("one", "two")]
    assert max(float((after[0][name] - after[1][name]).abs().max()) for name in after[0]) < 1e-5


def test_two_processes_stop_together(corpus: Path, polypcount: Run, tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("polypcount")
    command = [
        str(program),
        *arguments(corpus, tmp_path / "run", "epochs=500"),
        "--accelerator",
        "cpu",
        "--devices",
        "2",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not (tmp_path / "run" / "epochs.csv").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)  # to the first process alone
        _, complained = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, complained
    assert "--resume goes on" in complained
    resumed = polypcount(
        "train",
        corpus,
        "--out",
        tmp_path / "run",
        "--resume",
        "--accelerator",
        "cpu",
        "--log-to",
        "none",
        "--recipe",
        tmp_path / "run" / "recipe.yaml",
        "--set",
        "epochs=1",
    )
    assert resumed.returncode == 0, resumed.stderr


def test_the_recipe_can_be_shown_and_bad_keys_are_one_line_each(polypcount: Run, tmp_path: Path) -> None:
    shown = polypcount("train", "--recipe", "tpc", "--show", "--set", "optimizer.lr=1e-4")
    assert shown.returncode == 0
    assert "lr: 0.0001" in shown.stdout
    assert "one_tracklet_end: 0.4" in shown.stdout
    (tmp_path / "again.yaml").write_text(shown.stdout)
    assert polypcount("train", "--recipe", tmp_path / "again.yaml", "--show").stdout == shown.stdout
    bad = polypcount("train", "--show", "--set", "optimizer.lrr=1", "--set", "epochs=many")
    assert bad.returncode == 2
    assert "optimizer.lrr is unknown; did you mean lr?" in bad.stderr
    assert 'epochs must be a whole number, found "many"' in bad.stderr
    assert len(bad.stderr.strip().splitlines()) == 2
    missing = polypcount("train", "--recipe", "small")
    assert missing.returncode == 2
    assert "polypcount train CORPUS --recipe NAME --out RUN" in missing.stderr


def test_it_says_what_it_learns_from(polypcount: Run, corpus: Path, tmp_path: Path) -> None:
    result = polypcount(*arguments(corpus, tmp_path / "run"))
    assert result.returncode == 0, result.stderr
    assert "learning from 3 videos: 6 of 6 polyps" in result.stderr
    assert "validating on 1 videos: 2 of 2 polyps" in result.stderr


def test_a_full_disk_is_one_line_and_the_run_can_go_on(
    polypcount: Run, corpus: Path, undisturbed: Path, tmp_path: Path
) -> None:
    """Files may not become larger than 20 kB, which a checkpoint is."""
    program = Path(sys.executable).with_name("polypcount")
    command = ["sh", "-c", 'ulimit -f 40; exec "$@"', "sh", str(program), *arguments(corpus, tmp_path / "run", *LONGER)]
    polypcount(*arguments(corpus, tmp_path / "before", *LONGER, "epochs=1"))  # cuts the crops
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 2
    assert "the checkpoint cannot be written (File too large)" in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr
    assert not list((tmp_path / "run" / "checkpoints").iterdir())
    unfinished = polypcount("embed", corpus, "--encoder", tmp_path / "run", "--out", tmp_path / "vectors.npz")
    assert "holds a training that is not finished; go on with polypcount train" in unfinished.stderr
    resumed = polypcount("train", corpus, "--out", tmp_path / "run", "--resume", "--log-to", "none")
    assert resumed.returncode == 0, resumed.stderr
    assert equal(undisturbed, tmp_path / "run")
