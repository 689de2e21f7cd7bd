"""The engine `openvino`: the same ONNX models through OpenVINO on the processor."""

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.encoder.engines import (
    FrameModel,
    ModelShapes,
    SequenceModel,
    frame_shapes,
    refuse_other_model,
    sequence_shapes,
)
from polypcount.encoder.spec import EncoderSpec, Preprocessing
from polypcount.errors import FileError
from polypcount.machine import available_cores
from polypcount.offline import import_offline, openvino_core

# Few enough that the output of each layer stays in the processor's cache.
_CROPS_AT_ONCE = 8


def open_frames(content: bytes, source: object, spec: EncoderSpec, threads: int | None) -> FrameModel:
    """The frame model of an ONNX file; `source` is its name, for messages."""
    network = _taking_pixels(_read_network(content, source, frame_shapes(spec)), spec.preprocessing)
    infer = _compiled(network, threads)

    def frames(crops: NDArray[np.uint8]) -> NDArray[np.float32]:
        batches = np.split(np.ascontiguousarray(crops), range(_CROPS_AT_ONCE, len(crops), _CROPS_AT_ONCE))
        return np.concatenate([infer([batch]) for batch in batches])

    return frames


def open_sequences(content: bytes, source: object, spec: EncoderSpec, threads: int | None) -> SequenceModel:
    """The sequence model of an ONNX file; `source` is its name, for messages."""
    infer = _compiled(_read_network(content, source, sequence_shapes(spec)), threads)
    return lambda features, mask: infer({"features": features, "mask": mask})


def _read_network(content: bytes, source: object, expected: ModelShapes) -> Any:
    """An `openvino.Model` from an ONNX file, with these inputs and outputs."""
    try:
        network = openvino_core().read_model(content)
        ends = [{end.get_any_name(): _axes(end) for end in side} for side in (network.inputs, network.outputs)]
    except RuntimeError as problem:
        raise FileError(f"{source} is damaged or not an ONNX model; save the encoder again") from problem
    refuse_other_model(source, expected, ends)
    return network


def _compiled(network: Any, threads: int | None) -> Any:
    """A function from inputs to the only output; any number of threads may call it."""
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",  # must not round to 16 bits
        "INFERENCE_NUM_THREADS": threads or available_cores(),
    }
    request = openvino_core().compile_model(network, "CPU", settings).create_infer_request()
    one_at_a_time = threading.Lock()

    def infer(inputs: Any) -> NDArray[np.float32]:
        with one_at_a_time:  # the next call overwrites the output, so it is copied
            return np.array(request.infer(inputs, share_inputs=True, share_outputs=True)[0])

    return infer


def _taking_pixels(network: Any, images: Preprocessing) -> Any:
    """The network with the conversion from pixels to numbers in front of it."""
    openvino = import_offline("openvino")
    steps = openvino.preprocess.PrePostProcessor(network)
    pixels = steps.input(0)
    pixels.tensor().set_element_type(openvino.Type.u8).set_layout(openvino.Layout("NHWC"))
    pixels.model().set_layout(openvino.Layout("NCHW"))
    convert = pixels.preprocess().convert_element_type(openvino.Type.f32)
    convert.mean([255 * value for value in images.mean]).scale([255 * value for value in images.std])
    return steps.build()


def _axes(end: Any) -> list[int | str]:
    if end.partial_shape.rank.is_dynamic:
        return []
    return [axis.get_length() if axis.is_static else "?" for axis in end.partial_shape]
