"""Loading a detector by name, folder or file; what `detector.json` says; and its engines."""

import importlib.util
import json
import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from onnx import parser

from polypcount.detection import Detector, DetectorSettings, detector_file, load_detector
from polypcount.errors import DataErrors, FileError, PolypcountError
from polypcount.video import FrameView
from tests.detection.onnx_detectors import FORMS, finder, save, with_square

FRAME = with_square(320, 256, (40, 60, 120, 200))
FORMAT = "polypcount-detector 1"
ENGINES: tuple[Literal["onnx", "openvino"], ...] = ("onnx", "openvino")
RULE = {"weights": [1.0, 2.0, 0.5, 0.25], "intercept": -2.0, "threshold": 0.4}


def trained(folder: Path, values: Any = None, form: str = "yolo-classes") -> Path:
    """A folder with a detector and, where values are given, its `detector.json`."""
    folder.mkdir(exist_ok=True)
    finder(folder / "detector.onnx", form)
    if values is not None:
        text = values if isinstance(values, str) else json.dumps(values)
        (folder / "detector.json").write_text(text)
    return folder


def test_the_bundled_detector() -> None:
    detector = load_detector("bundled")
    assert detector.name == "bundled"
    assert (detector.size, detector.names, detector.reading.form) == ((320, 256), {0: "polyp"}, "yolo-classes")
    assert 0 < detector.threshold < 1
    assert detector.path.stat().st_size < 13_000_000
    xyxy, score = detector.detect(np.zeros((1080, 1280, 3), np.uint8))
    assert (score >= detector.threshold).sum() == 0, "black shows no polyp"
    assert xyxy.shape == (len(score), 4)
    assert json.loads(json.dumps(detector.description))["name"] == "bundled"


def test_an_installation_without_the_bundled_detector(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(detector_file, "files", lambda _: tmp_path)
    with pytest.raises(FileError, match="no bundled detector; give the file of a trained one, or install"):
        load_detector("bundled")


def test_a_folder_and_what_is_beside_the_model(tmp_path: Path) -> None:
    folder = trained(
        tmp_path / "run",
        {
            "format": FORMAT,
            "threshold": 0.35,
            "false_alarms": RULE,
            "end_to_end": {"missed": 0.1},
            "sha256": None,
            "recipe": {"epochs": 3},
            "seed": 1,
        },
    )
    for path in (folder, folder / "detector.onnx", str(folder)):
        detector = load_detector(path)
        assert (detector.name, detector.threshold) == ("detector.onnx", 0.35)
        assert detector.false_alarm_rule is not None
        assert detector.false_alarm_rule.threshold == 0.4
        assert detector.end_to_end == {"missed": 0.1}
    plain = finder(folder / "other.onnx", "yolo-classes")  # detector.json is not about this one
    detector = load_detector(plain)
    assert (detector.name, detector.threshold, detector.false_alarm_rule) == ("other.onnx", 0.5, None)
    assert detector.end_to_end is None


def test_a_folder_without_a_detector(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"holds no detector\.onnx"):
        load_detector(tmp_path)
    (tmp_path / "detector.json").write_text(json.dumps({"format": FORMAT}))
    with pytest.raises(FileError, match=r"holds no detector\.onnx"):
        load_detector(tmp_path)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("not JSON", r"detector\.json is not valid JSON"),
        ([], '"format" must be "polypcount-detector 1"'),
        ({}, '"format" must be "polypcount-detector 1"'),
        ({"format": "polypcount-detector 2"}, "found 'polypcount-detector 2'; upgrade polypcount"),
        ({"format": FORMAT, "threshold": 1.5}, r"threshold must be at most 1, found 1\.5; copy"),
        ({"format": FORMAT, "threshold": "high"}, "threshold must be a number"),
        ({"format": FORMAT, "end_to_end": 3}, "end_to_end must be a group of keys"),
        ({"format": FORMAT, "false_alarms": {**RULE, "weights": [1]}}, r"false_alarms\.weights must be of length"),
        ({"format": FORMAT, "false_alarms": {"weights": RULE["weights"]}}, r"false_alarms\.\w+ is missing"),
        ({"format": FORMAT, "sha256": "0" * 64}, "describes another model than detector.onnx"),
        ('{"format": "polypcount-detector 1", "threshold": NaN}', "not valid JSON"),
    ],
)
def test_a_damaged_description(tmp_path: Path, values: Any, message: str) -> None:
    folder = trained(tmp_path / "run", values)
    with pytest.raises(FileError, match=message) as caught:
        load_detector(folder)
    assert "\n" not in str(caught.value)
    assert "detector.json" in str(caught.value)


