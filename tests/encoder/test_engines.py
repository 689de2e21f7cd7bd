"""Engines against torch, which one is taken, and what is refused."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from polypcount.corpus import Corpus
from polypcount.encoder import (
    embed,
    engine_onnx,
    engine_openvino,
    features,
    folder,
    load_encoder,
    load_torch,
    save_encoder,
)
from polypcount.encoder.engines import ENGINES
from polypcount.errors import DataError, FileError, PolypcountError
from polypcount.offline import import_offline
from polypcount.tracking import link_tracklets
from tests.encoder.encoders import make
from tests.encoder.test_embed import corpus as corpus  # a fixture
from tests.encoder.test_folder import check_against_torch, inputs, outputs
from tests.encoder.test_folder_refusals import forge, model_file


def random_crops(n: int = 24) -> NDArray[np.uint8]:
    return np.random.default_rng(1).integers(0, 256, (n, 40, 40, 3), dtype=np.uint8)


@pytest.mark.parametrize("engine", ENGINES[1:])
@pytest.mark.parametrize("settings", [{}, {"positions": True}, {"pooling": "mean"}])
def test_engines_agree_with_torch(tmp_path: Path, engine: str, settings: dict[str, Any]) -> None:
    save_encoder(make(**settings), tmp_path)
    encoder = load_encoder(tmp_path, threads=1, engine=engine)
    assert encoder.engine == engine
    check_against_torch(load_torch(tmp_path), encoder)
    _, features, mask = inputs()
    expected = encoder.encode_sequences(features, mask)
    features[~mask] = np.nan
    np.testing.assert_array_equal(encoder.encode_sequences(features, mask), expected)
    assert encoder.encode_frames(random_crops(0)).shape == (0, 32)
    crops = random_crops(19)  # for OpenVINO more than one request, of which the last is not full
    alone = np.concatenate([encoder.encode_frames(crop[None]) for crop in crops])
    np.testing.assert_allclose(encoder.encode_frames(crops), alone, rtol=1e-5, atol=1e-5)


def test_results_are_not_overwritten_by_the_next_call(original: Path) -> None:
    for engine in ENGINES[1:]:
        encoder = load_encoder(original, threads=1, engine=engine)
        first, vectors = outputs(encoder)
        kept = first.copy(), vectors.copy()
        encoder.encode_frames(random_crops(5))
        encoder.encode_sequences(np.ones((5, 7, 32), np.float32), np.ones((5, 7), bool))
        np.testing.assert_array_equal(first, kept[0])
        np.testing.assert_array_equal(vectors, kept[1])


def test_torch_threads_are_put_back(original: Path) -> None:
    import torch

    encoder = load_encoder(original, threads=2, engine="torch")
    encoder.encode_frames(random_crops(2))
    assert torch.get_num_threads() == 1, "as the fixture has set it"


def test_cuda_is_taken_where_onnxruntime_has_it(original: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnxruntime = import_offline("onnxruntime")

    from polypcount.encoder.engine_onnx import best_providers

    assert best_providers()[-1] == "CPUExecutionProvider"
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    assert [entry if isinstance(entry, str) else entry[0] for entry in best_providers()] == [
        "CUDAExecutionProvider",
        "CPUExecutionProvider",
    ]


def test_unknown_engine_is_refused(original: Path) -> None:
    with pytest.raises(DataError, match="engine must be one of auto, onnx, openvino, torch, found 'tpu'"):
        load_encoder(original, engine="tpu")


@pytest.mark.parametrize(
    ("engine", "package", "requirement"),
    [
        ("torch", "torch", r"polypcount\[train\]"),
        ("openvino", "openvino", r"polypcount\[fast\]"),
    ],
)
def test_missing_package_is_one_line(
    original: Path, monkeypatch: pytest.MonkeyPatch, engine: str, package: str, requirement: str
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == package else real(name, *a))
    with pytest.raises(PolypcountError, match=rf"needs the package {package}, .*pip install '{requirement}'") as caught:
        load_encoder(original, engine=engine)
    assert "\n" not in str(caught.value)
    load_encoder(original)


def test_openvino_sends_nothing_and_is_not_imported_unasked(original: Path) -> None:
    program = (
        "import sys; from polypcount.encoder import load_encoder, embed\n"
        "assert not {'openvino', 'torch'} & set(sys.modules)\n"
        f"load_encoder({str(original)!r}, engine='openvino', threads=1)\n"
        "assert 'openvino' in sys.modules and 'torch' not in sys.modules\n"
        "assert not [name for name in sys.modules if name.startswith('openvino_telemetry')]"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_package_that_was_imported_before_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino_telemetry", sys)
    import_offline("openvino")
    assert sys.modules["openvino_telemetry"] is sys


@pytest.mark.parametrize("engine", ["onnx", "openvino"])
def test_models_of_another_shape_are_refused(original: Path, tmp_path: Path, engine: str) -> None:
    wide = save_encoder(make(d=32), tmp_path / "wide")
    cases = [
        ("sequence.onnx", model_file(wide, "sequence.onnx").read_bytes(), {}, r"vectors must .* \[b, 16\] .* 32\]"),
        (
            "frame.onnx",
            model_file(original, "frame.onnx").read_bytes(),
            {"feature_size": 31},
            r"features must .*, 31\]",
        ),
        ("frame.onnx", b"not ONNX", {}, "frame.onnx is damaged or not an ONNX model"),
        ("frame.onnx", model_file(original, "sequence.onnx").read_bytes(), {}, "is the ONNX model of something else"),
    ]
    for number, (name, content, spec, message) in enumerate(cases):
        folder = Path(shutil.copytree(original, tmp_path / str(number)))
        forge(folder, name, content, **spec)
        with pytest.raises(FileError, match=message) as caught:
            load_encoder(folder, engine=engine)
        assert "\n" not in str(caught.value)


def test_a_shape_that_shows_only_in_the_result_is_refused(original: Path) -> None:
    import dataclasses

    encoder = load_encoder(original)
    narrow = dataclasses.replace(
        encoder,
        frame_model=lambda crops: np.zeros((len(crops), 1), np.float32),
        sequence_model=lambda features, mask: np.zeros((len(mask), 1), np.float32),
    )
    for call in (lambda: narrow.encode_frames(random_crops(3)), lambda: outputs(narrow)):
        with pytest.raises(FileError, match=r"array of shape \[., 1\], and the spec asks for \[., 32\]"):
            call()


def test_features_of_engines_do_not_mix(corpus: Corpus, original: Path, tmp_path: Path) -> None:
    tracklets = link_tracklets(corpus.boxes)
    found = {}
    for number, engine in enumerate(ENGINES[1:]):
        found[engine] = embed(corpus, tracklets, load_encoder(original, threads=1, engine=engine), cache=tmp_path)
        assert len(list(tmp_path.glob("*.npy"))) == 2 * (number + 1)
        assert found[engine].provenance.parameters["engine"] == engine
        np.testing.assert_allclose(found[engine].vectors, found["onnx"].vectors, atol=1e-4)


def test_features_are_taken_from_the_right_piece(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(25, 4)).astype(np.float32)
    files = tuple(tmp_path / f"{piece}.npy" for piece in range(3))
    starts = np.array([0, 10, 20, 25])
    for piece, file in enumerate(files):
        np.save(file, values[starts[piece] : starts[piece + 1]])
    kept = features.KeptFeatures(files, starts, 4)
    for rows in ([0, 9, 10, 19, 20, 24], [24, 3, 12], [5], []):
        np.testing.assert_array_equal(kept.take(np.array(rows, int)), values[rows])
    np.save(files[1], values)
    with pytest.raises(FileError, match=r"1\.npy was removed or changed while it was used"):
        kept.take(np.array([3, 12]))
    files[1].unlink()
    with pytest.raises(FileError, match=r"1\.npy was removed or changed"):
        kept.take(np.array([12]))
    kept.take(np.array([3]))


@pytest.fixture
def free_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POLYPCOUNT_ENGINE")


@pytest.mark.usefixtures("free_choice")
def test_openvino_is_taken_where_it_gives_the_vectors_of_onnx(original: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = load_encoder(original, threads=1)
    assert encoder.engine == "openvino"
    real = folder._trial
    other = {"onnx": 0.0, "openvino": 1.1e-4}
    monkeypatch.setattr(folder, "_trial", lambda encoder: real(encoder) + other[encoder.engine])
    assert load_encoder(original, threads=1).engine == "onnx"
    monkeypatch.setattr(folder, "_trial", lambda encoder: np.array([np.nan]))
    assert load_encoder(original, threads=1).engine == "onnx"


@pytest.mark.usefixtures("free_choice")
def test_onnx_is_taken_where_openvino_cannot_be(original: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no such operation")

    with monkeypatch.context() as patched:
        patched.setattr(engine_openvino, "_compiled", fail)
        assert load_encoder(original, threads=1).engine == "onnx"
    open_session = engine_onnx.open_session
    with monkeypatch.context() as patched:
        patched.setattr(engine_onnx, "best_providers", lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"])
        patched.setattr(engine_onnx, "open_session", lambda *arguments: open_session(*arguments[:4]))
        assert load_encoder(original, threads=1).engine == "onnx", "a GPU is faster"
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    assert load_encoder(original, threads=1).engine == "onnx"


def test_the_environment_decides_where_the_caller_does_not(original: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYPCOUNT_ENGINE", "torch")
    assert load_encoder(original).engine == "torch"
    assert load_encoder(original, engine="onnx").engine == "onnx"
    monkeypatch.setenv("POLYPCOUNT_ENGINE", "tpu")
    with pytest.raises(DataError, match="found 'tpu'"):
        load_encoder(original)
