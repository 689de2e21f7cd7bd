"""Cases of hostile.py: encoders, detectors, recipes."""

import dataclasses
import json
import os
import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.hostile_inputs import PIPE, SECRET, ZERO, Case, Cases, Content, Material, Mutated, put

from polypcount.counting.operating_points import read_operating_points
from polypcount.encoder.bundle import bundled_folder
from polypcount.encoder.folder import _torch_module, load_encoder, read_onnx
from polypcount.training.recipe_file import load_recipe, recipe_text

_TENSOR = '{"a":{"dtype":"F32","shape":SHAPE,"data_offsets":OFFSETS}}'


def _tensor(shape: str, offsets: str = "[0,4]") -> str:
    return _TENSOR.replace("SHAPE", shape).replace("OFFSETS", offsets)


_HEADERS: dict[str, str | bytes] = {
    "nested": '{"a":' * 100_000,
    "not UTF-8": b"\xff\xfe{}",
    "a shape of 2^64": _tensor("[4294967296,4294967296]"),
    "a negative shape": _tensor("[-1]"),
    "offsets that fall": _tensor("[1]", "[60,4]"),
    "offsets beyond the end": _tensor("[1000000]", "[0,4000000]"),
    "an unknown type": _tensor("[1]").replace("F32", "PICKLE"),
    "of another model": _tensor("[16]", "[0,64]"),
}


def encoders(at: Material, copies: int) -> Cases:
    """Folders of encoders, with their operating points."""
    good = at.good / "encoder"
    shutil.copytree(bundled_folder(), good)
    yield Mutated("damaged encoder.json", good, load_encoder, copies, "encoder.json")
    yield Mutated("damaged operating-points.json", good, read_operating_points, copies, "operating*.json")
    yield Mutated("damaged models", good, load_encoder, min(copies, 20), "*.onnx")
    stored, header = read_onnx(good), at.good / "header"
    header.write_text("")
    weights = {"cut off": b"", "a length of 2^63": struct.pack("<Q", 2**63)}
    for name, text in _HEADERS.items():
        data = text if isinstance(text, bytes) else text.encode()
        weights[name] = struct.pack("<Q", len(data)) + data + bytes(64)
    for name, content in weights.items():
        other = dataclasses.replace(stored, files={"encoder.safetensors": content})
        read: Callable[[Path], object] = lambda _, other=other: _torch_module(other)  # type: ignore[misc]  # noqa: E731
        yield Mutated(f"weights: {name}", header, read, 1)

    def copied(file: str, content: Content) -> Path:
        folder = at.fresh()
        shutil.copytree(good, folder / "encoder")
        put(next((folder / "encoder").rglob(file)), content)
        return folder

    contents: dict[str, Content] = {"a pipe": PIPE, "/dev/zero": ZERO, "a text": at.outside / "secret.txt"}
    folders = {f"frame.onnx is {name}": copied("frame.onnx", content) for name, content in contents.items()}
    manifest = (good / "encoder.json").read_text().replace(stored.home.name, "../../../outside")
    folders["models outside"] = copied("encoder.json", manifest)
    text = (good / "operating-points.json").read_text()
    points = json.loads(text)
    changes: dict[str, dict[str, Any]] = {
        "scope": {"scope": {"tracklets": [5, -5], "seconds": [1e308, -1]}},
        "scope of texts": {"scope": {"tracklets": "all", "seconds": None}},
        "a million values": {"values": [0.5] * 10**6},
        "method": {"method": "__import__('os')"},
        "parameters": {"parameters": {"threshold": "NaN", "x": 1e308}},
        "no parameters": {"parameters": {}},
        "no values": {"values": []},
    }
    for name, change in changes.items():
        point = {**points["points"][points["default"]], **change}
        changed = {**points, "points": {**points["points"], points["default"]: point}}
        folders[f"operating point: {name}"] = copied("operating-points.json", json.dumps(changed))
    for number in ("NaN", "1e999", "-1", "1" + "0" * 400, "[]"):
        changed_text = re.sub(r'("threshold": )[0-9.e-]+', rf"\g<1>{number}", text)
        folders[f"threshold {number[:5]}"] = copied("operating-points.json", changed_text)
    for name, folder in folders.items():
        yield at.count(name, "case.mp4", "--encoder", "encoder", folder=folder)
    for path in ("/", "/dev/null", "case.mp4", "no", "/proc"):
        yield at.count(f"encoder {path!r}", "case.mp4", "--encoder", path)


