"""A frozen backbone sees each frame once, and what is learnt is what would be learnt from pixels."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from polypcount.corpus import Corpus
from polypcount.encoder import Encoder, load_encoder, save_encoder
from polypcount.encoder.backbones import FrameBackbone
from polypcount.encoder.engine_onnx import open_frames
from polypcount.encoder.engines import FrameModel
from polypcount.errors import DataError, FileError, PolypcountError
from polypcount.training import Machine, Moment, frozen, load_recipe, train, train_encoder
from polypcount.training.batches import read_clips
from polypcount.training.data import open_crops, training_data
from polypcount.training.frozen import FrameFeatures, features_never_change, open_both_features, open_features
from polypcount.training.learner import Learner, encode_clips
from polypcount.training.processes import new_fabric
from polypcount.training.start import new_model
from polypcount.video import CropStore
from polypcount.video.store_build import build_store
from tests.training.corpora import drawn_corpus, equal, rows, tiny, weights

Trained = Callable[..., Encoder]
FROZEN = "optimizer.backbone_factor=0"


@pytest.fixture
def trained(drawn: Corpus, tmp_path: Path) -> Trained:
    def run(*changes: str, out: str = "run", recipe: str = "temporal", **options: Any) -> Encoder:
        chosen = () if options.get("resume") else (*tiny(recipe), FROZEN, *changes)
        given = None if options.get("resume") else recipe
        return train(drawn, given, tmp_path / out, changes=chosen, cache=tmp_path / "cache", log_to=[], **options)

    return run


@pytest.fixture
def from_pixels(trained: Trained, monkeypatch: pytest.MonkeyPatch) -> Trained:
    """The same training with the backbone in every step."""

    def run(*changes: str, **options: Any) -> Encoder:
        with monkeypatch.context() as patch:
            patch.setattr(train_encoder, "features_never_change", lambda recipe: False)
            return trained(*changes, **options)

    return run


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many frames the backbone was given, each time that features were computed."""
    calls: list[int] = []

    def counted(*given: Any) -> FrameModel:
        run = open_frames(*given)

        def frames(crops: NDArray[np.uint8]) -> NDArray[np.float32]:
            calls.append(len(crops))
            return run(crops)

        return frames

    monkeypatch.setattr(frozen, "open_frames", counted)
    return calls


@pytest.fixture
def stepped() -> Iterator[list[int]]:
    """How many frames torch's backbone was given: for exports and, were it not frozen, for every step."""
    calls: list[int] = []

    def count(module: nn.Module, given: Any) -> None:
        if isinstance(module, FrameBackbone):
            calls.append(len(given[0]))

    hook = nn.modules.module.register_module_forward_pre_hook(count)
    yield calls
    hook.remove()


def a_learner(*changes: str) -> Learner:
    recipe = load_recipe("temporal", [*tiny("temporal"), FROZEN, *changes])
    fabric = new_fabric(Machine("cpu"))
    fabric.launch()
    return Learner(fabric, new_model(recipe), recipe, None)


@pytest.fixture
def store(drawn: Corpus, tmp_path: Path) -> CropStore:
    recipe = load_recipe("temporal", tiny("temporal"))
    return open_crops(training_data(drawn, recipe)[0], recipe.crop, tmp_path)


def kept(folder: Path) -> list[Path]:
    return sorted(folder.rglob("features-*"))


def unfinished(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if path.is_file()]


def test_only_a_frozen_backbone_and_untouched_pixels_keep_their_features() -> None:
    assert features_never_change(load_recipe("temporal", [FROZEN]))
    assert not features_never_change(load_recipe("temporal"))
    assert not features_never_change(load_recipe("temporal", [FROZEN, "augmentation.flip=true"]))


@pytest.mark.parametrize(("recipe", "machine"), [("temporal", Machine(views_at_once=5)), ("sfe", Machine())])
def test_what_is_learnt_is_what_is_learnt_from_pixels(
    recipe: str, machine: Machine, trained: Trained, from_pixels: Trained, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"recipe": recipe, "machine": machine}
    start = new_model(load_recipe(recipe, [*tiny(recipe), FROZEN])).state_dict()
    from_pixels("epochs=2", out="pixels", **settings)
    assert not kept(tmp_path)
    trained("epochs=2", out="features", **settings)
    assert len(kept(tmp_path)) == 2, "of both sides"
    mine, theirs = weights(tmp_path / "features"), weights(tmp_path / "pixels")
    assert mine.keys() == theirs.keys()
    for name in mine:
        # Adam makes steps of lr whatever the size of a gradient, so one that is nearly 0 shows what rounding did to it.
        assert torch.allclose(mine[name], theirs[name], rtol=1e-4, atol=1e-5), name
    moved = [float((mine[f"model.{name}"] - values).abs().max()) for name, values in start.items()]
    assert max(moved) > 1e-3, "and it has learnt"
    epochs = [rows(tmp_path / out / "epochs.csv") for out in ("features", "pixels")]
    for one, other in zip(*epochs, strict=True):
        assert {name: float(value) for name, value in one.items()} == pytest.approx(
            {name: float(value) for name, value in other.items()}, abs=1e-4
        )


