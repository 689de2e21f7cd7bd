"""Engines against torch, int8 against fp32, and what is refused."""

import importlib.util
import logging
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from polypcount.corpus import Corpus, Tracklets
from polypcount.encoder import Encoder, embed, features, int8, load_encoder, load_torch, new_encoder, save_encoder
from polypcount.encoder.engines import ENGINES
from polypcount.errors import DataError, FileError, PolypcountError
from polypcount.importers import read_corpus
from polypcount.offline import import_offline
from polypcount.tracking import link_tracklets
from tests.conftest import DATA, Run
from tests.encoder.encoders import make
from tests.encoder.test_embed import corpus as corpus  # a fixture
from tests.encoder.test_folder import check_against_torch, inputs, outputs
from tests.encoder.test_folder_refusals import forge, model_file

SAME = ("onnx", "torch", "openvino")


def random_crops(n: int = 24) -> NDArray[np.uint8]:
    return np.random.default_rng(1).integers(0, 256, (n, 40, 40, 3), dtype=np.uint8)


def quantised(folder: Path, cache: Path, crops: NDArray[np.uint8] | None = None, about: str = "these") -> Encoder:
    """crops: None where none may be asked for."""

    def cut() -> NDArray[np.uint8]:
        assert crops is not None, "the kept model was not taken"
        return crops

    return int8.calibrated(load_encoder(folder, engine="openvino-int8", threads=1), cut, [about], cache)


def cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float64]:
    return np.array([np.dot(x, y) / np.sqrt(np.dot(x, x) * np.dot(y, y)) for x, y in zip(a, b, strict=True)])


@pytest.mark.parametrize("engine", SAME)
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
    for engine in SAME:
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
    with pytest.raises(DataError, match="engine must be one of onnx, torch, openvino, openvino-int8, found 'tpu'"):
        load_encoder(original, engine="tpu")


