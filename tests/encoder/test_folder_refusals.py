import hashlib
import importlib.util
import json
import os
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from polypcount.encoder import (
    export,
    load_encoder,
    load_torch,
    save_encoder,
)
from polypcount.encoder.manifest import fingerprint_of
from polypcount.encoder.weights import read_weights
from polypcount.errors import DataError, FileError, PolypcountError
from tests.encoder.encoders import FILES, make, manifest


def rewrite(folder: Path, **changes: Any) -> None:
    (folder / "encoder.json").write_text(json.dumps({**manifest(folder), **changes}))


def model_file(folder: Path, name: str) -> Path:
    return folder / str(manifest(folder)["model"]) / name


def refused(folder: Path, message: str) -> None:
    for load in (load_encoder, load_torch):
        with pytest.raises(FileError, match=message) as caught:
            load(folder)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "polypcount-corpus"}, '"format" must be "polypcount-encoder"'),
        ({"model": "../../etc"}, "model must be a name such as model-1a2b3c4d"),
        ({"model": "model-00000000"}, "is missing: the encoder is not complete"),
        ({"files": None}, "files must be"),
        ({"files": {}}, "files: the hashes of encoder.safetensors, "),
        ({"fingerprint": 5}, "fingerprint must be"),
        ({"fingerprint": "0" * 64}, "its fingerprint is not that of its spec"),
        ({"spec": []}, "spec must be"),
        ({"spec": {}}, "spec: backbone is missing"),
        ({"recipe": "x"}, "recipe must be"),
    ],
)
def test_changed_description_is_refused(saved: Path, changes: dict[str, Any], message: str) -> None:
    rewrite(saved, **changes)
    refused(saved, message)


def test_a_training_that_is_not_finished_is_told_apart(tmp_path: Path) -> None:
    refused(tmp_path, "holds no encoder: it has no encoder.json")
    (tmp_path / "run.json").write_text("{}")
    refused(tmp_path, "holds a training that is not finished")


def test_missing_and_changed_files_are_named(original: Path, tmp_path: Path) -> None:
    for name in FILES:
        folder = Path(shutil.copytree(original, tmp_path / name))
        path = model_file(folder, name)
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        with pytest.raises(FileError, match=f"{name} was changed after saving"):
            load_encoder(folder)
        path.unlink()
        if name != FILES[0]:  # without weights for torch it is an encoder all the same, see test_bundle.py
            with pytest.raises(FileError, match=f"{name} is missing: the encoder is not complete"):
                load_encoder(folder)
    with pytest.raises(FileError, match="no torch weights"):
        load_torch(tmp_path / FILES[0])


def forge(folder: Path, name: str, content: bytes, **spec: Any) -> None:
    """Exchange a file, or the spec, by someone who knows how to compute the hashes."""
    model_file(folder, name).write_bytes(content)
    described = manifest(folder)
    hashes = {**described["files"], name: hashlib.sha256(content).hexdigest()}
    changed = {**described["spec"], **spec}
    fingerprint = fingerprint_of(changed, hashes[FILES[0]])
    rewrite(folder, files=hashes, spec=changed, fingerprint=fingerprint)


def safetensors_file(length: int | None = None, **tensor: Any) -> bytes:
    """64 bytes of a tensor behind a header that says this about it."""
    header = json.dumps({"a": {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 64], **tensor}}).encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + bytes(64)


HEADERS: dict[str, dict[str, Any]] = {
    "a length beyond the file": {"length": 1 << 32},
    "a length beyond all": {"length": 1 << 63},
    "offsets below 0": {"data_offsets": [-64, 0]},
    "offsets beyond the file": {"shape": [1 << 40], "data_offsets": [0, 1 << 42]},
    "more than there is": {"shape": [1 << 31, 1 << 31]},
    "sizes that overflow": {"shape": [1 << 63, 4]},
    "nothing, very large": {"shape": [0, 1 << 62, 1 << 62], "data_offsets": [0, 0]},
    "no type": {"dtype": "X9"},
}


