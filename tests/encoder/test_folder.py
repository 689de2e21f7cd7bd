import copy
import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from polypcount.encoder import (
    Encoder,
    Preprocessing,
    TrackletEncoder,
    load_encoder,
    load_torch,
    new_encoder,
    runtime,
    save_encoder,
)
from polypcount.encoder import folder as folder_module
from polypcount.encoder.manifest import read_manifest
from polypcount.errors import DataError, FileError
from polypcount.video import CropRule
from tests.encoder.encoders import FILES, SMALL, make, manifest
from tests.encoder.test_backbones import CONFIGS, save_model


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


@pytest.mark.parametrize("settings", [{}, {"positions": True}, {"pooling": "mean"}, {"layers": 1}])
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


@pytest.mark.parametrize("kind", list(CONFIGS))
def test_transformers_backbones_are_saved_and_rebuilt_without_their_source(tmp_path: Path, kind: str) -> None:
    save_model(kind, tmp_path / "source")
    encoder = new_encoder(tmp_path / "source", **SMALL)
    save_encoder(encoder, tmp_path / "encoder")
    shutil.rmtree(tmp_path / "source")
    handle = load_encoder(tmp_path / "encoder", threads=1)
    check_against_torch(load_torch(tmp_path / "encoder"), handle)
    check_against_torch(encoder, handle)
    assert handle.spec.backbone == "source"


def test_lite0_is_saved_with_odd_image_size(tmp_path: Path) -> None:
    encoder = new_encoder("lite0", weights=False, **{**SMALL, "preprocessing": Preprocessing(CropRule(size=57))})
    save_encoder(encoder, tmp_path)
    assert load_encoder(tmp_path).encode_frames(np.zeros((2, 57, 57, 3), np.uint8)).shape == (2, 1280)


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
    assert load_encoder(save_encoder(encoder, tmp_path / "b", recipe={"other": 1})).fingerprint == first
    weights = (tmp_path / "a" / manifest(tmp_path / "a")["model"] / "encoder.safetensors").read_bytes()
    spec = json.dumps(encoder.spec.to_dict(), sort_keys=True, separators=(",", ":"))
    text = f"polypcount encoder, 1\n{spec}\n{hashlib.sha256(weights).hexdigest()}\n"
    assert first == hashlib.sha256(text.encode()).hexdigest()
    with torch.no_grad():
        next(encoder.parameters())[0, 0, 0, 0] += 1e-3
    assert load_encoder(save_encoder(encoder, tmp_path / "c")).fingerprint != first


def test_encoding_needs_no_torch(saved: Path) -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import numpy as np; from polypcount.encoder import load_encoder\n"
        f"encoder = load_encoder({str(saved)!r}, threads=1)\n"
        "features = encoder.encode_frames(np.zeros((3, 40, 40, 3), np.uint8))\n"
        "print(encoder.encode_sequences(features[None], np.ones((1, 3), bool)).shape)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("(1, 16)\n", "")


def test_batches_are_cut_without_changing_the_result(original: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = load_encoder(original, threads=1)
    whole = outputs(encoder)
    monkeypatch.setattr(runtime, "_FRAMES_AT_ONCE", 2)
    monkeypatch.setattr(runtime, "_ATTENTION_AT_ONCE", 2 * 8**2)
    for found, expected in zip(outputs(encoder), whole, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_no_crops_and_no_tracklets_give_no_rows(original: Path) -> None:
    encoder = load_encoder(original)
    assert encoder.encode_frames(np.zeros((0, 40, 40, 3), np.uint8)).shape == (0, 32)
    assert encoder.encode_sequences(np.zeros((0, 4, 32), np.float32), np.zeros((0, 4), bool)).shape == (0, 16)


def test_what_stands_in_for_absent_frames_does_not_matter(original: Path) -> None:
    encoder = load_encoder(original)
    _, features, mask = inputs()
    expected = encoder.encode_sequences(features, mask)
    features[~mask] = np.nan
    np.testing.assert_array_equal(encoder.encode_sequences(features, mask), expected)


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


def test_saving_again_replaces_and_tidies_up(saved: Path) -> None:
    before = load_encoder(saved).fingerprint
    (saved / "notes.txt").write_text("mine")
    old = saved / ".model-0a0a0a0a"
    old.mkdir()
    os.utime(old, (time.time() - 7200,) * 2)
    (saved / ".model-0b0b0b0b").mkdir()
    save_encoder(make(d=32), saved)
    after = load_encoder(saved)
    assert after.fingerprint != before
    names = {entry.name for entry in saved.iterdir()}
    assert names == {"encoder.json", "notes.txt", ".model-0b0b0b0b", after.description["model"]}


@pytest.mark.parametrize("step", ["write_bytes", "rename", "replace"])
def test_interrupted_save_leaves_the_old_encoder(saved: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    before = sorted(path.relative_to(saved) for path in saved.rglob("*"))
    content = outputs(load_encoder(saved))

    def fail(self: Path, *_: object) -> None:
        raise OSError(28, "No space left on device")

    encoder = make(d=32)
    with monkeypatch.context() as patched:
        patched.setattr(Path, step, fail)
        with pytest.raises(FileError, match="could not be saved: No space left on device"):
            save_encoder(encoder, saved)
    assert sorted(path.relative_to(saved) for path in saved.rglob("*")) == before
    np.testing.assert_array_equal(outputs(load_encoder(saved))[1], content[1])


@pytest.mark.parametrize("step", ["flush", "rename", "replace"])
def test_killed_save_leaves_the_old_or_the_new_encoder(saved: Path, step: str) -> None:
    """The process ends without any clean-up just before the third flush, the rename, or the replacement."""
    before = load_encoder(saved).fingerprint
    program = f"""
import os, sys, pathlib, torch
torch.set_num_threads(1)
from polypcount.encoder import folder, new_encoder, Preprocessing, save_encoder
from polypcount.video import CropRule
calls = []
def die(*a, **k):
    calls.append(a)
    if len(calls) == {3 if step == "flush" else 1}: os._exit(9)
if {step!r} == "flush": folder.flush = die
else: setattr(pathlib.Path, {step!r}, die)
save_encoder(new_encoder("tiny", d=8, heads=2, preprocessing=Preprocessing(CropRule(size=40))), sys.argv[1])
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program, str(saved)], timeout=60)
    assert done.returncode == 9
    assert load_encoder(saved).fingerprint == before
    new = load_encoder(save_encoder(make(d=32), saved))
    assert new.spec.d == 32


def test_encoder_replaced_while_it_is_read_is_read_again(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = make(d=32)

    def read_then_replace(folder: Path) -> dict[str, Any]:
        monkeypatch.setattr(folder_module, "read_manifest", read_manifest)
        described = read_manifest(folder)
        save_encoder(encoder, folder)
        return described

    monkeypatch.setattr(folder_module, "read_manifest", read_then_replace)
    assert load_encoder(saved).spec.d == 32


def test_specs_and_encoders_can_be_copied_to_other_processes(tmp_path: Path) -> None:
    save_model("resnet", tmp_path)
    encoder = new_encoder(tmp_path, **SMALL)
    assert copy.deepcopy(encoder).spec == encoder.spec == pickle.loads(pickle.dumps(encoder.spec))
