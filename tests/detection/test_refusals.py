"""Files that are no detector, and what cannot be told about one: one plain line each."""

import re
import resource
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper, parser

import polypcount.encoder
from polypcount.detection import DetectorSettings, load_detector
from polypcount.detection.facts import read_facts
from polypcount.encoder.engine_onnx import open_session
from polypcount.errors import DataError, FileError, PolypcountError
from polypcount.storage import check
from tests.detection.onnx_detectors import ULTRALYTICS, cells, constant, finder, save

ONE: Any = {"images": (TensorProto.FLOAT, (1, 3, 64, 64))}


def refusal(path: Path, settings: DetectorSettings | None = None) -> str:
    """What is said about a file that cannot be used, in one line, with the settings that would help."""
    with pytest.raises(PolypcountError) as caught:
        load_detector(path, settings)
    message = str(caught.value)
    assert "\n" not in message
    assert path.name in message
    return f"{message} {caught.value.mend}"


def zeros(*shape: int) -> NDArray[np.float32]:
    return np.zeros(shape, np.float32)


def test_no_file_and_no_onnx(tmp_path: Path) -> None:
    for path in (tmp_path / "none.onnx", tmp_path):
        assert "ONNX file of a detector" in refusal(path)
    for name, content in (("empty.onnx", b""), ("weights.pt", b"PK\x03\x04" + bytes(500)), ("a.onnx", b"hello" * 99)):
        (tmp_path / name).write_bytes(content)
        assert "not an ONNX model" in refusal(tmp_path / name)
    newer = onnx.load(str(finder(tmp_path / "newer.onnx", "yolo-final")))
    newer.ir_version = 99
    (tmp_path / "newer.onnx").write_bytes(newer.SerializeToString())
    assert "IR version: 99" in refusal(tmp_path / "newer.onnx")
    whole = finder(tmp_path / "whole.onnx", "yolo-final").read_bytes()
    (tmp_path / "half.onnx").write_bytes(whole[: len(whole) // 2])
    assert "not an ONNX model" in refusal(tmp_path / "half.onnx")


def test_our_own_encoder_is_no_detector() -> None:
    folder = Path(polypcount.encoder.__file__).parent / "bundled"
    for name in ("frame.onnx", "sequence.onnx"):
        assert UNKNOWN in refusal(next(folder.glob(f"model-*/{name}")))


UNKNOWN, UNCLEAR = "known form", "detector.family"


@pytest.mark.parametrize(
    ("outputs", "metadata", "said"),
    [
        ({"output0": zeros(1, 1000)}, {}, UNKNOWN),
        ({"output0": zeros(1, 5)}, {**ULTRALYTICS, "task": "classify"}, "'classify'"),
        ({"output0": zeros(1, 37, 84), "output1": zeros(1, 32, 16, 16)}, {}, "output0 [1, 37, 84], output1 [1,"),
        ({"dets": zeros(1, 9, 5), "labels": zeros(1, 9)}, {}, UNKNOWN),  # mmdeploy
        ({"a": zeros(1, 84, 4), "b": zeros(1, 84, 3)}, {}, UNKNOWN),  # YOLO-NAS
        ({"a": zeros(7, 7)}, {}, UNKNOWN),  # YOLOv7 with its own suppression
        ({"o": zeros(1, 84, 7)}, {}, UNCLEAR),
        ({"o": zeros(1, 84, 6)}, {}, UNCLEAR),  # YOLOX or YOLOv6 of one class
        ({"o": zeros(1, 5, 84)}, {**ULTRALYTICS, "names": "{0: 'a', 1: 'b'}"}, UNCLEAR),
        ({"o": zeros(1, 0, 0)}, {}, UNCLEAR),
        ({"o": zeros(2, 84, 6)}, {}, UNKNOWN),
        ({"logits": zeros(1, 9, 2), "pred_boxes": zeros(1, 9, 4)}, {}, "detector.activation"),
    ],
)
def test_outputs_that_are_no_detector(
    outputs: dict[str, NDArray[Any]], metadata: dict[str, str], said: str, tmp_path: Path
) -> None:
    assert said in refusal(constant(tmp_path / "a.onnx", outputs, metadata=metadata))


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"x": (TensorProto.FLOAT, (1, 64))}, UNKNOWN),
        ({"x": (TensorProto.UINT8, (1, 3, 64, 64))}, UNKNOWN),
        ({"x": (TensorProto.FLOAT, (1, 64, 64, 3))}, "[1, 64, 64, 3]"),
        ({"x": (TensorProto.FLOAT, (8, 3, 64, 64))}, "batch of 1"),
        ({"x": (TensorProto.FLOAT, (1, 3, 64, 5000))}, "5000 x 64"),
        ({"x": (TensorProto.FLOAT, (1, 3, "h", 64))}, "detector.size"),
        ({**ONE, "im_shape": (TensorProto.FLOAT, (1, 2))}, UNKNOWN),
        ({**ONE, "pixel_mask": (TensorProto.FLOAT, (1, 2))}, "pixel_mask"),
    ],
)
def test_inputs_that_are_no_image(inputs: Any, said: str, tmp_path: Path) -> None:
    assert said in refusal(constant(tmp_path / "a.onnx", {"o": zeros(1, 9, 6)}, inputs=inputs))