def detectors(at: Material, copies: int) -> Cases:
    """ONNX files as detectors."""
    from onnx import TensorProto, external_data_helper, helper, numpy_helper
    from tests.detection.onnx_detectors import METADATA, constant, finder

    from polypcount.detection import load_detector

    good, meta = finder(at.good / "finder.onnx", "yolo-classes", (64, 64)), METADATA["yolo-classes"]
    yield Mutated("damaged detector", good, load_detector, copies)

    def model(nodes: list[Any], outputs: list[Any], tensors: Any = (), shape: Any = (1, 3, 64, 64)) -> bytes:
        image = helper.make_tensor_value_info("images", TensorProto.FLOAT, shape)
        graph = helper.make_graph(nodes, "g", [image], outputs, list(tensors))
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        helper.set_model_props(made, meta)
        return bytes(made.SerializeToString())

    def filled(sides: list[int], kind: int = TensorProto.FLOAT, **more: Any) -> bytes:
        shape = helper.make_node("Constant", [], ["s"], value_ints=sides)
        fill = helper.make_node("ConstantOfShape", ["s"], ["output0"], value=helper.make_tensor("zero", kind, [1], [0]))
        return model([shape, fill], [helper.make_tensor_value_info("output0", kind, ["a"] * len(sides))], **more)

    def external(location: str) -> bytes:
        away = numpy_helper.from_array(np.zeros((1, 5, 84), np.float32), "w")
        external_data_helper.set_external_data(away, location)
        away.ClearField("raw_data")
        out = helper.make_tensor_value_info("output0", TensorProto.FLOAT, [1, 5, 84])
        return model([helper.make_node("Identity", ["w"], ["output0"])], [out], [away])

    words = helper.make_node("Constant", [], ["output0"], value_strings=[SECRET.encode()])
    contents = {
        "empty": b"",
        "text": SECRET.encode(),
        "no outputs": model([], []),
        "strings": model([words], [helper.make_tensor_value_info("output0", TensorProto.STRING, [1])]),
        "4 GB output": filled([1, 5, 200_000_000]),
        "1 TB output": filled([1, 5, 50_000_000_000]),
        "40 MB output": filled([1, 5, 2_000_000]),
        "rank 1": filled([5]),
        "rank 7": filled([1] * 7),
        "no boxes": filled([1, 5, 0]),
        "integers": filled([1, 5, 84], TensorProto.INT64),
        "weights outside": external("../../outside/secret.txt"),
        "weights outside, absolute": external(f"{at.outside}/secret.txt"),
        "weights missing": external("weights.bin"),
        "weights are a link": external("link.bin"),
        "weights are a pipe": external("pipe.bin"),
        "input of 60000 pixels": filled([1, 5, 84], shape=(1, 3, 60_000, 60_000)),
        "input of any size": filled([1, 5, 84], shape=("a", "b", "c", "d")),
    }
    for value in (np.nan, np.inf, -5.0, 93.0, 0.99):
        constant(at.good / "constant.onnx", {"output0": np.full((1, 5, 84), value, np.float32)}, metadata=meta)
        contents[f"all values {value}"] = (at.good / "constant.onnx").read_bytes()
    for key, text in {
        "names": "__import__('os').system('touch hacked')",
        "names nested": "{" * 9000,
        "stride": "0",
        "stride long": "9" * 50,
        "task": "\x1b[31m",
        "imgsz": "[1e9, -1]",
    }.items():
        finder(at.good / "named.onnx", "yolo-classes", (64, 64), metadata={**meta, key.split()[0]: text})
        contents[f"metadata {key}"] = (at.good / "named.onnx").read_bytes()
    for name, content in contents.items():
        files = {"d.onnx": content, "link.bin": at.outside / "secret.txt", "pipe.bin": PIPE}
        yield at.count(name, "case.mp4", "--detector", "d.onnx", files=files)
    settings = [
        "size=0x0",
        "size=99999x99999",
        "confidence=nan",
        "confidence=-1",
        "iou=2",
        "x=1",
        "=",
        "classes=",
        "family=x",
        "size=64x64",
    ]
    for setting in settings:
        files = {"d.onnx": good.read_bytes()}
        arguments = ["case.mp4", "--detector", "d.onnx", "--detector-set", setting]
        yield at.count(f"setting {setting!r}", *arguments, files=files)
    for path in ("/dev/zero", "/", "pipe", "case.mp4"):
        yield at.count(f"detector {path!r}", "case.mp4", "--detector", path, files={"pipe": PIPE})


def recipes(at: Material, copies: int) -> Cases:
    """Recipes for training, as YAML; all of them must be refused before any work."""
    good = at.good / "small.yaml"
    good.write_text(recipe_text(load_recipe("small")))
    yield Mutated("damaged recipe", good, load_recipe, copies)
    laughs = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    texts = {
        "laughs": f"a0: &a0 [x, x]\n{laughs}",
        "merged aliases": "a: &a {x: 1}\nb: {<<: *a}\n",
        "python object": "name: !!python/object/apply:os.system ['touch hacked']\n",
        "python name": "!!python/name:os.system x\n",
        "nested": "[" * 30_000,
        "nested maps": "{a: " * 10_000,
        "10 MB": "a: [" + "[" * 10_000_000,
        "binary": "name: !!binary 'R0lG'\n",
        "set": "!!set {a, b}\n",
        "date": "name: 2026-99-99\n",
        "base of itself": "base: recipe.yaml\n",
        "base outside": f"base: {at.outside}/secret.txt\n",
        "base /dev/zero": "base: /dev/zero\n",
        "list": "- 1\n- 2\n",
        "huge": "base: small\nepochs: 1e400\nsampler: {polyps: 99999999999999}\n",
        "types": "base: small\nmodel: 3\noptimizer: []\nloss: {temperature: hot}\n",
        "NaN": "base: small\noptimizer: {lr: .nan}\n",
        "NUL": "base: small\n\0",
        "empty": "",
        "documents": "a: 1\n---\nb: 2\n",
        "escape": 'base: small\n"\\x1b[31mred": 1\n',
    }
    train = ["train", os.fspath(at.scenes), "--out", "out", "--recipe"]
    for name, text in texts.items():
        yield Case(name, at.fresh({"recipe.yaml": text}), [*train, "recipe.yaml"], codes=(2,))
    changes = [
        "=",
        "a=b",
        "optimizer.lr=nan",
        "optimizer.lr=!!python/name:os.system",
        "optimizer.lr=[[[",
        "x.y.z=1",
        "optimizer=1",
    ]
    for change in (*changes, "name=\x1b[31m", "optimizer.lr=&a [*a]"):
        yield Case(f"change {change!r}", at.fresh(), [*train, "small", "--set", change], codes=(2,))
