"""Whole trainings, small ones: every sampler, the folder of a run, kills and stops, and what cannot go well."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from polypcount.corpus import Corpus
from polypcount.encoder import Encoder, embed, load_encoder, save_encoder
from polypcount.errors import DataError, FileError, PolypcountError
from polypcount.tracking import link_tracklets
from polypcount.training import Machine, Moment, Stopped, encoder_lesson, load_recipe, train
from polypcount.training.checkpoint import load_state
from polypcount.training.start import new_model
from polypcount.training.validate import validate
from tests.training.corpora import WHOLE, equal, rows, tiny

Trained = Callable[..., Encoder]


@pytest.fixture
def trained(drawn: Corpus, crops_cache: Path, tmp_path: Path) -> Trained:
    def run(*changes: str, recipe: str = "temporal", out: str = "run", **options: Any) -> Encoder:
        resume = options.get("resume", False)
        return train(
            options.pop("corpus", drawn),
            None if resume else recipe,
            tmp_path / out,
            changes=changes if resume else [*tiny(recipe), *changes],
            cache=crops_cache,
            log_to=[],
            **options,
        )

    return run


@pytest.fixture
def copied(whole: Path, tmp_path: Path) -> Path:
    """A copy of the finished run."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


@pytest.mark.parametrize("recipe", ["temporal", "sfe", "tpc", "small"])
def test_every_sampler_trains_two_steps(recipe: str, trained: Trained, drawn: Corpus, tmp_path: Path) -> None:
    start = new_model(load_recipe(recipe, tiny(recipe)))
    moments: list[Moment] = []
    encoder = trained(recipe=recipe, watch=moments.append)
    assert [moment.step for moment in moments] == [1, 2, 0]
    assert all(np.isfinite(moment.loss) for moment in moments)
    assert encoder.description["recipe"]["name"] == recipe
    assert encoder.description["data_hash"] == drawn.content_hash
    after = load_state(tmp_path / "run" / "checkpoints" / "last.safetensors")[0]
    assert any(not torch.equal(after[f"model.{name}"], values) for name, values in start.state_dict().items())


