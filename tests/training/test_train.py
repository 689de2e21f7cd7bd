"""Whole trainings, small ones: every recipe, the folder of a run, pieces, and what cannot go well."""

import csv
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from polypcount.corpus import Corpus
from polypcount.encoder import Encoder, embed, load_encoder, new_encoder, save_encoder
from polypcount.errors import DataError, FileError, PolypcountError
from polypcount.tracking import link_tracklets
from polypcount.training import Machine, Moment, loop, recipe_names, train
from polypcount.training.checkpoint import load_state
from tests.training.corpora import drawn_corpus, tiny

_POOLING = {"sfe": "mean", "small": "mean"}
Trained = Callable[..., Encoder]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return drawn_corpus(tmp_path_factory.mktemp("frames"))


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("crops")


@pytest.fixture
def trained(corpus: Corpus, cache: Path, tmp_path: Path) -> Trained:
    def run(*changes: str, recipe: str = "temporal", out: str = "run", **options: Any) -> Encoder:
        given = options.pop("corpus", corpus)
        chosen = [*tiny(recipe), *changes] if not options.get("resume") else list(changes)
        return train(
            given,
            None if options.get("resume") else recipe,
            tmp_path / out,
            changes=chosen,
            cache=cache,
            log_to=[],
            **options,
        )

    return run


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def weights(folder: Path) -> dict[str, Any]:
    return load_state(folder / "checkpoints" / "last.safetensors")[0]


def equal(a: Path, b: Path) -> bool:
    mine, theirs = weights(a), weights(b)
    return mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in mine)


@pytest.mark.parametrize("recipe", recipe_names())
def test_every_recipe_trains_two_steps_and_its_folder_embeds(
    recipe: str, trained: Trained, corpus: Corpus, tmp_path: Path
) -> None:
    before = Path(tmp_path / "start")
    moments: list[Moment] = []
    encoder = trained(f"model.start={_untrained(recipe, before)}", recipe=recipe, watch=moments.append)
    assert [moment.step for moment in moments] == [1, 2, 0]
    assert all(np.isfinite(moment.loss) for moment in moments)
    assert encoder.spec.pooling == _POOLING.get(recipe, "cls")
    assert encoder.description["recipe"]["name"] == recipe
    assert encoder.description["data_hash"] == corpus.content_hash
    one = corpus.select(videos="video-0")
    vectors = embed(one, link_tracklets(one.boxes), load_encoder(tmp_path / "run"), cache=tmp_path / "features")
    assert vectors.vectors.shape == (4, 16)
    first = embed(one, link_tracklets(one.boxes), load_encoder(before), cache=tmp_path / "features")
    assert not np.allclose(vectors.vectors, first.vectors, atol=1e-7), "two steps change the encoder"


def _untrained(recipe: str, folder: Path) -> Path:
    torch.manual_seed(7)
    settings: Any = {"d": 16, "layers": 1, "heads": 2, "ff": 32, "pooling": _POOLING.get(recipe, "cls")}
    from polypcount.encoder import Preprocessing
    from polypcount.video import CropRule

    return save_encoder(new_encoder("tiny", preprocessing=Preprocessing(CropRule(size=32)), **settings), folder)


