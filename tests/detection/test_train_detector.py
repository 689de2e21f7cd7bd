"""Training a detector: small trainings through the loop that encoders use, stopped, resumed, and used for counting."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from polypcount.corpus import Boxes, Corpus, FrameFiles
from polypcount.detection import load_detector
from polypcount.detection.detector_training import new_network, train_detector
from polypcount.detection.frames import frame_batches, learning_frames, open_pixels, split_videos
from polypcount.detection.keep import keep_detector, read_weights
from polypcount.detection.learner import Averaged
from polypcount.detection.recipe import FrameSettings, load_detector_recipe
from polypcount.errors import DataError, FileError
from polypcount.training import Moment, load_recipe
from tests.training.corpora import HEIGHT, WIDTH, drawn_corpus, equal, rows

# Two epochs of three steps on 64 x 64 pixels.
TINY = (
    *("model.start=none", "model.channels=8", "model.width=64", "model.height=64", "model.fixed_blocks=0"),
    *("side=64", "batch=4", "epochs=2", "data.of_polyp=2", "data.empty=0.5", "data.validation_share=0.3"),
    "optimizer.lr=1e-3",
)
Trained = Callable[..., Path]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """3 videos of 2 polyps."""
    return drawn_corpus(tmp_path_factory.mktemp("drawn"), videos=3, returns=1)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("frames")


@pytest.fixture(scope="module")
def whole(corpus: Corpus, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an undisturbed training."""
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("whole") / "run"
    train_detector(corpus, "detector", out, changes=TINY, cache=cache, log_to=[])
    return out


@pytest.fixture
def trained(corpus: Corpus, cache: Path, tmp_path: Path) -> Trained:
    torch.set_num_threads(1)

    def run(*changes: str, **options: Any) -> Path:
        resume = options.get("resume", False)
        chosen = changes if resume else [*TINY, *changes]
        recipe = None if resume else "detector"
        given = {"corpus": corpus, **options}
        return train_detector(
            given.pop("corpus"), recipe, tmp_path / "run", changes=chosen, cache=cache, log_to=[], **given
        )

    return run


class Crash(Exception):
    """The process ends here."""


@pytest.mark.parametrize("step", [(0, 1), (1, 1)], ids=["before a checkpoint", "after one"])
def test_resumed_at_any_step_it_ends_with_the_same_bits(
    step: tuple[int, int], trained: Trained, whole: Path, tmp_path: Path
) -> None:
    def crash(moment: Moment) -> None:
        if (moment.epoch, moment.step) == step:
            raise Crash

    with pytest.raises(Crash):
        trained(watch=crash)
    trained(resume=True)
    assert equal(whole, tmp_path / "run")
    assert (whole / "epochs.csv").read_text() == (tmp_path / "run" / "epochs.csv").read_text()
    assert (whole / "detector.onnx").read_bytes() == (tmp_path / "run" / "detector.onnx").read_bytes()


def test_a_run_folder_has_the_detector_and_how_it_was_made(whole: Path, corpus: Corpus) -> None:
    described = json.loads((whole / "detector.json").read_text())
    assert described["data_hash"] == corpus.content_hash
    assert described["recipe"]["model"]["channels"] == 8
    epochs = rows(whole / "epochs.csv")
    assert len(epochs) == 2
    assert 0 <= float(epochs[1]["ap50"]) <= 1
    about = json.loads((whole / "run.json").read_text())
    assert len(about["learnt_from"]) == 2
    assert len(about["validated_on"]) == 1
    assert len(rows(whole / "steps.csv")) == 6
    assert load_detector(whole).size == (64, 64)


def test_the_file_detects_what_the_averaged_network_says(whole: Path) -> None:
    recipe = load_detector_recipe(whole / "recipe.yaml")
    network = new_network(recipe, blank=True)
    weights = read_weights(whole / "detector.onnx")
    network.load_state_dict({**network.state_dict(), **weights})
    frame = np.random.default_rng(0).integers(0, 255, (64, 64, 3)).astype(np.uint8)
    detector = load_detector(whole)
    from polypcount.detection.network import Exported

    with torch.no_grad():
        expected = Exported(network)(torch.from_numpy(frame).permute(2, 0, 1)[None].float() / 255)[0].numpy()
    best = int(expected[4].argmax())
    xyxy, score = replace(detector, settings=detector.settings.model_copy(update={"confidence": 0.0})).detect(frame)
    assert score[0] == pytest.approx(expected[4, best], abs=1e-4)
    x, y, w, h = expected[:4, best]
    assert xyxy[0] == pytest.approx(np.clip([x - w / 2, y - h / 2, x + w / 2, y + h / 2], 0, 64), abs=0.05)


def test_training_goes_on_from_a_trained_detector(whole: Path, trained: Trained, tmp_path: Path) -> None:
    recipe = load_detector_recipe("detector", [*TINY, f"model.start={whole}"])
    begun = new_network(recipe).state_dict()
    kept = read_weights(whole / "detector.onnx")
    assert set(begun) - set(kept) == {"mask.weight", "mask.bias"}
    assert all(torch.equal(begun[name], values) for name, values in kept.items())
    trained(f"model.start={whole}", "epochs=1")
    with pytest.raises(FileError, match="must have shape"):
        new_network(load_detector_recipe("detector", [*TINY, f"model.start={whole}", "model.channels=16"]))
    (tmp_path / "detector.onnx").write_bytes(b"no model")
    with pytest.raises(FileError, match="cannot be read as the ONNX file of a detector"):
        new_network(load_detector_recipe("detector", [*TINY, f"model.start={tmp_path}"]))