def test_a_size_that_is_not_the_models(tmp_path: Path) -> None:
    path = constant(tmp_path / "a.onnx", {"o": zeros(1, 9, 6)}, inputs=ONE)
    said = refusal(path, DetectorSettings(size=(640, 640)))
    assert "64 x 64 pixels, not 640 x 640" in said
    assert "detector.size" in said
    assert load_detector(path, DetectorSettings(size=(64, 64))).size == (64, 64)


def test_a_size_at_which_the_model_fails(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Constant", [], ["s"], value_ints=[1, 9, 6]),
        helper.make_node("Reshape", ["images", "s"], ["o"]),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, "h", "w"])
    graph = helper.make_graph(nodes, "g", [images], [helper.make_tensor_value_info("o", TensorProto.FLOAT, [1, 9, 6])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = save(tmp_path / "a.onnx", model, {})
    assert "fails on an input of 64 x 64 pixels" in refusal(path, DetectorSettings(size=(64, 64)))
    assert load_detector(path, DetectorSettings(size=(6, 3))).size == (6, 3)


@pytest.mark.parametrize(
    ("family", "form"),
    [("yolo-objectness", "yolo-objectness"), ("yolo-final", "yolo-final"), ("detr-classes", "detr-classes")],
)
def test_family_says_what_is_not_clear(family: Any, form: str, tmp_path: Path) -> None:
    path = constant(tmp_path / "a.onnx", {"o": zeros(1, cells(64, 64), 6)})
    assert UNCLEAR in refusal(path)
    assert UNCLEAR in refusal(path, DetectorSettings(family="yolo"))
    assert load_detector(path, DetectorSettings(family=family)).reading.form == form


def test_family_that_the_outputs_have_not(tmp_path: Path) -> None:
    path = finder(tmp_path / "a.onnx", "detr-logits")
    assert "outputs of the form detr-logits" in refusal(path, DetectorSettings(family="yolo"))
    path = finder(tmp_path / "b.onnx", "yolo-final")
    assert "yolo-final, output0 [1, 20, 6]" in refusal(path, DetectorSettings(family="detr"))
    path = constant(tmp_path / "c.onnx", {"o": zeros(1, 84, 7)})
    assert UNCLEAR in refusal(path, DetectorSettings(family="yolo-final"))
    boxes = {"a": zeros(1, 9, 4), "b": zeros(1, 9, 4)}
    settings = DetectorSettings(family="detr", activation="sigmoid", normalise="unit")
    assert UNKNOWN in refusal(constant(tmp_path / "d.onnx", boxes), settings)


def test_settings_that_outputs_have_no_use_for(tmp_path: Path) -> None:
    path = finder(tmp_path / "a.onnx", "yolo-final")
    assert "detector.activation" in refusal(path, DetectorSettings(activation="sigmoid"))
    one = constant(tmp_path / "b.onnx", {"dets": zeros(1, 9, 4), "labels": zeros(1, 9, 1)})
    assert "softmax" in refusal(one, DetectorSettings(activation="softmax"))


def test_what_a_file_does_not_say_about_its_input(tmp_path: Path) -> None:
    outputs = {"logits": zeros(1, 9, 2), "pred_boxes": zeros(1, 9, 4)}
    assert "detector.normalise" in refusal(
        constant(tmp_path / "a.onnx", outputs), DetectorSettings(activation="sigmoid")
    )


def test_classes_that_are_not_there(tmp_path: Path) -> None:
    named = constant(tmp_path / "a.onnx", {"o": zeros(1, 6, 84)}, metadata={"names": "['adenoma', 'other']"})
    said = refusal(named, DetectorSettings(classes=("polyp",)))
    assert "'polyp'" in said
    assert "0 adenoma, 1 other" in said
    assert load_detector(named, DetectorSettings(classes=("1", "adenoma"))).reading.classes == (0, 1)
    plain = constant(tmp_path / "b.onnx", {"o": zeros(1, 6, 84)})
    assert "0 to 1" in refusal(plain, DetectorSettings(classes=("2",)))


@pytest.mark.parametrize(
    "names",
    [
        "{0: 'polyp'",
        "__import__('os').system('true')",
        "{0: 'a' * 10**9}",
        "[" * 60000,
        "-" * 60000 + "1",
        "{0: 5}",
        "{-1: 'a'}",
        "{0: 'a\\nb'}",
        "{'x': 'a'}",
        "{0: '" + "a" * 70000 + "'}",
        "{1.5: 'a', 0: 'b'}",
        "['\\d']" + " " * 9 + "+ 1",
    ],
)
def test_names_that_cannot_be_read(names: str) -> None:
    assert read_facts({"names": names}, Path("a.onnx")).names == {}


@pytest.mark.parametrize("text", ["", "[", "'x'", "None", "[1, 2, 3]", "{'nms': 'no'}", "-5", "1e9", "{}"])
def test_properties_that_say_nothing(text: str) -> None:
    values = dict.fromkeys(("imgsz", "stride", "args", "end2end"), text)
    facts = read_facts({**ULTRALYTICS, **values}, Path("a.onnx"))
    assert (facts.size, facts.stride, facts.drops_overlaps) == (None, 1, False)


def external(path: Path, location: str) -> Path:
    """A detector whose weights are in another file."""
    weights = numpy_helper.from_array(np.full((1, 9, 6), 0.5, np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("Identity", ["w"], ["o"])],
        "g",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, 64, 64])],
        [helper.make_tensor_value_info("o", TensorProto.FLOAT, [1, 9, 6])],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(path), save_as_external_data=True, location="w.data", size_threshold=0)
    model = onnx.load(str(path), load_external_data=False)
    model.graph.initializer[0].external_data[0].value = location
    assert model.graph.initializer[0].external_data[0].key == "location"
    path.write_bytes(model.SerializeToString())
    return path