def test_a_run_folder_has_everything_of_the_run(trained: Trained, corpus: Corpus, cache: Path, tmp_path: Path) -> None:
    train(corpus, "temporal", tmp_path / "run", changes=[*tiny("temporal"), "epochs=2"], cache=cache)
    run = tmp_path / "run"
    about = json.loads((run / "run.json").read_text())
    assert about["seed"] == 42
    assert about["corpus_hash"] == corpus.content_hash
    assert about["environment"]["packages"]["torch"] == torch.__version__.partition("+")[0] or "+" in torch.__version__
    assert len(about["learnt_from"]["videos"]) == 3
    assert set(about["learnt_from"]["videos"]).isdisjoint(about["validated_on"]["videos"])
    steps = rows(run / "steps.csv")
    assert [(row["epoch"], row["step"]) for row in steps] == [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")]
    epochs = rows(run / "epochs.csv")
    assert float(epochs[0]["loss"]) == pytest.approx(np.mean([float(row["loss"]) for row in steps[:2]]), rel=1e-4)
    assert 0 <= float(epochs[1]["hit_rate_1"]) <= 1
    assert float(epochs[1]["validation_loss"]) > 0
    assert (run / "loss.svg").read_text().startswith("<?xml")
    assert list((run / "tensorboard").glob("events*"))
    assert (run / "checkpoints" / "best.safetensors").exists()
    assert "sampler" in (run / "recipe.yaml").read_text()
    with pytest.raises(FileError, match="holds a run already"):
        trained()


def test_the_same_seed_gives_the_same_weights_and_another_others(trained: Trained, tmp_path: Path) -> None:
    for out, seed in (("a", 1), ("b", 1), ("c", 2)):
        trained("augmentation.flip=true", "augmentation.blur=1", f"seed={seed}", out=out)
    assert equal(tmp_path / "a", tmp_path / "b")
    assert not equal(tmp_path / "a", tmp_path / "c")


@pytest.mark.parametrize("crash", [1, 2, 3, 4, 5])
def test_resumed_at_any_step_it_ends_with_the_same_weights(crash: int, trained: Trained, tmp_path: Path) -> None:
    settings = ("epochs=3", "augmentation.rotation=20", "optimizer.schedule=cosine")

    class Crash(Exception):
        pass

    def watch(moment: Moment) -> None:
        if moment.step and moment.epoch * 2 + moment.step == crash:
            raise Crash

    whole = trained(*settings, out="whole")
    with pytest.raises(Crash):
        trained(*settings, out="broken", watch=watch)
    encoder = trained(out="broken", resume=True)
    assert encoder.fingerprint == whole.fingerprint
    assert equal(tmp_path / "whole", tmp_path / "broken")
    for row in (steps := [rows(tmp_path / out / "steps.csv") for out in ("whole", "broken")])[0] + steps[1]:
        del row["crops_per_second"]
    assert steps[0] == steps[1]
    assert (tmp_path / "whole/epochs.csv").read_text() == (tmp_path / "broken/epochs.csv").read_text()


def test_stopped_during_validation_it_goes_on_there(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(Exception):
        pass

    def killed(*_: object) -> None:
        raise Killed

    whole = trained("epochs=2", out="whole")
    with monkeypatch.context() as patch:
        patch.setattr(loop, "validate", killed)
        with pytest.raises(Killed):
            trained("epochs=2", out="broken")
    steps = rows(tmp_path / "broken" / "steps.csv")
    assert trained(out="broken", resume=True).fingerprint == whole.fingerprint
    assert equal(tmp_path / "whole", tmp_path / "broken")
    assert rows(tmp_path / "broken" / "steps.csv")[:2] == steps, "no step is done twice"
    assert (tmp_path / "whole/epochs.csv").read_text() == (tmp_path / "broken/epochs.csv").read_text()


@pytest.mark.parametrize("at_once", [1, 3, 5])
def test_pieces_have_the_gradient_of_the_whole_batch(at_once: int, trained: Trained, tmp_path: Path) -> None:
    settings = ("model.dropout=0", "batches_per_epoch=1")
    trained(*settings, out="whole")
    trained(*settings, out="pieces", machine=Machine(views_at_once=at_once))
    assert_same_gradients(tmp_path / "whole", tmp_path / "pieces")


def assert_same_gradients(a: Path, b: Path) -> None:
    """After one step the first moment of AdamW is a tenth of the gradient."""
    mine, theirs = ({n: v for n, v in weights(run).items() if n.endswith("exp_avg")} for run in (a, b))
    assert mine.keys() == theirs.keys()
    assert mine
    largest = max(float(values.abs().max()) for values in mine.values())
    assert largest > 1e-4
    for name in mine:
        assert torch.allclose(mine[name], theirs[name], rtol=0, atol=1e-6 * max(largest, 0.1)), name


def test_the_best_epoch_is_kept_and_patience_ends_the_training(trained: Trained, tmp_path: Path) -> None:
    trained("epochs=40", "batches_per_epoch=1", "validation.patience=2", "validation.monitor=hit_rate_1")
    epochs = rows(tmp_path / "run" / "epochs.csv")
    rates = [float(row["hit_rate_1"]) for row in epochs]
    best = int(np.argmax(rates)) + 1  # the first of the highest
    assert len(epochs) == best + 2
    encoder = load_encoder(tmp_path / "run")
    assert encoder.description["metrics"]["epoch"] == best
    assert load_state(tmp_path / "run" / "checkpoints" / "best.safetensors")[1]["epoch"] == best


def test_without_validation_the_last_epoch_counts(trained: Trained) -> None:
    encoder = trained("data.validation_share=0")
    assert encoder.description["metrics"] == {"epoch": 1, "validation": {}}


def test_a_finished_run_can_go_on_for_more_epochs(trained: Trained, tmp_path: Path) -> None:
    trained("epochs=2", out="short")
    trained("epochs=4", out="short", resume=True)
    trained("epochs=4", out="long")
    assert equal(tmp_path / "short", tmp_path / "long")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (("model.d=12", "model.heads=2"), "the run has model.d 16, not 12"),
        (("loss.decay=3",), "the run has loss.decay 1.0, not 3.0"),
    ],
)
def test_a_run_is_resumed_with_its_own_recipe(changes: tuple[str, ...], line: str, trained: Trained) -> None:
    trained()
    with pytest.raises(FileError, match=line):
        trained(*changes, resume=True)