def test_the_hash_of_the_model(tmp_path: Path) -> None:
    folder = trained(tmp_path / "run")
    digest = sha256((folder / "detector.onnx").read_bytes()).hexdigest()
    (folder / "detector.json").write_text(json.dumps({"format": FORMAT, "sha256": digest}))
    assert load_detector(folder).fingerprint == digest


def same(one: Detector, other: Detector) -> None:
    for frame in (FRAME, with_square(300, 200, (10, 20, 60, 50)), np.zeros((50, 70, 3), np.uint8)):
        (xyxy, score), expected = one.detect(frame), other.detect(frame)
        assert xyxy == pytest.approx(expected[0], abs=0.05)
        assert score == pytest.approx(expected[1], abs=1e-3)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_openvino_gives_the_same(tmp_path: Path, form: str, half: bool) -> None:
    path = finder(tmp_path / "a.onnx", form, half=half)
    onnx, openvino = (load_detector(path, DetectorSettings(engine=engine)) for engine in ENGINES)
    assert (onnx.engine, openvino.engine) == ("onnx", "openvino")
    assert openvino.description["engine"] == "openvino"
    same(openvino, onnx)


def test_openvino_with_a_size_that_the_file_leaves_open(tmp_path: Path) -> None:
    path = finder(tmp_path / "a.onnx", "yolo-classes", dynamic=True)
    same(*(load_detector(path, DetectorSettings(engine=engine, size=(160, 96))) for engine in ENGINES))


def test_auto_takes_openvino_for_a_detector_of_polypcount_only(tmp_path: Path) -> None:
    own = trained(tmp_path / "own", {"format": FORMAT})
    assert load_detector(own).engine == "openvino"
    assert load_detector(own, DetectorSettings(engine="onnx")).engine == "onnx"
    assert load_detector(trained(tmp_path / "elsewhere")).engine == "onnx"
    same(load_detector(own), load_detector(own, DetectorSettings(engine="onnx")))


def test_a_signal_is_handled_after_openvino_was_dropped_in_another_thread() -> None:
    """OpenVINO's processor plugin gives the main thread a stack for signals, which must not be freed under it."""
    program = """
import os, signal, threading
from polypcount.detection import DetectorSettings, load_detector
signal.signal(signal.SIGTERM, lambda *_: print("handled"))
kept = [load_detector("bundled", DetectorSettings(engine="openvino"))]
thread = threading.Thread(target=kept.clear)
thread.start()
thread.join()
os.kill(os.getpid(), signal.SIGTERM)
print("alive")
"""
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "handled\nalive\n"), done.stderr


def test_auto_without_openvino(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, find = trained(tmp_path / "own", {"format": FORMAT}), importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "openvino" else find(name))
    assert load_detector(own).engine == "onnx"
    with pytest.raises(PolypcountError, match=r"pip install 'polypcount\[fast\]'"):
        load_detector(own, DetectorSettings(engine="openvino"))