def test_a_run_folder_has_everything_of_the_run(whole: Path, drawn: Corpus, tmp_path: Path) -> None:
    about = json.loads((whole / "run.json").read_text())
    assert about["seed"] == 42
    assert about["corpus_hash"] == drawn.content_hash
    assert about["environment"]["packages"]["torch"] in torch.__version__
    assert len(about["learnt_from"]["videos"]) == 3
    assert set(about["learnt_from"]["videos"]).isdisjoint(about["validated_on"]["videos"])
    steps = rows(whole / "steps.csv")
    assert [(row["epoch"], row["step"]) for row in steps] == [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")]
    epochs = rows(whole / "epochs.csv")
    assert float(epochs[0]["loss"]) == pytest.approx(np.mean([float(row["loss"]) for row in steps[:2]]), rel=1e-4)
    assert 0 <= float(epochs[1]["hit_rate_1"]) <= 1
    assert float(epochs[1]["validation_loss"]) > 0
    assert (whole / "loss.svg").read_text().startswith("<?xml")
    assert list((whole / "tensorboard").glob("events*"))
    assert (whole / "checkpoints" / "best.safetensors").exists()
    assert "sampler" in (whole / "recipe.yaml").read_text()
    one = drawn.select(videos="video-0")
    vectors = embed(one, link_tracklets(one.boxes), load_encoder(whole), cache=tmp_path / "features")
    assert vectors.vectors.shape == (4, 16)


class Crash(Exception):
    """The process ends here."""


def crash_at(epoch: int, step: int) -> Callable[[Moment], None]:
    def watch(moment: Moment) -> None:
        if (moment.epoch, moment.step) == (epoch, step):
            raise Crash

    return watch


def assert_same_runs(a: Path, b: Path) -> None:
    """The same weights, bit by bit, and the same logs."""
    assert load_encoder(a).fingerprint == load_encoder(b).fingerprint
    assert equal(a, b)
    steps = [rows(run / "steps.csv") for run in (a, b)]
    for row in steps[0] + steps[1]:
        del row["crops_per_second"]
    assert steps[0] == steps[1]
    assert (a / "epochs.csv").read_text() == (b / "epochs.csv").read_text()


@pytest.mark.parametrize("crash", [(0, 1), (1, 1)], ids=["before a checkpoint", "after one"])
def test_resumed_at_any_step_it_ends_with_the_same_weights(
    crash: tuple[int, int], trained: Trained, whole: Path, tmp_path: Path
) -> None:
    with pytest.raises(Crash):
        trained(*WHOLE, watch=crash_at(*crash))
    trained(resume=True)
    assert_same_runs(whole, tmp_path / "run")


def test_killed_in_the_middle_and_resumed_it_ends_with_the_same_weights(
    trained: Trained, drawn: Corpus, crops_cache: Path, whole: Path, tmp_path: Path
) -> None:
    """A process of its own, which SIGKILL ends right after its third step."""
    program = (
        "import os, signal, sys, torch\n"
        "from polypcount.corpus import Corpus\n"
        "from polypcount.training import train\n"
        "def watch(moment):\n"
        "    if (moment.epoch, moment.step) == (1, 1): os.kill(os.getpid(), signal.SIGKILL)\n"
        "torch.set_num_threads(1)\n"
        "corpus, out, cache, *changes = sys.argv[1:]\n"
        "train(Corpus.load(corpus), 'temporal', out, changes=changes, cache=cache, log_to=[], watch=watch)\n"
    )
    given = [drawn.save(tmp_path / "corpus"), tmp_path / "run", crops_cache, *tiny("temporal"), *WHOLE]
    killed = subprocess.run([sys.executable, "-c", program, *map(str, given)], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(rows(tmp_path / "run" / "steps.csv")) == 3
    trained(resume=True)
    assert_same_runs(whole, tmp_path / "run")


@pytest.mark.parametrize("during", ["steps", "validation"])
def test_asked_to_stop_it_ends_ready_to_be_resumed(
    during: str, trained: Trained, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    def watch(moment: Moment) -> None:
        if during == "steps" and (moment.epoch, moment.step) == (0, 1):
            ask()

    def ask_and_validate(*given: Any) -> Any:
        ask()
        return validate(*given)

    with monkeypatch.context() as patch:
        if during == "validation":
            patch.setattr(encoder_lesson, "validate", ask_and_validate)
        with pytest.raises(Stopped) as stopped:
            trained(*WHOLE, watch=watch)
    assert stopped.value.signal == signal.SIGTERM
    assert stopped.value.mend == ("resume",)
    course = load_state(tmp_path / "run" / "checkpoints" / "last.safetensors")[1]["course"]
    assert course["steps_done"] == len(rows(tmp_path / "run" / "steps.csv")) == (1 if during == "steps" else 2)
    assert not (tmp_path / "run" / "epochs.csv").exists()
    trained(resume=True)
    assert_same_runs(whole, tmp_path / "run")


def test_another_seed_gives_other_weights(trained: Trained, whole: Path, tmp_path: Path) -> None:
    trained(*WHOLE, "seed=2")
    assert not equal(whole, tmp_path / "run")


def test_the_best_epoch_is_kept_and_patience_ends_the_training(trained: Trained, tmp_path: Path) -> None:
    trained("epochs=40", "batches_per_epoch=1", "validation.patience=2", "validation.monitor=hit_rate_1")
    epochs = rows(tmp_path / "run" / "epochs.csv")
    rates = [float(row["hit_rate_1"]) for row in epochs]
    best = int(np.argmax(rates)) + 1  # the first of the highest
    assert len(epochs) == best + 2
    assert load_encoder(tmp_path / "run").description["metrics"]["epoch"] == best
    assert load_state(tmp_path / "run" / "checkpoints" / "best.safetensors")[1]["epoch"] == best


def test_a_finished_run_can_go_on_for_more_epochs(trained: Trained, whole: Path, tmp_path: Path) -> None:
    start = save_encoder(new_model(load_recipe("temporal", [*tiny("temporal"), *WHOLE])), tmp_path / "start")
    trained(*WHOLE, "epochs=1", f"model.start={start}")
    shutil.rmtree(start)  # the checkpoint has all weights
    (tmp_path / "run" / "checkpoints" / ".last.safetensors.0123abcd.unfinished").write_bytes(b"left by a kill")
    trained("epochs=2", resume=True)
    assert not list((tmp_path / "run" / "checkpoints").glob(".*"))
    assert equal(whole, tmp_path / "run")
    with pytest.raises(FileError, match="has done 2 epochs already, more than epochs=1"):
        trained("epochs=1", resume=True)
    assert len(json.loads((tmp_path / "run" / "run.json").read_text())["resumed"]) == 2


@pytest.mark.usefixtures("copied")
def test_a_run_is_resumed_with_its_own_recipe_and_corpus(trained: Trained, drawn: Corpus) -> None:
    with pytest.raises(FileError, match=r"loss\.decay 1\.0, not 3\.0"):
        trained("loss.decay=3.0", resume=True)
    with pytest.raises(FileError, match="another corpus"):
        trained(resume=True, corpus=drawn.select(videos=["video-0", "video-1", "video-2"]))
    with pytest.raises(FileError, match="holds a run already"):
        trained()


def test_without_validation_the_last_epoch_counts(trained: Trained, tmp_path: Path) -> None:
    def watch(moment: Moment) -> None:
        with pytest.raises(FileError, match="another process is training there"):
            trained("epochs=3", resume=True)

    encoder = trained("data.validation_share=0", "batches_per_epoch=1", watch=watch)
    assert encoder.description["metrics"] == {"epoch": 1, "validation": {}}


@pytest.mark.parametrize(
    ("change", "options", "line"),
    [
        ("model.batch_norm=batch", {"machine": Machine(views_at_once=2)}, r"model\.batch_norm=fixed"),
        ("sampler.views=3", {"machine": Machine(devices=2, accelerator="cpu")}, "cannot be shared equally"),
        ("sampler.polyps=50", {}, "a batch takes 50 polyps .* 6 of 6 polyps"),
        ("epochs=1", {"machine": Machine(accelerator="abacus")}, "training cannot run on 1 x abacus"),
        ("data.leave_out=['']", {}, "nothing to learn from: 4 of 4 videos"),
        ("model.weights=nowhere.pth", {}, r"nowhere\.pth"),
    ],
)
def test_bad_settings_are_reported_before_any_work(
    change: str, options: dict[str, Any], line: str, trained: Trained, tmp_path: Path
) -> None:
    with pytest.raises(PolypcountError, match=line):
        trained(change, **options)
    assert not (tmp_path / "run").exists()


def test_a_frame_that_cannot_be_read_is_named_and_the_run_can_start_again(
    trained: Trained, drawn: Corpus, tmp_path: Path
) -> None:
    shutil.copytree(Path(str(drawn.videos[0].source)).parent, tmp_path / "frames")
    videos = tuple(replace(video, source=str(tmp_path / "frames" / video.id)) for video in drawn.videos)
    moved = replace(drawn, videos=videos)
    broken = tmp_path / "frames" / "video-2" / "0008.png"
    content = broken.read_bytes()
    broken.write_bytes(content[:60])
    with pytest.raises(FileError, match=r"video video-2.*0008\.png"):
        trained(corpus=moved)
    broken.write_bytes(content)
    trained("batches_per_epoch=1", corpus=moved)


def test_a_monitored_value_that_is_undefined_is_logged_and_the_last_epoch_counts(
    trained: Trained, drawn: Corpus, caplog: pytest.LogCaptureFixture
) -> None:
    once = replace(drawn, boxes=drawn.boxes.take(drawn.boxes.frame < 74))  # each polyp has one tracklet
    encoder = trained("validation.monitor=hit_rate_1", "epochs=2", "batches_per_epoch=1", corpus=once)
    assert encoder.description["metrics"]["epoch"] == 2
    assert encoder.description["metrics"]["validation"]["loss"] > 0
    assert "hit_rate_1 is undefined on these videos" in caplog.text


def test_a_training_that_diverges_says_so(trained: Trained, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has diverged.*lower optimizer\.lr"):
        trained("optimizer.lr=10", "optimizer.weight_decay=1e30", "epochs=9")
    assert not (tmp_path / "run" / "encoder.json").exists()


def test_a_folder_that_cannot_be_written_is_reported_before_crops_are_cut(drawn: Corpus, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="run"):
        train(drawn, "temporal", tmp_path / "file" / "run", changes=tiny("temporal"), cache=tmp_path / "crops")
    assert not (tmp_path / "crops").exists()