def test_the_backbone_sees_each_frame_once_for_all_runs(
    trained: Trained, seen: list[int], stepped: list[int], tmp_path: Path
) -> None:
    counts: list[int] = []
    in_torch: set[int] = set()

    def watch(moment: Moment) -> None:
        counts.append(sum(seen))
        in_torch.add(sum(stepped))

    told: list[tuple[int, int]] = []
    trained("epochs=2", out="first", watch=watch, progress=lambda done, total: told.append((done, total)))
    frames = [len(np.load(path, allow_pickle=False)) for path in kept(tmp_path)]
    assert counts == [sum(frames)] * 6
    assert len(in_torch) == 1, "no step runs the backbone"
    assert sorted(frames) == [136, 408]
    assert [pair for pair in told if pair[1] == 408][-3:] == [(320, 408), (384, 408), (408, 408)]
    assert told[-4:] == [(0, 136), (64, 136), (128, 136), (136, 136)]
    before = {path: path.stat().st_mtime_ns for path in kept(tmp_path)}
    counts.clear()
    seen.clear()
    trained("epochs=2", "optimizer.lr=1e-4", "model.d=8", "sampler.polyps=2", out="second", watch=watch)
    assert counts == [0] * 6, "another head on the same frames"
    assert {path: path.stat().st_mtime_ns for path in kept(tmp_path)} == before


def test_a_resumed_run_ends_with_the_same_weights(trained: Trained, seen: list[int], tmp_path: Path) -> None:
    class Crash(Exception):
        pass

    def watch(moment: Moment) -> None:
        if (moment.epoch, moment.step) == (1, 1):
            raise Crash

    untrained = new_model(load_recipe("temporal", [*tiny("temporal"), "seed=7"]))
    start = f"model.start={save_encoder(untrained, tmp_path / 'start')}"  # on resuming, only the checkpoint has it
    whole = trained("epochs=2", start, out="whole")
    with pytest.raises(Crash):
        trained("epochs=2", start, out="broken", watch=watch)
    assert len(kept(tmp_path)) == 2
    seen.clear()
    counts: list[int] = []
    again = trained(out="broken", resume=True, watch=lambda moment: counts.append(sum(seen)))
    assert set(counts) == {0}, "the weights of the checkpoint are those the features were computed with"
    assert again.fingerprint == whole.fingerprint
    assert equal(tmp_path / "whole", tmp_path / "broken")


