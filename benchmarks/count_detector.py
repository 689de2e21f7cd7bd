"""How long counting from raw pixels takes, with a detector, beside decoding every frame alone.

The recording is that of `count.py`: 1280 x 1080 pixels, 30 frames a second. What is compared, in turn, each run a
process of its own on 2 cores:

decode     every frame by PyAV to RGB, and nothing else: the peer
count      `polypcount.count` with the detector and the pictures for the report, by the engine that it takes by default
onnx       the same with ONNX Runtime
int8       the same with OpenVINO and weights and activations of 8 bits, only to see what that would give. The quantised
           model is made here by onnxruntime.quantization, from frames of the recording, and is not shipped

Then the peak memory for twice as many seconds, and the detector alone: milliseconds for a look with one thread, and how
far the boxes of the 8 bit model are from those of the original.

`count.py OUT --detector bundled` runs this.
"""

import json
import statistics
import time
from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

import polypcount as pc
from polypcount.corpus.geometry import iou
from polypcount.detection import Detector, DetectorSettings, evaluate_detections, load_detector
from polypcount.video import FrameSource, FrameView, open_source, views
from polypcount.video.frames import Image

FPS, MOST_TIMES, MOST_MB, MOST_GROWTH = 30, 2.0, 1500, 1.10
LOOKED_AT, CALIBRATION = 200, 64  # frames for the detector alone, and to choose the ranges of 8 bits from
INT8 = "int8"
Engine = Literal["auto", "onnx", "openvino"]
ENGINES: dict[str, Engine] = {"count": "auto", "onnx": "onnx", INT8: "openvino"}


class FirstFrames:
    """A recording as if it ended early."""

    def __init__(self, source: FrameSource, frame_count: int) -> None:
        self.frame_count = min(frame_count, source.frame_count)
        self.width, self.height, self.fps, self._source = source.width, source.height, source.fps, source

    def frames(self, wanted: ArrayLike) -> Iterator[tuple[int, Image]]:
        """Each wanted frame."""
        return self._source.frames(wanted)

    def views(self, wanted: ArrayLike) -> Iterator[tuple[int, FrameView]]:
        """Each wanted frame, not converted yet."""
        return views(self._source, wanted)


def detector_of(way: str, out: Path, detector: str) -> Detector:
    """The detector of a way."""
    path = str(out / INT8) if way == INT8 else detector
    return load_detector(path, DetectorSettings(engine=ENGINES[way]))


def one_run(way: str, out: Path, name: str, detector: str, seconds: int) -> dict[str, Any]:
    """What a process of its own does: seconds by step, peak memory, and what was counted."""
    begun = time.perf_counter()
    recording, steps = out / f"{name}.mp4", dict[str, float]()
    found: dict[str, Any] = {}
    if way == "decode":
        import av

        with av.open(str(recording)) as file:
            file.streams.video[0].thread_type = "AUTO"
            frames = islice(file.decode(video=0), seconds * FPS)
            found["frames"] = sum(frame.to_ndarray(format="rgb24").shape[2] == 3 for frame in frames)
    else:
        module: Any = import_module("polypcount.counting.recording")
        plain = module.open_source
        module.open_source = lambda path: FirstFrames(plain(path), seconds * FPS)
        encoder, loaded = pc.load_encoder(), detector_of(way, out, detector)
        steps["load encoder and detector"] = time.perf_counter() - begun
        report = pc.count(recording, encoder=encoder, detector=loaded)
        steps |= report.seconds
        found |= {"engine": loaded.engine, "tracklets": len(report.tracklets), "polyps": len(report.polyps)}
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    return {"steps": steps, "peak": peak, **found}


