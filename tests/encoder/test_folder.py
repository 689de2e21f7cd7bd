import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from polypcount.encoder import (
    Encoder,
    TrackletEncoder,
    load_encoder,
    load_torch,
    new_encoder,
    runtime,
    save_encoder,
)
from polypcount.errors import DataError, FileError
from tests.encoder.encoders import FILES, SMALL, make, manifest
from tests.encoder.test_backbones import save_model


def inputs(n: int = 5, t: int = 7, f: int = 32) -> tuple[Any, Any, Any]:
    randomly = np.random.default_rng(0)
    crops = randomly.integers(0, 256, (n, 40, 40, 3), dtype=np.uint8)
    mask = randomly.random((n, t)) < 0.6
    mask[:, 1] = True
    return crops, randomly.normal(size=(n, t, f)).astype(np.float32), mask


def outputs(encoder: Encoder) -> tuple[Any, Any]:
    crops, features, mask = inputs(f=encoder.spec.feature_size)
    return encoder.encode_frames(crops), encoder.encode_sequences(features, mask)


def check_against_torch(encoder: TrackletEncoder, handle: Encoder) -> None:
    crops, features, mask = inputs(f=handle.spec.feature_size)
    mean, std = (np.array(v) for v in (handle.spec.preprocessing.mean, handle.spec.preprocessing.std))
    images = torch.from_numpy(((crops / 255 - mean) / std).transpose(0, 3, 1, 2).astype(np.float32))
    with torch.no_grad():
        frames = encoder.eval().encode_frames(images).numpy()
        vectors = encoder.encode_sequences(torch.from_numpy(features), torch.from_numpy(mask)).numpy()
    found = outputs(handle)
    np.testing.assert_allclose(found[0], frames, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found[1], vectors, rtol=1e-4, atol=1e-4)
    assert found[0].dtype == found[1].dtype == np.float32


@pytest.mark.parametrize("settings", [{"positions": True, "layers": 1}, {"pooling": "mean"}])
def test_saved_encoder_computes_the_same_through_onnx_and_torch(tmp_path: Path, settings: dict[str, Any]) -> None:
    encoder = make(**settings)
    assert save_encoder(encoder, tmp_path) == tmp_path
    assert encoder.training
    handle = load_encoder(tmp_path, threads=1)
    assert handle.spec == encoder.spec
    again = load_torch(tmp_path)
    assert not again.training
    check_against_torch(encoder, handle)
    check_against_torch(again, handle)
    torch.testing.assert_close(again.state_dict(), encoder.state_dict(), rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["resnet", "vit"])
def test_transformers_backbones_are_saved_and_rebuilt_without_their_source(tmp_path: Path, kind: str) -> None:
    save_model(kind, tmp_path / "source")
    encoder = new_encoder(tmp_path / "source", **SMALL)
    save_encoder(encoder, tmp_path / "encoder")
    shutil.rmtree(tmp_path / "source")
    handle = load_encoder(tmp_path / "encoder", threads=1)
    check_against_torch(load_torch(tmp_path / "encoder"), handle)
    check_against_torch(encoder, handle)
    assert handle.spec.backbone == "source"


def test_description_says_how_the_encoder_was_made(original: Path) -> None:
    described = load_encoder(original).description
    assert described["recipe"] == {"name": "temporal", "epochs": 3}
    assert described["metrics"] == {"loss": 0.5, "auc": None}
    assert described["data_hash"] == "ab" * 32
    assert described["format"] == "polypcount-encoder"
    assert sorted(entry.name for entry in original.iterdir()) == ["encoder.json", described["model"]]
    assert sorted(entry.name for entry in (original / described["model"]).iterdir()) == sorted(FILES)


def test_fingerprint_follows_weights_and_spec(tmp_path: Path) -> None:
    encoder = make()
    first = load_encoder(save_encoder(encoder, tmp_path / "a")).fingerprint
    weights = (tmp_path / "a" / manifest(tmp_path / "a")["model"] / "encoder.safetensors").read_bytes()
    spec = json.dumps(encoder.spec.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
    text = f"polypcount encoder, 1\n{spec}\n{hashlib.sha256(weights).hexdigest()}\n"
    assert first == hashlib.sha256(text.encode()).hexdigest()
    with torch.no_grad():
        next(encoder.parameters())[0, 0, 0, 0] += 1e-3
    assert load_encoder(save_encoder(encoder, tmp_path / "c")).fingerprint != first


def test_batches_are_cut_without_changing_the_result(original: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = load_encoder(original, threads=1)
    whole = outputs(encoder)
    monkeypatch.setattr(runtime, "_FRAMES_AT_ONCE", 2)
    monkeypatch.setattr(runtime, "_ATTENTION_AT_ONCE", 2 * 8**2)
    for found, expected in zip(outputs(encoder), whole, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_bad_arrays_are_refused(original: Path) -> None:
    encoder = load_encoder(original)
    crops, features, mask = inputs()
    for bad in (crops[:, :30], crops[0], crops.astype(np.float32), crops[..., :1]):
        with pytest.raises(DataError, match=r"crops must be uint8\[n, 40, 40, 3\]"):
            encoder.encode_frames(bad)
    for bad in (features[..., :5], features[0], features.astype(int)):
        with pytest.raises(DataError, match=r"features must be float32\[b, t, 32\]"):
            encoder.encode_sequences(bad, mask)
    for bad in (mask[:2], mask.astype(int)):
        with pytest.raises(DataError, match=r"mask must be bool\[5, 7\]"):
            encoder.encode_sequences(features, bad)
    empty = mask.copy()
    empty[3] = False
    with pytest.raises(DataError, match="tracklet 3 of the batch has no frame"):
        encoder.encode_sequences(features, empty)
    features[2, 1, 4] = np.inf
    with pytest.raises(DataError, match="features of tracklet 2, frame 1 must be finite"):
        encoder.encode_sequences(features, mask)


def test_loading_in_torch_leaves_the_random_numbers_alone(original: Path) -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    load_torch(original)
    assert torch.rand(1) == expected


def test_saving_again_replaces(saved: Path) -> None:
    (saved / "notes.txt").write_text("mine")
    after = load_encoder(save_encoder(make(d=32), saved))
    assert after.spec.d == 32
    assert {entry.name for entry in saved.iterdir()} == {"encoder.json", "notes.txt", after.description["model"]}


def test_failed_save_leaves_the_old_encoder(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(path.relative_to(saved) for path in saved.rglob("*"))

    def fail(self: Path, *_: object) -> None:
        raise OSError(28, "No space left on device")

    encoder = make(d=32)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", fail)
        with pytest.raises(FileError, match="could not be saved: No space left on device"):
            save_encoder(encoder, saved)
    assert sorted(path.relative_to(saved) for path in saved.rglob("*")) == before
    assert load_encoder(saved).spec.d == 16


def test_an_encoder_of_an_earlier_version_is_read() -> None:
    folder = Path(__file__).parents[1] / "earlier_formats" / "encoder"
    encoder = load_encoder(folder)
    assert encoder.fingerprint == "fe27ffb2f427e24c3f15ebac482def64644081b3f90178f9a3e94c8830cc5daf"
    assert np.isfinite(outputs(encoder)[1]).all()
    assert load_torch(folder).spec == encoder.spec
