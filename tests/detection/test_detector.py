"""Detectors of every form find a bright rectangle where it is, in frames of any shape."""

import json
import threading
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike
from onnx import TensorProto, parser
from PIL import Image as Pillow

from polypcount.corpus import Boxes
from polypcount.detection import DetectorSettings, detect_boxes, detections, load_detector
from polypcount.detection.facts import IMAGENET, UNIT
from polypcount.detection.model_file import open_model
from polypcount.detection.model_input import ModelInput, Placement
from polypcount.errors import DataError, FileError
from polypcount.video import open_source
from polypcount.video.frames import Image
from tests.detection.onnx_detectors import FORMS, SCORE, ULTRALYTICS, constant, finder, save, with_square
from tests.video.movies import BIT, number_of, write_movie

# Width and height of a frame, and a rectangle in it.
FRAMES = [
    (640, 360, (100, 50, 220, 150)),
    (360, 640, (10, 400, 90, 620)),
    (300, 300, (0, 0, 30, 40)),
    (97, 61, (50, 20, 97, 61)),
    (641, 359, (320, 150, 451, 277)),
    (40, 400, (5, 250, 35, 290)),
]
INPUTS = [(128, 128), (160, 96)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", INPUTS)
def test_finds_the_rectangle(form: str, size: tuple[int, int], tmp_path: Path) -> None:
    detector = load_detector(finder(tmp_path / "model.onnx", form, size))
    assert detector.reading.form == form
    assert detector.family == form.split("-")[0]
    assert detector.size == size
    for width, height, box in FRAMES:
        xyxy, score = detector.detect(with_square(width, height, box))
        assert xyxy.shape == (1, 4)
        assert {xyxy.dtype, score.dtype} == {np.dtype(np.float32)}
        assert score[0] == pytest.approx(SCORE, abs=1e-5)
        # The model sees whole pixels of its input, so an edge is known to one of them; letterboxing scales both alike.
        across, down = width / size[0], height / size[1]
        if detector.family == "yolo":
            across = down = max(across, down)
        assert np.abs(xyxy[0] - box).max() <= max(across, down, 1) * 0.75
        assert np.abs(xyxy[0] - box)[[0, 2]].max() <= max(across, 1) * 0.75
        nothing, scores = detector.detect(with_square(width, height, (0, 0, 0, 0)))
        assert nothing.shape == (0, 4)
        assert scores.shape == (0,)


@pytest.mark.parametrize("form", FORMS)
def test_sixteen_bits_and_open_sizes(form: str, tmp_path: Path) -> None:
    frame = with_square(320, 256, (40, 60, 120, 200))
    expected = load_detector(finder(tmp_path / "a.onnx", form)).detect(frame)
    half = load_detector(finder(tmp_path / "b.onnx", form, half=True)).detect(frame)
    assert half[0] == pytest.approx(expected[0], abs=0.5)
    assert half[1] == pytest.approx(expected[1], abs=1e-3)
    open_one = finder(tmp_path / "c.onnx", form, (128, 128), dynamic=True)
    with pytest.raises(DataError, match="any size") as caught:
        load_detector(open_one)
    assert caught.value.mend == ("detector.size",)
    found = load_detector(open_one, DetectorSettings(size=(128, 128))).detect(frame)
    assert (found[0] == expected[0]).all()


def test_the_size_that_the_file_says(tmp_path: Path) -> None:
    path = finder(tmp_path / "a.onnx", "yolo-classes", dynamic=True, metadata={**ULTRALYTICS, "imgsz": "[96, 160]"})
    assert load_detector(path).size == (160, 96)
    assert load_detector(path, DetectorSettings(size=(64, 32))).size == (64, 32)
    with pytest.raises(DataError, match="32 pixels, found 100 x 96"):
        load_detector(path, DetectorSettings(size=(100, 96)))


def test_colours_are_red_first_and_normalised(tmp_path: Path) -> None:
    # A box around everything whose score is the mean of one colour as the model is given it.
    for channel, colour in enumerate((200, 100, 50)):
        text = f"""<ir_version: 9, opset_import: ["" : 17]> one (float[1, 3, 32, 64] images) => (float[1, 1, 6] out) {{
          means = ReduceMean<axes = [2, 3], keepdims = 0>(images)
          which = Constant<value = int64[1] {{{channel}}}>()
          mean = Gather<axis = 1>(means, which)
          before = Constant<value = float[1, 4] {{0, 0, 64, 32}}>()
          after = Constant<value = float[1, 1] {{0}}>()
          row = Concat<axis = 1>(before, mean, after)
          axis = Constant<value = int64[1] {{1}}>()
          out = Unsqueeze(row, axis)
        }}"""
        path = save(tmp_path / f"{channel}.onnx", parser.parse_model(text), {})
        frame = np.full((64, 128, 3), (200, 100, 50), np.uint8)
        xyxy, score = load_detector(path, DetectorSettings(confidence=0)).detect(frame)
        assert xyxy.tolist() == [[0, 0, 128, 64]]
        assert score[0] == pytest.approx(colour / 255, abs=1e-5)


def test_what_the_model_is_given(tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["" : 17]>
      same (float[1, 3, 2, 3] images) => (float[1, 3, 2, 3] out) { out = Identity(images) }"""
    path = save(tmp_path / "same.onnx", parser.parse_model(text), {})
    model = open_model(path)
    image = np.arange(18, dtype=np.uint8).reshape(2, 3, 3) * 14
    at = Placement(0, 0, 3, 2)
    plain = model.run(ModelInput((3, 2), UNIT, np.float32).fill(image, at), (3, 2))["out"]
    assert plain == pytest.approx(image.transpose(2, 0, 1)[None] / 255, abs=1e-6)
    normal = model.run(ModelInput((3, 2), IMAGENET, np.float32).fill(image, at), (3, 2))["out"]
    for channel, (mean, std) in enumerate(zip((0.485, 0.456, 0.406), (0.229, 0.224, 0.225), strict=True)):
        assert normal[0, channel] == pytest.approx((image[..., channel] / 255 - mean) / std, abs=1e-5)


def test_boxes_are_cut_at_the_frame_and_empty_ones_left_out(tmp_path: Path) -> None:
    rows = [
        [-10, -10, 20, 20, 0.9, 0],  # over the corner
        [40, 40, 40, 60, 0.8, 0],  # no width
        [50, 50, 30, 60, 0.8, 0],  # the wrong way round
        [70, 10, 90, 20, 0.8, 0],  # beside the frame
        [20, 30, 64, 64, 0.7, 0],
        [0, 0, 0, 0, 0, 0],
    ]
    path = constant(tmp_path / "a.onnx", {"out": np.array([rows], np.float32)})
    xyxy, score = load_detector(path, DetectorSettings(confidence=0)).detect(np.zeros((64, 64, 3), np.uint8))
    assert xyxy.tolist() == [[0, 0, 20, 20], [20, 30, 64, 64]]
    assert score.tolist() == pytest.approx([0.9, 0.7])


def test_description_and_fingerprint(tmp_path: Path) -> None:
    path = finder(tmp_path / "polyps.onnx", "yolo-classes")
    detector = load_detector(path, DetectorSettings(confidence=0.25, classes=("polyp",)))
    assert detector.path == path
    assert detector.fingerprint == sha256(path.read_bytes()).hexdigest()
    assert detector.names == {0: "polyp"}
    said = json.loads(json.dumps(detector.description))
    assert said["file"] == "polyps.onnx"
    assert said["sha256"] == detector.fingerprint
    assert (said["form"], said["input"], said["classes"]) == ("yolo-classes", [128, 128], [0])
    assert (said["confidence"], said["iou"], said["class_names"]) == (0.25, 0.5, {"0": "polyp"})


@pytest.mark.parametrize(
    "frame",
    [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3)), np.zeros((0, 4, 3), np.uint8), np.zeros((4, 4, 4), np.uint8)],
)
def test_frames_that_are_none(frame: Image, tmp_path: Path) -> None:
    detector = load_detector(finder(tmp_path / "a.onnx", "yolo-final"))
    with pytest.raises(DataError, match="a frame must"):
        detector.detect(frame)


class Blank:
    """A recording of black frames."""

    width, height, fps = 64, 64, None

    def __init__(self, frame_count: int) -> None:
        self.frame_count = frame_count

    def frames(self, wanted: ArrayLike) -> Iterator[tuple[int, Image]]:
        for index in np.asarray(wanted).tolist():
            yield index, np.zeros((64, 64, 3), np.uint8)


def running() -> int:
    return sum(thread.name.startswith("ahead") for thread in threading.enumerate())


def test_detections_of_a_video(tmp_path: Path) -> None:
    detector = load_detector(finder(tmp_path / "a.onnx", "yolo-classes", level=0.9))
    source = open_source(write_movie(tmp_path / "a.mp4", 40))
    told: list[tuple[int, int]] = []
    seen = list(
        detections(
            source, detector, range(0, source.frame_count, 3), progress=lambda done, total: told.append((done, total))
        )
    )
    assert [index for index, *_ in seen] == list(range(0, 40, 3))
    assert [number_of(view.image) for _, view, _, _ in seen] == list(range(0, 40, 3))
    assert told == [(done, 14) for done in range(1, 15)]
    for index, view, xyxy, score in seen:
        alone = detector.detect(view)
        assert (xyxy == alone[0]).all()
        assert (score == alone[1]).all()
        # A frame shows its number as white squares, lowest bit first.
        bits = [bit for bit in range(12) if index >> bit & 1]
        expected = [[BIT * bits[0], 0, BIT * (bits[-1] + 1), 2 * BIT]] if bits else np.empty((0, 4))
        assert xyxy.shape == np.shape(expected)
        assert np.abs(xyxy - expected).max(initial=0) <= 1.5
    assert running() == 0


def test_an_error_of_decoding_comes_after_the_frames_before(tmp_path: Path) -> None:
    folder = tmp_path / "frames"
    folder.mkdir()
    for number in range(9):
        Pillow.fromarray(with_square(64, 64, (10, 10, 30, 30))).save(folder / f"{number}.png")
    (folder / "6.png").write_bytes(b"\x89PNG\r\n\x1a\n and then nothing")
    detector = load_detector(finder(tmp_path / "a.onnx", "yolo-classes"))
    stream = detections(open_source(folder), detector)
    for expected in range(6):
        index, _, xyxy, _ = next(stream)
        assert index == expected
        assert np.abs(xyxy - [10, 10, 30, 30]).max() <= 1
    with pytest.raises(FileError, match=r"6\.png"):
        next(stream)
    assert running() == 0
    boxes, count = detect_boxes(open_source(folder), detector)
    assert count == len(boxes) == 6
    assert boxes.frame.tolist() == list(range(6))
    (folder / "0.png").write_bytes(b"nothing")
    with pytest.raises(FileError, match=r"0\.png"):
        detect_boxes(open_source(folder), detector)


def test_boxes_of_a_whole_recording(tmp_path: Path) -> None:
    class Second(Blank):
        """The second frame shows a rectangle."""

        def frames(self, wanted: ArrayLike) -> Iterator[tuple[int, Image]]:
            for index, image in super().frames(wanted):
                image[8:16, 8:24] = 255 * (index == 1)
                yield index, image

    detector = load_detector(finder(tmp_path / "a.onnx", "yolo-classes"))
    boxes, count = detect_boxes(Second(3), detector)
    assert count == 3
    assert (boxes.video.tolist(), boxes.frame.tolist()) == ([0], [1])
    assert boxes.xyxy[0] == pytest.approx([8, 8, 24, 16], abs=0.5)
    assert boxes.score[0] == pytest.approx(SCORE, abs=1e-5)
    assert detect_boxes(Second(0), detector) == (Boxes.empty(), 0)


def test_an_error_of_the_detector_ends_the_thread(tmp_path: Path) -> None:
    class Changing(Blank):
        """The third frame is none that a detector takes."""

        def frames(self, wanted: ArrayLike) -> Iterator[tuple[int, Image]]:
            for index, image in super().frames(wanted):
                yield index, image if index != 2 else image[..., 0]

    detector = load_detector(finder(tmp_path / "a.onnx", "yolo-classes"))
    with pytest.raises(DataError, match="a frame must be RGB"):
        list(detections(Changing(100), detector))
    assert running() == 0


def test_leaving_early_ends_the_thread(tmp_path: Path) -> None:
    detector = load_detector(finder(tmp_path / "a.onnx", "yolo-classes"))
    source = open_source(write_movie(tmp_path / "a.mp4", 60))
    stream = detections(source, detector)
    assert running() == 0
    next(stream)
    assert running() == 1
    del stream
    assert running() == 0
    for index, *_ in detections(source, detector):
        if index == 4:
            break
    assert running() == 0


def test_mask_of_pixels_and_other_inputs(tmp_path: Path) -> None:
    boxes, logits = np.full((1, 2, 4), 0.5, np.float32), np.array([[[2.0, -9.0], [-9.0, -9.0]]], np.float32)
    settings = DetectorSettings(activation="sigmoid", normalise="unit")
    inputs = {"pixel_values": (TensorProto.FLOAT, ("n", 3, 64, 96)), "pixel_mask": (TensorProto.INT64, ("n", 64, 64))}
    path = constant(tmp_path / "a.onnx", {"logits": logits, "pred_boxes": boxes}, inputs=inputs)
    detector = load_detector(path, settings)
    assert detector.size == (96, 64)
    xyxy, score = detector.detect(np.zeros((10, 20, 3), np.uint8))
    assert xyxy.tolist() == [[5, 2.5, 15, 7.5]]
    assert score[0] == pytest.approx(1 / (1 + np.exp(-2)), abs=1e-6)
