"""The engine `onnx`: ONNX Runtime, on CUDA where it has that, otherwise on the processor."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.encoder.engines import (
    FrameModel,
    SequenceModel,
    Shapes,
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
    """The frame model of an ONNX file. source: its name, for messages."""
    session = open_session(content, source, frame_shapes(spec), threads, best_providers())

    def frames(crops: NDArray[np.uint8]) -> NDArray[np.float32]:
        features: NDArray[np.float32] = session.run(None, {"images": normalised(crops, spec.preprocessing)})[0]
        return features

    return frames


def open_sequences(content: bytes, source: object, spec: EncoderSpec, threads: int | None) -> SequenceModel:
    """The sequence model of an ONNX file. source: its name, for messages."""
    session = open_session(content, source, sequence_shapes(spec), threads, best_providers())

    def sequences(features: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = session.run(None, {"features": features, "mask": mask})[0]
        return vectors

    return sequences


def best_providers() -> list[Any]:
    """What to compute with, the first that works: CUDA where this ONNX Runtime has it, then the processor."""
    onnxruntime = import_offline("onnxruntime")
    # TF32 would leave three digits.
    cuda = [(_CUDA, {"use_tf32": "0"})] if _CUDA in onnxruntime.get_available_providers() else []
    return [*cuda, _CPU]


def open_session(
    content: bytes,
    source: object,
    expected: tuple[Shapes, Shapes],
    threads: int | None = None,
    providers: list[Any] | None = None,
) -> Any:
    """An `onnxruntime.InferenceSession` over a model with these inputs and outputs; on the processor if not told."""
    onnxruntime = import_offline("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is raised; the library would print it as well
    options.intra_op_num_threads = threads or available_cores()
    try:
        session = onnxruntime.InferenceSession(content, options, providers=providers or [_CPU])
    except Exception as problem:  # its errors share no parent
        raise FileError(f"{source} is damaged or not an ONNX model; save the encoder again") from problem
    found = ({entry.name: entry.shape for entry in ends} for ends in (session.get_inputs(), session.get_outputs()))
    refuse_other_model(source, expected, tuple(found))
    return session
