"""The engine `openvino`: the same ONNX models through OpenVINO on the processor, in 32 bits."""

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.encoder.engines import (
    SequenceModel,
    Shapes,
    frame_shapes,
    refuse_other_model,
    sequence_shapes,
)
from polypcount.encoder.spec import EncoderSpec, Preprocessing
from polypcount.errors import FileError
from polypcount.machine import available_cores
from polypcount.offline import import_offline

# What a layer gives to the next stays in the cache of the processor.
_CROPS_AT_ONCE = 8


class OpenVinoFrames:
    """A frame model that takes crops as they are: pixels become numbers inside the compiled graph.

    Args:
        network: an `openvino.Model`, normalised images float32[n, 3, size, size] -> features.
        preprocessing: mean and std.
        threads: for each call; all available cores if not given.
    """

    def __init__(self, network: Any, preprocessing: Preprocessing, threads: int | None) -> None:
        self.network = network
        self.preprocessing = preprocessing
        self.threads = threads
        self._request = compiled(_taking_pixels(network, preprocessing), threads).create_infer_request()
        self._one_at_a_time = threading.Lock()

    def __call__(self, crops: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Crops uint8[n, size, size, 3], red first -> features float32[n, f]."""
        parts = []
        for start in range(0, len(crops), _CROPS_AT_ONCE):
            part = np.ascontiguousarray(crops[start : start + _CROPS_AT_ONCE])
            with self._one_at_a_time:
                parts.append(np.array(self._request.infer([part], share_inputs=True, share_outputs=True)[0]))
        return np.concatenate(parts)


def open_frames(content: bytes, source: object, spec: EncoderSpec, threads: int | None) -> OpenVinoFrames:
    """The frame model of an ONNX file. source: its name, for messages."""
    return OpenVinoFrames(read_network(content, source, frame_shapes(spec)), spec.preprocessing, threads)


def open_sequences(content: bytes, source: object, spec: EncoderSpec, threads: int | None) -> SequenceModel:
    """The sequence model of an ONNX file. source: its name, for messages."""
    request = compiled(read_network(content, source, sequence_shapes(spec)), threads).create_infer_request()
    one_at_a_time = threading.Lock()

    def sequences(features: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
        with one_at_a_time:
            found = request.infer({"features": features, "mask": mask}, share_inputs=True, share_outputs=True)[0]
            return np.array(found)

    return sequences


def read_network(content: bytes, source: object, expected: tuple[Shapes, Shapes]) -> Any:
    """An `openvino.Model` from an ONNX file, with these inputs and outputs."""
    openvino = import_offline("openvino")
    try:
        network = openvino.Core().read_model(content)
        ends = [{end.get_any_name(): _axes(end) for end in side} for side in (network.inputs, network.outputs)]
    except RuntimeError as problem:
        raise FileError(f"{source} is damaged or not an ONNX model; save the encoder again") from problem
    refuse_other_model(source, expected, tuple(ends))
    return network


def compiled(network: Any, threads: int | None) -> Any:
    """An `openvino.CompiledModel` for the processor, which may not round what is 32 bits to 16."""
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads or available_cores(),
    }
    return import_offline("openvino").Core().compile_model(network, "CPU", settings)


def _taking_pixels(network: Any, images: Preprocessing) -> Any:
    openvino = import_offline("openvino")
    steps = openvino.preprocess.PrePostProcessor(network.clone())
    given = steps.input(0)
    given.tensor().set_element_type(openvino.Type.u8).set_layout(openvino.Layout("NHWC"))
    given.model().set_layout(openvino.Layout("NCHW"))
    convert = given.preprocess().convert_element_type(openvino.Type.f32)
    convert.mean([255 * value for value in images.mean]).scale([255 * value for value in images.std])
    return steps.build()


def _axes(end: Any) -> list[int | str]:
    if end.partial_shape.rank.is_dynamic:
        return []
    return [axis.get_length() if axis.is_static else "?" for axis in end.partial_shape]