def test_a_model_whose_outputs_differ_stays_with_onnx_runtime(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Random numbers stand for an operation that an engine calculates in another way."""
    folder = trained(tmp_path / "own", {"format": FORMAT})
    text = """<ir_version: 9, opset_import: ["" : 17]> odd (float[1, 3, 64, 64] images) => (float[1, 5, 84] out) {
      mean = ReduceMean<keepdims = 1>(images)
      flat = Squeeze(mean)
      shape = Constant<value = int64[3] {1, 5, 84}>()
      same = Expand(flat, shape)
      out = RandomUniformLike(same)
    }"""
    save(folder / "detector.onnx", parser.parse_model(text), {"task": "detect", "names": "{0: 'polyp'}"})
    with caplog.at_level(logging.INFO):
        assert load_detector(folder).engine == "onnx"
    assert "ONNX Runtime is used, since OpenVINO" in caplog.text


def test_an_operation_that_openvino_does_not_have(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = trained(tmp_path / "own", {"format": FORMAT})
    text = """<ir_version: 9, opset_import: ["" : 17]> odd (float[1, 3, 64, 64] images) => (float[1, 5, 84] out) {
      shape = Constant<value = int64[3] {1, 5, 84}>()
      mean = ReduceMean<keepdims = 0>(images)
      wide = Expand(mean, shape)
      zero = Det(small)
      many = Mul(wide, zero)
      out = Clip(many, low, high)
    }"""
    text = text.replace("mean = ReduceMean", "small = Slice(images, first, last, axes)\n      mean = ReduceMean")
    for name, value in (("first", "{0, 0}"), ("last", "{2, 2}"), ("axes", "{2, 3}")):
        text = text.replace("small = Slice", f"{name} = Constant<value = int64[2] {value}>()\n      small = Slice")
    text = text.replace("zero = Det(small)", "dets = Det(small)\n      zero = ReduceMax<keepdims = 0>(dets)")
    for name, value in (("low", "0.0"), ("high", "1.0")):
        text = text.replace("out = Clip", f"{name} = Constant<value_float = {value}>()\n      out = Clip")
    save(folder / "detector.onnx", parser.parse_model(text), {"task": "detect", "names": "{0: 'polyp'}"})
    with caplog.at_level(logging.INFO):
        assert load_detector(folder).engine == "onnx"
    assert "ONNX Runtime is used, since OpenVINO fails" in caplog.text
    with pytest.raises(FileError, match="cannot be run with OpenVINO") as caught:
        load_detector(folder, DetectorSettings(engine="openvino"))
    assert caught.value.mend == ("detector.engine",)
    assert "\n" not in str(caught.value)


def test_an_engine_that_there_is_not() -> None:
    with pytest.raises(DataErrors, match="engine must be 'auto', 'onnx' or 'openvino'"):
        DetectorSettings(engine="torch")  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ENGINES)
def test_threads_share_a_detector(tmp_path: Path, engine: Literal["onnx", "openvino"]) -> None:
    """Frames of different shapes, so that each needs the input filled anew."""
    detector = load_detector(finder(tmp_path / "a.onnx", "yolo-classes"), DetectorSettings(engine=engine))
    frames = [
        with_square(width, height, (width // 4, height // 5, width // 2, height // 2))
        for width, height in ((320, 256), (256, 320), (100, 90), (64, 300)) * 8
    ]
    expected = [detector.detect(frame) for frame in frames]
    with ThreadPoolExecutor(4) as pool:
        for (xyxy, score), alone in zip(pool.map(detector.detect, frames), expected, strict=True):
            assert np.array_equal(xyxy, alone[0])
            assert np.array_equal(score, alone[1])


def test_a_view_is_read_at_the_size_of_the_input(tmp_path: Path) -> None:
    asked: list[tuple[int, int]] = []

    class Small:
        """A frame that nobody may convert as a whole."""

        def image(self) -> Any:
            raise AssertionError

        def scaled(self, width: int, height: int) -> Any:
            asked.append((width, height))
            return with_square(width, height, (width // 4, height // 4, width // 2, height // 2))

    for form, size in (("yolo-classes", (128, 72)), ("detr-logits", (128, 128))):
        path = finder(tmp_path / f"{form}.onnx", form)
        settings = DetectorSettings(activation="sigmoid") if form.startswith("detr") else DetectorSettings()
        detector = load_detector(path, settings)
        xyxy, _ = detector.detect(FrameView(640, 360, Small()))
        assert asked.pop() == detector.view_size(640, 360) == size
        assert np.abs(xyxy[0] - [160, 90, 320, 180]).max() <= 5
