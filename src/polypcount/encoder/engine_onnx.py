"""The engine `onnx`: ONNX Runtime, on CUDA where it has that, otherwise on the processor."""

from typing import Any

import numpy as np

from polypcount.encoder.engines import (
    FrameModel,
    ModelShapes,
    SequenceModel,
    frame_shapes,
    normalised,
    refuse_other_model,
    sequence_shapes,
)
from polypcount.encoder.spec import EncoderSpec
from polypcount.errors import FileError
from polypcount.machine import available_cores
from polypcount.offline import import_offline

_CPU = "CPUExecutionProvider"
_CUDA = "CUDAExecutionProvider"


def open_frames(content: bytes, source: object, spec: EncoderSpec, threads: int | None) -> FrameModel:
    """The frame model of an ONNX file; `source` is its name, for messages."""
    session = open_session(content, source, frame_shapes(spec), threads, best_providers())
    return lambda crops: np.asarray(session.run(None, {"images": normalised(crops, spec.preprocessing)})[0])


def open_sequences(content: bytes, source: object, spec: EncoderSpec, threads: int | None) -> SequenceModel:
    """The sequence model of an ONNX file; `source` is its name, for messages."""
    session = open_session(content, source, sequence_shapes(spec), threads, best_providers())
    return lambda features, mask: np.asarray(session.run(None, {"features": features, "mask": mask})[0])


def best_providers() -> list[Any]:
    """What to compute with, best first: CUDA where this ONNX Runtime has it, then the processor."""
    onnxruntime = import_offline("onnxruntime")
    # TF32 would leave a precision of only three digits.
    cuda = [(_CUDA, {"use_tf32": "0"})] if _CUDA in onnxruntime.get_available_providers() else []
    return [*cuda, _CPU]


def open_session(
    content: bytes,
    source: object,
    expected: ModelShapes,
    threads: int | None = None,
    providers: list[Any] | None = None,
) -> Any:
    """An `onnxruntime.InferenceSession` over a model with these inputs and outputs; by default on the processor."""
    onnxruntime = import_offline("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are raised; the library would print them as well
    options.intra_op_num_threads = threads or available_cores()
    try:
        session = onnxruntime.InferenceSession(content, options, providers=providers or [_CPU])
    except Exception as problem:  # its errors share no parent
        raise FileError(f"{source} is damaged or not an ONNX model; save the encoder again") from problem
    ends = (session.get_inputs(), session.get_outputs())
    refuse_other_model(source, expected, [{end.name: end.shape for end in side} for side in ends])
    return session