def test_a_run_is_resumed_with_its_own_corpus(trained: Trained, corpus: Corpus) -> None:
    trained()
    with pytest.raises(FileError, match="begun with another corpus"):
        trained(resume=True, corpus=corpus.select(videos=["video-0", "video-1", "video-2"]))


@pytest.mark.parametrize(
    ("change", "options", "line"),
    [
        ("model.batch_norm=batch", {"machine": Machine(views_at_once=2)}, "model.batch_norm=fixed"),
        ("sampler.views=3", {"machine": Machine(devices=2, accelerator="cpu")}, "cannot be shared equally"),
        ("sampler.polyps=50", {}, "a batch takes 50 polyps .* 6 of 6 polyps"),
        ("epochs=1", {"machine": Machine(accelerator="abacus")}, "training cannot run on 1 x abacus"),
        ("model.backbone=resnet-50", {}, "resnet-50"),
        ("data.leave_out=['']", {}, "nothing to learn from: 4 of 4 videos"),
        ("model.weights=nowhere.pth", {}, r"nowhere\.pth"),
    ],
)
def test_bad_settings_are_told_before_any_work(
    change: str, options: dict[str, Any], line: str, trained: Trained, tmp_path: Path
) -> None:
    with pytest.raises(PolypcountError, match=line):
        trained(change, **options)
    assert not (tmp_path / "run").exists()


def test_a_frame_that_cannot_be_read_is_one_line_and_once_mended_the_run_starts(
    trained: Trained, corpus: Corpus, tmp_path: Path
) -> None:
    shutil.copytree(Path(str(corpus.videos[0].source)).parent, tmp_path / "frames")
    moved = replace(
        corpus,
        videos=tuple(replace(video, source=str(tmp_path / "frames" / video.id)) for video in corpus.videos),
    )
    broken = tmp_path / "frames" / "video-2" / "0008.png"
    whole = broken.read_bytes()
    broken.write_bytes(whole[:60])
    with pytest.raises(FileError, match=r"video video-2.*0008\.png"):
        trained(corpus=moved)
    broken.unlink()
    with pytest.raises(FileError, match="video-2"):
        trained(corpus=moved)
    broken.write_bytes(whole)
    trained(corpus=moved)


def test_a_corpus_without_polyps_is_one_line(trained: Trained, corpus: Corpus) -> None:
    unknown = replace(corpus, boxes=replace(corpus.boxes, polyp=np.full(len(corpus.boxes), -1)), polyps=())
    with pytest.raises(DataError, match="nothing to learn from: 0 of 4 videos show a known polyp"):
        trained(corpus=unknown)


def test_a_monitored_value_that_is_undefined_is_told_and_the_last_epoch_counts(
    trained: Trained, corpus: Corpus, caplog: pytest.LogCaptureFixture
) -> None:
    once = replace(corpus, boxes=corpus.boxes.take(corpus.boxes.frame < 74))  # each polyp has one tracklet
    encoder = trained("validation.monitor=hit_rate_1", "epochs=2", corpus=once)
    assert encoder.description["metrics"]["epoch"] == 2
    assert encoder.description["metrics"]["validation"]["loss"] > 0
    assert "hit_rate_1 is not defined on these videos; the last epoch will count" in caplog.text


def test_a_training_that_diverges_says_so(trained: Trained, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has diverged.*start a new run with a lower optimizer.lr"):
        trained("optimizer.lr=10", "optimizer.weight_decay=1e30", "epochs=9")
    assert not (tmp_path / "run" / "encoder.json").exists()


def test_one_process_at_a_time(trained: Trained, tmp_path: Path) -> None:
    def watch(moment: Moment) -> None:
        with pytest.raises(FileError, match="another process is training there"):
            trained("epochs=3", resume=True)

    trained(watch=watch)


def test_a_run_goes_on_without_the_encoder_that_it_began_with(trained: Trained, tmp_path: Path) -> None:
    start = _untrained("temporal", tmp_path / "start")
    trained(f"model.start={start}")
    shutil.rmtree(start)
    (tmp_path / "run" / "checkpoints" / ".last.safetensors.0123abcd").write_bytes(b"left by a kill")
    assert trained("epochs=2", resume=True).description["metrics"]["epoch"] in (1, 2)
    assert not list((tmp_path / "run" / "checkpoints").glob(".*"))
    with pytest.raises(FileError, match="has done 2 epochs already, more than epochs=1"):
        trained("epochs=1", resume=True)
    assert len(json.loads((tmp_path / "run" / "run.json").read_text())["resumed"]) == 2


def test_a_folder_that_cannot_be_written_is_told_before_crops_are_cut(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="run"):
        train(corpus, "temporal", tmp_path / "file" / "run", changes=tiny("temporal"), cache=tmp_path / "crops")
    assert not (tmp_path / "crops").exists()