@pytest.mark.parametrize(
    ("engine", "package", "requirement"),
    [
        ("torch", "torch", r"polypcount\[train\]"),
        ("openvino", "openvino", r"polypcount\[fast\]"),
        ("openvino-int8", "nncf", r"polypcount\[fast\]"),
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
        "import sys; from polypcount.encoder import load_encoder, embed; import polypcount.encoder.int8\n"
        "assert not {'openvino', 'nncf', 'torch'} & set(sys.modules)\n"
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


def test_int8_is_calibrated_measured_and_kept(
    original: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    crops = random_crops()
    raw = load_encoder(original, engine="openvino-int8", threads=1)
    assert raw.needs_calibration
    with pytest.raises(DataError, match="is calibrated with crops before it encodes them"):
        raw.encode_frames(crops)
    with caplog.at_level(logging.INFO, logger="polypcount"):
        first = quantised(original, tmp_path, crops)
    exact = load_encoder(original, engine="openvino", threads=1).encode_frames(crops)
    found = first.encode_frames(crops)
    assert not np.allclose(found, exact, atol=1e-4), "it would not be int8"
    assert first.calibration is not None
    assert not first.needs_calibration
    measured = cosine(exact, found)
    assert first.calibration.crops == len(crops)
    assert first.calibration.mean_cosine == pytest.approx(measured.mean(), abs=1e-6)
    assert first.calibration.lowest_cosine == pytest.approx(measured.min(), abs=1e-6)
    assert measured.min() > 0.99
    assert f"int8: cosine to fp32 on {len(crops)} crops: mean {measured.mean():.4f}" in caplog.text
    assert capfd.readouterr().out == "", "progress bars of NNCF"

    again = quantised(original, tmp_path)
    assert again.calibration == first.calibration
    np.testing.assert_array_equal(again.encode_frames(crops), found)
    _, features, mask = inputs()
    np.testing.assert_allclose(
        again.encode_sequences(features, mask), load_encoder(original).encode_sequences(features, mask), atol=1e-4
    )


def test_damaged_or_other_int8_models_are_replaced(original: Path, tmp_path: Path) -> None:
    crops = random_crops(6)
    quantised(original, tmp_path, crops)
    (file,) = tmp_path.glob("*.npz")
    content = file.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    for damage in (b"", content[: len(content) // 2], bytes(flipped)):
        file.write_bytes(damage)
        with pytest.raises(AssertionError, match="the kept model was not taken"):
            quantised(original, tmp_path)
    quantised(original, tmp_path, crops)
    quantised(original, tmp_path)
    with pytest.raises(AssertionError, match="the kept model was not taken"):
        quantised(original, tmp_path, about="other crops")
    file.rename(tmp_path / "elsewhere.npz")
    other = quantised(original, tmp_path, crops, about="other crops")
    assert other.calibration is not None
    (tmp_path / "elsewhere.npz").rename(tmp_path / f"{other.calibration.key}.npz")
    with pytest.raises(AssertionError, match="the kept model was not taken"):
        quantised(original, tmp_path, about="other crops")


def test_the_better_of_two_ways_is_taken(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As on a processor where sums of 8 bits overflow."""
    crops = random_crops(6)
    real, tried = int8._quantise, []

    def overflowing(encoder: Encoder, exact: Any, crops: NDArray[np.uint8], bits: int) -> Any:
        tried.append(bits)
        return real(encoder, exact, crops[:1] // 100 if bits == worse else crops, bits)

    monkeypatch.setattr(int8, "_quantise", overflowing)
    for worse, limit, bits in ((8, 0.9999999, 7), (7, 0.9999999, 8), (0, -1.0, 8)):
        monkeypatch.setattr(int8, "_GOOD_COSINE", limit)
        tried.clear()
        found = quantised(original, tmp_path / str(worse), crops).calibration
        assert found is not None
        assert found.weight_bits == bits
        assert tried == ([8, 7] if worse else [8])
    assert "int8 changes the features of" in caplog.text


def test_a_model_that_cannot_be_quantised_is_one_line(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nncf = import_offline("nncf")

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no such operation\nat somewhere")

    monkeypatch.setattr(nncf, "quantize", fail)
    with pytest.raises(
        PolypcountError, match=r"cannot be brought to int8: no such operation; use the engine openvino$"
    ):
        quantised(original, tmp_path, random_crops(2))
    assert not list(tmp_path.iterdir())


def test_only_int8_is_calibrated(original: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="only the engine openvino-int8 is calibrated, found onnx"):
        int8.calibrated(load_encoder(original), random_crops, [], tmp_path)


def test_cosine_of_rows_of_zeros() -> None:
    a = np.array([[3, 4], [0, 0], [0, 0], [1, 0]], np.float32)
    b = np.array([[6, 8], [0, 0], [1, 1], [0, 2]], np.float32)
    np.testing.assert_allclose(int8._cosine(a, b), [1, 1, 0, 0])


def test_features_of_engines_do_not_mix(corpus: Corpus, original: Path, tmp_path: Path) -> None:
    tracklets = link_tracklets(corpus.boxes)
    found = {}
    for number, engine in enumerate(ENGINES):
        found[engine] = embed(corpus, tracklets, load_encoder(original, threads=1, engine=engine), cache=tmp_path)
        assert len(list(tmp_path.glob("*.npy"))) == 2 * (number + 1)
        assert found[engine].provenance.parameters["engine"] == engine
    for engine in SAME:
        np.testing.assert_allclose(found[engine].vectors, found["onnx"].vectors, atol=1e-4)
        assert found[engine].provenance.parameters["calibration"] is None
    calibration = found["openvino-int8"].provenance.parameters["calibration"]
    assert calibration["crops"] == 12 + 10 + 12, "all that are looked at, since they are few"
    assert np.abs(found["openvino-int8"].vectors - found["onnx"].vectors).max() > 1e-4
    assert cosine(found["openvino-int8"].vectors, found["onnx"].vectors).min() > 0.98
    again = embed(corpus, tracklets, load_encoder(original, threads=1, engine="openvino-int8"), cache=tmp_path)
    np.testing.assert_array_equal(again.vectors, found["openvino-int8"].vectors)
    assert len(list((tmp_path / "int8").glob("*.npz"))) == 1
    nothing = load_encoder(original, threads=1, engine="openvino-int8")
    assert len(embed(corpus, tracklets, nothing, cache=tmp_path, min_frames=1000)) == 0


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
    with pytest.raises(FileError, match=r"1\.npy has gone or was changed while it was used; run again"):
        kept.take(np.array([3, 12]))
    files[1].unlink()
    with pytest.raises(FileError, match=r"1\.npy has gone or was changed"):
        kept.take(np.array([12]))
    kept.take(np.array([3]))


def test_the_command_tells_what_int8_costs(polypcount: Run, corpus: Corpus, original: Path, tmp_path: Path) -> None:
    folder, out = corpus.save(tmp_path / "corpus"), tmp_path / "vectors.parquet"
    env = {"POLYPCOUNT_CACHE": str(tmp_path / "cache")}
    told = polypcount("embed", folder, "--encoder", original, "--out", out, "--engine", "openvino-int8", env=env)
    assert told.returncode == 0, told.stderr
    assert "22 crops, " in told.stdout
    assert "int8: cosine to fp32 on 22 crops: mean 0.9" in told.stdout
    assert told.stdout.count("\n") == 3
    assert len(list((tmp_path / "cache" / "int8").glob("*.npz"))) == 1
    wrong = polypcount("embed", folder, "--encoder", original, "--out", tmp_path / "b.npz", "--engine", "x", env=env)
    assert wrong.returncode == 2
    assert wrong.stderr == "polypcount: engine must be one of onnx, torch, openvino, openvino-int8, found 'x'\n"


def test_int8_of_real_crops_is_near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lite0 with its ImageNet weights on CVC-ClinicDB, one tracklet for each sequence."""
    folder = DATA / "cvc-clinicdb"
    if not folder.is_dir():
        pytest.skip("CVC-ClinicDB is not there")
    monkeypatch.setattr(int8, "MOST_CROPS", 60)
    real = read_corpus("cvc-clinicdb", folder)
    real = real.select(videos=[video.id for video in real.videos[:12]])
    sequences = Tracklets.gather(real.boxes, real.boxes.polyp)
    save_encoder(new_encoder("lite0"), tmp_path / "encoder")
    found = {
        engine: embed(real, sequences, load_encoder(tmp_path / "encoder", engine=engine), cache=tmp_path / "cache")
        for engine in ("openvino", "openvino-int8")
    }
    near = cosine(found["openvino"].vectors, found["openvino-int8"].vectors)
    assert len(near) == 12
    assert near.min() > 0.99, f"mean {near.mean():.4f}, lowest {near.min():.4f}"
    calibration = found["openvino-int8"].provenance.parameters["calibration"]
    assert calibration["crops"] == 60
    assert calibration["mean_cosine"] > 0.99