def test_interrupted_it_leaves_no_half_file_and_can_be_resumed(trained: Trained, tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if unfinished(tmp_path / "cache") and done >= 64:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(progress=interrupt)
    assert list(tmp_path.rglob("crops.arrow"))
    assert not kept(tmp_path)
    assert not unfinished(tmp_path / "cache")
    trained(resume=True)
    trained(out="whole")
    assert equal(tmp_path / "run", tmp_path / "whole")


def test_features_are_those_of_the_crops_by_box_row(store: CropStore) -> None:
    learner = a_learner()
    features = open_features(learner, store, readers=2)
    assert np.array_equal(features.rows, store.rows)
    chosen = store.rows[[70, 3, 3, -1, 0]]
    about = learner.encoder.spec.preprocessing
    found = features.crops(chosen)
    assert found.dtype == np.float32
    assert (found.shape, found.flags.writeable) == ((5, 32), True)
    for row, values in zip(chosen, found, strict=True):
        image = (store.crops([row])[0] / 255 - np.array(about.mean)) / np.array(about.std)
        with torch.no_grad():
            expected = learner.encoder.backbone(torch.tensor(image.transpose(2, 0, 1)[None], dtype=torch.float32))
        assert np.allclose(values, expected[0].numpy(), atol=1e-5)
    assert found.std(0).max() > 1e-3
    for row in (-1, 10**9):
        with pytest.raises(DataError, match=f"there are no features of box row {row}"):
            features.crops(np.array([chosen[0], row]))
    assert features.crops(chosen[:0]).shape == (0, 32)
    none = FrameFeatures(np.empty((0, 32), np.float32), np.empty(0, np.int64))
    assert none.crops(chosen[:0]).shape == (0, 32)
    with pytest.raises(DataError, match=f"there are no features of box row {chosen[0]}"):
        none.crops(chosen)


def test_clips_of_features_are_encoded_as_clips_of_pixels(store: CropStore) -> None:
    learner = a_learner()
    learner.encoder.eval()
    features = open_features(learner, store, readers=1)
    views = [store.rows[:5], store.rows[[9]], store.rows[20:23]]
    pixels, numbers = read_clips(store, views), read_clips(features, views)
    assert (pixels.are_features, numbers.are_features) == (False, True)
    assert numbers.images.shape == (3, 5, 32)
    assert torch.equal(numbers.mask, pixels.mask)
    assert not numbers.images[~numbers.mask].any()
    assert torch.equal(learner.images(numbers, torch.Generator()), numbers.images)
    with torch.no_grad():
        one, other = (encode_clips(learner.encoder, learner.images(c, None), c.mask) for c in (pixels, numbers))
    assert torch.allclose(one, other, atol=1e-5)


def test_a_damaged_file_is_computed_again(store: CropStore, seen: list[int]) -> None:
    learner = a_learner()
    whole = open_features(learner, store, readers=1).crops(store.rows)
    (file,) = kept(store.path.parent)
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    seen.clear()
    assert np.array_equal(open_features(learner, store, readers=1).crops(store.rows), whole)
    assert sum(seen) == len(store)
    assert file.read_bytes() == content
    open_features(learner, store, readers=1)
    assert sum(seen) == len(store), "and not once more"


def test_whatever_decides_the_features_has_a_file_of_its_own(store: CropStore) -> None:
    folder = store.path.parent
    for count, changes in enumerate(((), ("seed=1",), ("model.normalise=none",)), 1):
        open_features(a_learner(*changes), store, readers=1)
        assert len(kept(folder)) == count
    changed = a_learner()
    changed.encoder.backbone.network[1].running_mean.fill_(0.5)  # type: ignore[index]
    open_features(changed, store, readers=1)
    assert len(kept(folder)) == 4, "buffers count as well"
    open_features(a_learner("model.d=8", "optimizer.lr=1"), store, readers=1)
    assert len(kept(folder)) == 4, "what comes after the backbone does not"


def test_other_pixels_have_other_features(tmp_path: Path) -> None:
    corpus, learner = drawn_corpus(tmp_path / "frames", videos=1), a_learner()
    found = []
    for _ in range(2):
        store = build_store(corpus, np.arange(8), learner.recipe.crop, tmp_path / "crops", processes=1)
        found.append(open_features(learner, store, readers=1).crops(store.rows))
        frames = sorted((tmp_path / "frames" / "video-0").iterdir())
        shutil.copy(frames[-1], frames[3])
    assert np.flatnonzero((found[0] != found[1]).any(1)).tolist() == [3]


def test_features_that_cannot_be_are_one_line(store: CropStore, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = a_learner()
    with monkeypatch.context() as patch:
        patch.setattr(store, "path", store.path / "below a file" / "crops.arrow")
        with pytest.raises(FileError, match=r"features-.* cannot be written: Not a directory; POLYPCOUNT_CACHE moves"):
            open_features(learner, store, readers=1)
    with torch.no_grad():
        next(learner.encoder.backbone.parameters()).fill_(float("nan"))
    with pytest.raises(PolypcountError, match="backbone tiny: ONNX Runtime and torch differ by nan"):
        open_features(learner, store, readers=1)
    assert not kept(store.path.parent)
    assert not unfinished(store.path.parent)


def test_other_processes_of_a_node_wait_for_the_first(
    store: CropStore, seen: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, first = a_learner(), a_learner()
    met: list[int] = []

    def barrier() -> None:
        open_features(first, store, readers=1)
        met.append(sum(seen))

    monkeypatch.setattr(frozen, "is_first_of_node", lambda: False)
    monkeypatch.setattr(waiting.fabric, "barrier", barrier)
    learnt, judged = open_both_features(waiting, store, None, readers=1)
    assert met == [len(store)]
    assert sum(seen) == len(store)
    assert len(learnt.rows) == len(store)
    assert judged is None


def test_the_saved_encoder_gives_from_pixels_what_was_learnt_from_features(
    trained: Trained, drawn: Corpus, tmp_path: Path
) -> None:
    trained("validation.monitor=last")
    learner = a_learner("validation.monitor=last")
    found = weights(tmp_path / "run")
    state = {name.removeprefix("model."): values for name, values in found.items() if name.startswith("model.")}
    learner.encoder.load_state_dict(state)
    learner.encoder.eval()
    store = open_crops(training_data(drawn, learner.recipe)[0], learner.recipe.crop, tmp_path / "cache")
    before = kept(tmp_path)
    features = open_features(learner, store, readers=1)
    assert kept(tmp_path) == before, "those of the run"
    clips = read_clips(features, [store.rows[:6], store.rows[40:46]])
    with torch.no_grad():
        expected = encode_clips(learner.encoder, clips.images, clips.mask).numpy()
    encoder = load_encoder(tmp_path / "run")
    frames = encoder.encode_frames(store.crops(np.concatenate([store.rows[:6], store.rows[40:46]])))
    assert np.allclose(frames.reshape(2, 6, -1), clips.images.numpy(), atol=1e-4)
    vectors = encoder.encode_sequences(frames.reshape(2, 6, -1), np.ones((2, 6), bool))
    assert np.allclose(vectors, expected, atol=1e-4)
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3