def test_weights_in_a_file_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = external(tmp_path / "a.onnx", "w.data")
    first = load_detector(path)
    assert first.reading.form == "yolo-final"
    weights = tmp_path / "w.data"
    weights.write_bytes(np.full(54, 0.25, np.float32).tobytes())
    assert load_detector(path).fingerprint != first.fingerprint
    weights.rename(tmp_path / "moved")
    assert "weights from w.data" in refusal(path)
    # A file of that name where the program happens to run is not taken instead.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "moved").rename(elsewhere / "w.data")
    monkeypatch.chdir(elsewhere)
    assert "weights from w.data" in refusal(path)


@pytest.mark.parametrize("location", ["../w.data", "/etc/hostname", "a/../../w.data", "C:\\w.data", "..\\w.data"])
def test_weights_outside_the_folder(location: str, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    path = external(tmp_path / "below" / "a.onnx", location)
    (tmp_path / "w.data").write_bytes((tmp_path / "below" / "w.data").read_bytes())
    assert f"{location}, outside its folder" in refusal(path)


def hide_location(path: Path) -> None:
    """Write the value of the location before its key, which means the same and is not seen by a search for the key."""
    content = path.read_bytes()
    (found,) = re.finditer(rb"\x0a\x08location\x12(.)", content, re.DOTALL)
    start, middle, end = found.start(), found.start() + 10, found.end() + found.group(1)[0]
    path.write_bytes(content[:start] + content[middle:end] + content[start:middle] + content[end:])


@pytest.mark.parametrize("location", ["w.data", "../w.data", "absolute", "link.data", "folder/w.data"])
def test_onnx_runtime_itself_reads_no_weights_outside_the_folder(location: str, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    path = external(tmp_path / "below" / "a.onnx", str(tmp_path / "w.data") if location == "absolute" else location)
    hide_location(path)
    (tmp_path / "w.data").write_bytes((tmp_path / "below" / "w.data").read_bytes())
    (tmp_path / "below" / "link.data").symlink_to(tmp_path / "w.data")
    (tmp_path / "below" / "folder").symlink_to(tmp_path)
    if location == "w.data":
        assert load_detector(path).reading.form == "yolo-final"
    else:
        assert "is damaged or not an ONNX model that ONNX Runtime can run" in refusal(path)
    # An encoder's model is opened without its folder.
    with pytest.raises(FileError, match="is damaged or not an ONNX model"):
        open_session(path.read_bytes(), path, ({"images": (1, 3, 64, 64)}, {"o": (1, 9, 6)}))


ASKS_FOR_MUCH = {
    "an output of a stated size": (
        "o = ConstantOfShape(size)",
        "1, 2048, 1024, 1024",
        r"8,589,934,592 bytes, expected",
    ),
    "an output of a size that can be inferred": ("o = ConstantOfShape(size)", "", "8,589,934,592 bytes, expected"),
    "a size that depends on the image": (
        "m = ReduceMax<keepdims = 0>(images)\n i = Cast<to = 7>(m)\n z = Sub(i, i)\n s = Add(size, z)\n"
        " o = ConstantOfShape(s)",
        "",
        "more than 4 GB of memory",
    ),
    "a small output of a large tensor": (
        "b = Expand(one, size)\n c = Add(b, b)\n o = ReduceMax<keepdims = 1>(c)",
        "1, 1, 1, 1",
        "more than 4 GB of memory",
    ),
    "a resized image": (
        "none = Constant<value_floats = [0.0]>()\n e = Constant<value = float[0] {}>()\n"
        " f = Constant<value_floats = [1.0, 1.0, 1000.0, 1000.0]>()\n b = Resize(images, e, f)\n"
        " o = ReduceMax<keepdims = 1>(b)",
        "",
        "more than 4 GB of memory",
    ),
    "an output of half a GB": (
        "r = Constant<value_ints = [1, 1, 100, 100]>()\n o = Tile(images, r)",
        "",
        "491,520,000 bytes, expected were at most 268,435,456",
    ),
}


@pytest.mark.parametrize("case", ASKS_FOR_MUCH)
def test_a_small_file_that_asks_for_much_memory(case: str, tmp_path: Path) -> None:
    body, shape, message = ASKS_FOR_MUCH[case]
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[1, 3, 64, 64] images) => (float[{shape or ", ".join("abcd")}] o) {{
          one = Constant<value = float[1] {{1.0}}>()
          size = Constant<value = int64[4] {{1, 2048, 1024, 1024}}>()
          {body}
        }}"""
    )
    path = tmp_path / "a.onnx"
    path.write_bytes(model.SerializeToString())
    assert path.stat().st_size < 1000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert re.search(message, refusal(path))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KB


@pytest.mark.parametrize(
    "setting",
    [
        {"confidence": 1.5},
        {"iou": float("nan")},
        {"confidence": True},
        {"size": (640,)},
        {"size": (0, 640)},
        {"size": (640, 4097)},
        {"size": 640},
        {"family": "ssd"},
        {"classes": "polyp"},
        {"classes": ()},
        {"normalise": "no"},
        {"scale": "mm"},
        {"treshold": 0.5},
    ],
)
def test_a_bad_setting_is_named(setting: dict[str, Any]) -> None:
    line = rf"detector: {next(iter(setting))}.*$"
    with pytest.raises(DataError, match=line):
        DetectorSettings(**setting)
    with pytest.raises(DataError, match=rf"^a\.json: {line}"):
        check(DetectorSettings, setting, "a.json")


def test_settings_from_json() -> None:
    values = {"size": [640, 480], "classes": ["polyp"], "confidence": 1}
    assert check(DetectorSettings, values, "a.json") == DetectorSettings(
        size=(640, 480), classes=("polyp",), confidence=1.0
    )


def test_an_output_that_changes_its_shape(tmp_path: Path) -> None:
    """Boxes as many as bright pixels, and no columns where there are none: read once, then refused."""
    text = """<ir_version: 9, opset_import: ["" : 17]> g (float[1, 3, 64, 64] images) => (float[1, n, m] o) {
      most = ReduceMax<keepdims = 0>(images)
      level = Constant<value_float = 0.9>()
      above = Greater(most, level)
      o = If (above) <
        then_branch = a () => (float[1, 2, 3] x) { x = Constant<value = float[1, 2, 3] {0, 0, 0, 0, 0, 0}>() },
        else_branch = b () => (float[1, 1, 6] y) { y = Constant<value = float[1, 1, 6] {0, 0, 9, 9, 0.5, 0}>() }
      >
    }"""
    path = save(tmp_path / "a.onnx", onnx.parser.parse_model(text), {})
    detector = load_detector(path)
    assert len(detector.detect(np.zeros((64, 64, 3), np.uint8))[0]) == 1
    with pytest.raises(DataError, match="gives outputs"):
        detector.detect(np.full((64, 64, 3), 255, np.uint8))


def test_errors_are_of_files_or_of_data(tmp_path: Path) -> None:
    with pytest.raises(FileError):
        load_detector(tmp_path / "none.onnx")


def test_a_damaged_name_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = finder(tmp_path / "a.onnx", "yolo-classes")
    path.write_bytes(path.read_bytes().replace(b"ReduceMean", b"Reduce\x9fean"))  # ONNX Runtime's error is not UTF-8
    assert "damaged or not an ONNX model" in refusal(path)
    assert capfd.readouterr() == ("", "")