def quantise(out: Path, detector: str, recording: Path) -> Path:
    """The detector with weights and activations of 8 bits in its convolutions, in a folder of its own."""
    from onnxruntime.quantization import (  # type: ignore[import-untyped]
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    original = load_detector(detector, DetectorSettings(engine="onnx"))

    class Looks(CalibrationDataReader):  # type: ignore[misc]
        """What the model is given for frames all over the recording."""

        def __init__(self) -> None:
            self._inputs = iter([inputs(original, view) for view in some_views(recording, CALIBRATION)])

        def get_next(self) -> dict[str, NDArray[np.floating]] | None:
            values = next(self._inputs, None)
            return None if values is None else {original.model.image: values}

    folder = out / INT8
    folder.mkdir(exist_ok=True)
    quantize_static(
        str(original.path),
        str(folder / "detector.onnx"),
        Looks(),
        quant_format=QuantFormat.QDQ,
        op_types_to_quantize=["Conv"],
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        per_channel=True,
    )
    values = {"format": "polypcount-detector 1", "threshold": original.threshold}
    if original.false_alarm_rule is not None:
        values["false_alarms"] = original.false_alarm_rule.to_json()
    (folder / "detector.json").write_text(json.dumps(values))
    return folder


def some_views(recording: Path, count: int) -> list[FrameView]:
    """Frames all over the recording, at the size of a detector's input only, to take little memory."""
    source = open_source(recording)
    wanted = np.linspace(0, min(source.frame_count, 150 * FPS) - 1, count).astype(int)
    return [FrameView.of(view.scaled(320, 256)) for _, view in views(source, wanted)]


def inputs(detector: Detector, view: FrameView) -> NDArray[np.floating]:
    """What a detector's model is given for a frame."""
    from polypcount.detection.model_input import ModelInput, placement

    at = placement((view.width, view.height), detector.size, letterbox=detector.family == "yolo")
    made = ModelInput(detector.size, detector.images, detector.model.dtype)
    return made.fill(view.scaled(at.width, at.height), at)


def compare_looks(out: Path, detector: str, recording: Path) -> None:
    """The detector alone: time for a look, and the boxes of 8 bits beside those of the original."""
    looked_at = some_views(recording, LOOKED_AT)
    boxes: dict[str, list[tuple[NDArray[np.float32], NDArray[np.float32]]]] = {}
    for way in ("onnx", "count", INT8):
        loaded = detector_of(way, out, detector)
        loaded.detect(looked_at[0])
        spent, begun = time.process_time(), time.perf_counter()
        boxes[way] = [loaded.detect(view) for view in looked_at]
        wall, processor = time.perf_counter() - begun, time.process_time() - spent
        each = [1000 * seconds / LOOKED_AT for seconds in (wall, processor)]
        print(f"a look with {way} ({loaded.engine}): wall {each[0]:.1f} ms, processor {each[1]:.1f} ms", flush=True)
    threshold = loaded.threshold
    sure = [xyxy[score >= threshold] for xyxy, score in boxes["onnx"]]
    count = sum(map(len, sure))
    print(f"{count} boxes of ONNX Runtime at the threshold {threshold:g} in {LOOKED_AT} frames")
    for way in ("count", INT8) if count else ():
        scores = evaluate_detections(
            np.repeat(np.arange(LOOKED_AT), [len(score) for _, score in boxes[way]]),
            np.concatenate([xyxy for xyxy, _ in boxes[way]]),
            np.concatenate([score for _, score in boxes[way]]),
            np.repeat(np.arange(LOOKED_AT), [len(xyxy) for xyxy in sure]),
            np.concatenate(sure),
            image_size=[(view.width, view.height) for view in looked_at],
            threshold=threshold,
            repetitions=0,
        )
        overlap = [
            float(max(iou(np.broadcast_to(box, found.shape), found), default=0))
            for box, found in zip(
                np.concatenate(sure),
                (xyxy for (xyxy, _), mine in zip(boxes[way], sure, strict=True) for _ in mine),
                strict=True,
            )
        ]
        print(
            f"{way}: finds {scores.recall.value:.3f} of them, {scores.precision.value:.3f} of its boxes are among them,"
            f" mean overlap {np.mean(overlap):.3f}",
            flush=True,
        )


def compare_with_detector(out: Path, detector: str, rounds: int, seconds: int, run: Any, spread: Any) -> None:
    """Decoding alone and counting from raw pixels, in turn.

    Args:
        out: Folder of the recordings.
        detector: "bundled", or the ONNX file of a detector.
        rounds: How often each is run.
        seconds: How much of the recording is used.
        run: `count.run`.
        spread: `count.spread`.
    """
    recording = out / "10 minutes.mp4"
    quantise(out, detector, recording)
    found: dict[str, list[dict[str, Any]]] = {"decode": [], **{way: [] for way in ENGINES}}
    for _ in range(rounds):
        for way, runs in found.items():
            runs.append(run(way, out, "10 minutes", detector, str(seconds)))
            last = runs[-1]
            steps = ", ".join(f"{step} {taken:.2f}" for step, taken in last["steps"].items())
            said = "".join(f", {last[key]} {key}" for key in ("engine", "frames", "tracklets", "polyps") if key in last)
            print(f"{way}: wall {last['wall']:.1f} s, processor {last['processor']:.1f} s{said}; {steps}", flush=True)
    for clock in ("wall", "processor"):
        print(f"{clock} seconds, of the recording's {seconds} s:")
        for way, runs in found.items():
            times = [mine[clock] / peer[clock] for mine, peer in zip(runs, found["decode"], strict=True)]
            print(f"  {way}: {spread([mine[clock] / seconds for mine in runs])}; {spread(times, 2)} times decoding")
    times = [mine["wall"] / peer["wall"] for mine, peer in zip(found["count"], found["decode"], strict=True)]
    met = statistics.median(times) <= MOST_TIMES
    print(f"at most {MOST_TIMES:g} times the wall time of decoding wanted: {'met' if met else 'NOT met'}", flush=True)
    short = max(mine["peak"] for mine in found["count"])
    long = run("count", out, "20 minutes", detector, str(2 * seconds))["peak"]
    met = max(short, long) < MOST_MB and long <= MOST_GROWTH * short
    print(f"peak memory: {seconds} s {short:.0f} MB, {2 * seconds} s {long:.0f} MB ({long / short - 1:+.1%}); ", end="")
    print(f"below {MOST_MB:,} MB and at most {MOST_GROWTH - 1:.0%} more wanted: {'met' if met else 'NOT met'}")
    compare_looks(out, detector, recording)