@pytest.mark.parametrize("case", HEADERS)
def test_hostile_headers_of_weights_are_refused(case: str, original: Path, tmp_path: Path) -> None:
    content = safetensors_file(**HEADERS[case])
    folder = Path(shutil.copytree(original, tmp_path / "encoder"))
    forge(folder, FILES[0], content)
    (tmp_path / "a.safetensors").write_bytes(content)
    for load, path in ((load_torch, folder), (read_weights, tmp_path / "a.safetensors")):
        with pytest.raises(FileError, match=r"safetensors is damaged") as caught:
            load(path)
        assert "\n" not in str(caught.value)


def test_forged_folders_are_refused_in_one_line(original: Path, tmp_path: Path) -> None:
    weights = model_file(original, FILES[0]).read_bytes()
    cases: list[tuple[Any, str, bytes, dict[str, Any], str]] = [
        (load_encoder, "frame.onnx", b"not ONNX", {}, "frame.onnx is damaged or not an ONNX model"),
        (
            load_encoder,
            "sequence.onnx",
            model_file(original, "frame.onnx").read_bytes(),
            {},
            "sequence.onnx is the ONNX model of something else",
        ),
        (load_torch, FILES[0], b"\xff" * 40, {}, "encoder.safetensors is damaged or not a safetensors file"),
        (load_torch, FILES[0], safetensors_file(dtype="F8_E8M0", shape=[64]), {}, "damaged or not a safetensors file"),
        (load_torch, FILES[0], safetensors.torch.save({}), {}, "the spec asks for weights .* found none"),
        (load_torch, FILES[0], weights, {"ff": 65536}, r"of shape \[65536, 16\], found \[32, 16\]"),
        (load_torch, FILES[0], weights, {"layers": 3}, "layers.2.linear1.weight of shape .* found none"),
        (load_torch, FILES[0], weights, {"layers": 1}, "tensors do not belong to TrackletEncoder"),
        (load_torch, FILES[0], weights, {"heads": 3}, "d must be divisible by heads"),
        (load_torch, FILES[0], weights, {"backbone": "lite0"}, "feature_size must be 1280"),
        (load_torch, FILES[0], weights, {"backbone": "nothing"}, "must be lite0 or tiny"),
        (load_torch, FILES[0], weights, {"backbone_config": {"model_type": "x"}}, "cannot be built"),
    ]
    for number, (load, name, content, spec, message) in enumerate(cases):
        folder = Path(shutil.copytree(original, tmp_path / str(number)))
        forge(folder, name, content, **spec)
        with pytest.raises(FileError, match=message) as caught:
            load(folder)
        assert "\n" not in str(caught.value)


def test_unsuitable_places_are_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "export_encoder", None)
    encoder = make()
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "encoder.json").write_text("{}")
    for name, message in {"file": "is a file", "link": "broken link", "other": "it is not replaced"}.items():
        with pytest.raises(FileError, match=message):
            save_encoder(encoder, tmp_path / name)
    for values in ({"recipe": {"a": object()}}, {"metrics": {"loss": float("nan")}}):
        with pytest.raises(DataError, match="recipe and metrics must be plain JSON") as caught:
            save_encoder(encoder, tmp_path / "new", **values)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_export_that_computes_something_else_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "_attend", lambda attention, queries, tokens, absent: queries)
    with pytest.raises(PolypcountError, match="ONNX Runtime and torch differ by"):
        save_encoder(make(), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_backbone_that_cannot_be_exported_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = make()
    monkeypatch.setattr(type(encoder.backbone), "forward", lambda self, images: torch.linalg.eigvals(images[:, 0]).real)
    with pytest.raises(PolypcountError, match="cannot be exported to ONNX") as caught:
        save_encoder(encoder, tmp_path / "new")
    assert "\n" not in str(caught.value)


def test_missing_onnx_is_named_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PolypcountError, match="pip install onnx"):
        save_encoder(make(), tmp_path / "new")


def test_a_device_or_pipe_in_place_of_a_model_is_refused(tmp_path: Path) -> None:
    folder = save_encoder(make(), tmp_path / "new")
    for name in FILES:
        model_file(folder, name).unlink()
        model_file(folder, name).symlink_to(os.devnull)  # a pipe would wait for ever, /dev/zero would fill the memory
    refused(folder, "is not a file")
