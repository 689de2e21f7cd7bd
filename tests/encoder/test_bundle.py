"""The encoder that comes with the package, and how one is made."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import polypcount as pc
from polypcount.cli.main import app
from polypcount.corpus import Boxes, Corpus, Embeddings, Polyp, Video
from polypcount.encoder import (
    Encoder,
    bundle,
    bundled_folder,
    load_encoder,
    load_torch,
    make_bundle,
    save_encoder,
)
from polypcount.errors import DataError, FileError
from tests.encoder.encoders import make, manifest
from tests.encoder.test_folder import inputs


@pytest.fixture
def bundled(original: Path, tmp_path: Path) -> Path:
    return make_bundle(original, tmp_path / "bundled")


def vectors(encoder: Encoder) -> tuple[Any, Any]:
    crops, features, mask = inputs()
    return encoder.encode_frames(crops), encoder.encode_sequences(features, mask)


def files_of(folder: Path) -> list[str]:
    return sorted(re.sub("model-.*/", "model/", str(path.relative_to(folder))) for path in folder.glob("**/*.*"))


@pytest.mark.parametrize("engine", ["onnx", "openvino"])
def test_a_bundle_gives_the_vectors_of_the_original(original: Path, bundled: Path, engine: str) -> None:
    assert files_of(bundled) == ["encoder.json", "model/frame.onnx", "model/sequence.onnx"]
    first, second = (load_encoder(folder, engine=engine, threads=1) for folder in (original, bundled))
    assert second.fingerprint == first.fingerprint
    assert second.spec == first.spec
    assert second.description["metrics"] == first.description["metrics"]
    for found, expected in zip(vectors(second), vectors(first), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_torch_is_refused_in_one_line(bundled: Path) -> None:
    for load in (lambda: load_encoder(bundled, engine="torch"), lambda: load_torch(bundled)):
        with pytest.raises(FileError, match=r"no torch weights.* onnx and openvino") as caught:
            load()
        assert "\n" not in str(caught.value)


def test_files_of_a_bundle_are_checked(bundled: Path) -> None:
    model = bundled / manifest(bundled)["model"]
    content = (model / "frame.onnx").read_bytes()
    (model / "frame.onnx").write_bytes(content[:-1] + b"x")
    with pytest.raises(FileError, match=r"frame\.onnx was changed after saving"):
        load_encoder(bundled)
    (model / "frame.onnx").write_bytes(content)
    (model / "encoder.safetensors").write_bytes(b"of something else")
    with pytest.raises(FileError, match=r"encoder\.safetensors was changed after saving"):
        load_encoder(bundled)
    (model / "encoder.safetensors").unlink()
    (bundled / "encoder.json").write_text(json.dumps({**manifest(bundled), "fingerprint": "0" * 64}))
    with pytest.raises(FileError, match="its fingerprint is not that of its spec"):
        load_encoder(bundled)


def test_a_bundle_of_a_bundle_is_the_same(bundled: Path, tmp_path: Path) -> None:
    again = make_bundle(bundled, tmp_path / "again")
    assert load_encoder(again).fingerprint == load_encoder(bundled).fingerprint


def test_a_bundle_replaces_a_bundle_with_its_points(bundled: Path, tmp_path: Path) -> None:
    other = save_encoder(make(d=32), tmp_path / "other")
    (bundled / "operating-points.json").write_text("{}")
    make_bundle(other, bundled)
    assert load_encoder(bundled).spec.d == 32
    assert files_of(bundled) == ["encoder.json", "model/frame.onnx", "model/sequence.onnx"]


def test_weights_are_never_lost(saved: Path, tmp_path: Path) -> None:
    for run in (saved, save_encoder(make(d=32), tmp_path / "other")):
        with pytest.raises(FileError, match="with its torch weights, which would be lost; choose a new folder"):
            make_bundle(run, saved)
    load_torch(saved)


def test_a_large_encoder_is_not_bundled(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "LARGEST_BYTES", 1 << 10)
    with pytest.raises(DataError, match=r"may have 0 MB, found .* \(frame.onnx .* MB, sequence.onnx .* MB\)"):
        make_bundle(original, tmp_path / "large")
    assert not (tmp_path / "large").exists()


def test_load_encoder_without_a_folder(bundled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "bundled_folder", lambda: bundled)
    encoder = pc.load_encoder()
    assert (encoder.folder, encoder.fingerprint) == (bundled, manifest(bundled)["fingerprint"])
    with pytest.raises(FileError, match="no torch weights"):
        pc.load_encoder(engine="torch")


def test_the_folder_inside_the_package(bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "files", lambda name: {"polypcount.encoder": tmp_path}[name])
    assert bundled_folder() == bundled
    shutil.rmtree(bundled)
    with pytest.raises(FileError, match="no bundled encoder; give the folder") as caught:
        bundled_folder()
    assert "\n" not in str(caught.value)


def test_the_one_that_comes_with_this_installation() -> None:
    try:
        folder = bundled_folder()
    except FileError:
        pytest.skip("this installation has none")
    assert sum(path.stat().st_size for path in folder.rglob("*.*")) < bundle.LARGEST_BYTES + (1 << 20)
    assert not list(folder.rglob("*.safetensors"))
    encoder = load_encoder()
    size = encoder.spec.preprocessing.crop.size
    features = encoder.encode_frames(np.random.default_rng(0).integers(0, 256, (3, size, size, 3), np.uint8))
    assert np.isfinite(encoder.encode_sequences(features[None], np.ones((1, 3), bool))).all()


def test_embed_without_an_encoder_takes_it(bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from polypcount.video import write_video

    monkeypatch.setattr(bundle, "bundled_folder", lambda: bundled)
    monkeypatch.setenv("POLYPCOUNT_CACHE", str(tmp_path / "cache"))
    write_video(tmp_path / "a.mp4", np.random.default_rng(0).integers(0, 256, (30, 48, 64, 3), np.uint8), 25)
    videos = (Video("a", 30, 25.0, 64, 48, source=str(tmp_path / "a.mp4")),)
    boxes = Boxes(np.zeros(30), np.arange(30), np.tile([10.0, 10, 30, 30], (30, 1)), polyp=np.zeros(30))
    corpus = Corpus(videos, boxes, (Polyp("p", "a"),)).save(tmp_path / "corpus")
    out = tmp_path / "vectors.parquet"
    done = CliRunner().invoke(app, ["embed", str(corpus), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert Embeddings.load(out).encoder == manifest(bundled)["fingerprint"]


def test_loading_a_bundle_needs_no_torch(bundled: Path) -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from polypcount.encoder import load_encoder\n"
        f"print(load_encoder({str(bundled)!r}, threads=1).spec.d)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("16\n", "")