def test_fixed_blocks_do_not_change(trained: Trained, tmp_path: Path) -> None:
    trained("model.fixed_blocks=3", "epochs=1", "data.validation_share=0")
    begun = new_network(load_detector_recipe("detector", TINY)).state_dict()
    after = read_weights(tmp_path / "run" / "detector.onnx")
    same = {name for name, values in after.items() if torch.equal(values, begun[name])}
    fixed = tuple(f"backbone.{part}." for part in ("stem", "blocks.0", "blocks.1", "blocks.2"))
    assert {name for name in after if name.startswith(fixed)} == same


def test_the_average_follows_the_weights() -> None:
    model = Averaged(new_network(load_detector_recipe("detector", TINY)))
    expected = model.average.score.weight.clone()
    for step in range(1, 5):
        with torch.no_grad():
            model.network.score.weight += 1
        model.follow(0.3)
        stays = min(0.3, (1 + step) / (10 + step))
        expected = stays * expected + (1 - stays) * model.network.score.weight
        assert torch.allclose(model.average.score.weight, expected)


def test_frames_are_chosen_by_polyp_and_those_without_are_evenly_spaced(corpus: Corpus) -> None:
    frames = learning_frames(corpus, FrameSettings(of_polyp=3, empty=0.5))
    shown = [number for number, boxes in enumerate(frames.boxes) if len(boxes)]
    assert len(shown) == 3 * len(corpus.polyps)
    assert len(frames) == len(shown) + 9
    whole = frames.corpus.boxes
    assert whole.xyxy.tolist() == [[0, 0, WIDTH, HEIGHT]] * len(frames)
    row = shown[0]
    own = (corpus.boxes.video == whole.video[row]) & (corpus.boxes.frame == whole.frame[row])
    back = (frames.boxes[row][0] * WIDTH / 2) + np.tile([WIDTH / 2, HEIGHT / 2], 2)
    assert back == pytest.approx(corpus.boxes.xyxy[own][0])
    with pytest.raises(DataError, match="nothing to learn from"):
        learning_frames(replace(corpus, boxes=Boxes.empty(), polyps=()), FrameSettings())


def test_masks_are_those_of_their_frames(corpus: Corpus, tmp_path: Path) -> None:
    """The masks of one video, as images that tell frames apart."""
    from PIL import Image

    one = corpus.videos[1]
    (tmp_path / "masks").mkdir()
    for frame in range(one.frame_count):
        mask = np.zeros((HEIGHT, WIDTH), np.uint8)
        mask[: 8 + frame // 4] = 255
        Image.fromarray(mask).save(tmp_path / "masks" / f"{frame:04d}.png")
    names = [f"{frame:04d}.png" for frame in range(one.frame_count)]
    files = FrameFiles(np.zeros(len(names)), np.arange(len(names)), names)
    masks = Corpus((replace(one, source=str(tmp_path / "masks")),), files=files)
    frames = learning_frames(corpus, FrameSettings(of_polyp=3, empty=0))
    pixels = open_pixels(frames, WIDTH, tmp_path / "cache", masks)
    batch = pixels.read(np.arange(len(frames)))
    known = frames.corpus.boxes.video == 1
    assert batch.has_mask.numpy().tolist() == known.tolist()
    for row in np.flatnonzero(known).tolist():
        white = (batch.masks[row] > 0).float().mean(1)
        assert int((white > 0.5).sum()) == pytest.approx(8 + frames.corpus.boxes.frame[row] // 4, abs=1)
    assert not batch.masks[np.flatnonzero(~known)].any()


def test_every_frame_is_seen_once_in_an_epoch() -> None:
    seen = np.concatenate(frame_batches(17, 4, seed=1, epoch=0))
    assert len(seen) == len(set(seen.tolist())) == 16
    assert np.concatenate(frame_batches(17, 4, seed=1, epoch=1)).tolist() != seen.tolist()
    assert len(frame_batches(3, 4, seed=1, epoch=0)[0]) == 4


def test_videos_are_validated_on_by_split_or_share(corpus: Corpus) -> None:
    assert split_videos(corpus, FrameSettings(validation_share=0), 0)[1] == []
    learnt, validated = split_videos(corpus, FrameSettings(validation_share=0.4), 0)
    assert sorted(learnt + validated) == ["video-0", "video-1", "video-2"]
    assert len(validated) == 1
    videos = [
        replace(video, split=split) for video, split in zip(corpus.videos, ("train", "val", "study"), strict=True)
    ]
    assert split_videos(replace(corpus, videos=tuple(videos)), FrameSettings(), 0) == (["video-0"], ["video-1"])


def test_what_cannot_go_well_is_one_line(trained: Trained, whole: Path, tmp_path: Path, corpus: Corpus) -> None:
    shutil.copytree(whole, tmp_path / "run")
    with pytest.raises(FileError, match=r"batch 4, not 8"):
        trained("batch=8", resume=True)
    with pytest.raises(FileError, match="another corpus"):
        trained(resume=True, corpus=corpus.select(videos=["video-0", "video-1"]))
    with pytest.raises(DataError, match="is for a detector, and an encoder is trained here"):
        load_recipe("detector")
    with pytest.raises(DataError, match=r"model\.width"):
        load_detector_recipe("detector", ["model.width=100"])


def test_a_detector_is_written_whole(whole: Path, tmp_path: Path) -> None:
    recipe = load_detector_recipe(whole / "recipe.yaml")
    network = new_network(recipe, blank=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be written"):
        keep_detector(network, tmp_path / "file", recipe, data_hash="", metrics={})
    keep_detector(network, tmp_path, recipe, data_hash="", metrics={}, calibration=(2.0, 1.0), threshold=0.25)
    assert load_detector(tmp_path).threshold == 0.25
