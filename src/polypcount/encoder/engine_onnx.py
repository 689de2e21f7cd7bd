"""The engine `onnx`: ONNX Runtime, on CUDA where it has that, otherwise on the processor."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from polypcount.errors import FileError, first_line
from polypcount.machine import available_cores
from polypcount.offline import import_offline

_CPU = "CPUExecutionProvider"
_CUDA = "CUDAExecutionProvider"
_MOST_MEMORY = 1 << 32
_LONGEST_REASON = 160


def open_frames(content: bytes, source: object, spec: EncoderSpec, threads: int | None) -> FrameModel:
    """The frame model of an ONNX file; `source` is its name, for messages."""
    session = open_session(content, source, frame_shapes(spec), threads, best_providers())
    return lambda crops: _run(session, source, images=normalised(crops, spec.preprocessing))


def open_sequences(content: bytes, source: object, spec: EncoderSpec, threads: int | None) -> SequenceModel:
    """The sequence model of an ONNX file; `source` is its name, for messages."""
    session = open_session(content, source, sequence_shapes(spec), threads, best_providers())
    return lambda features, mask: _run(session, source, features=features, mask=mask)


def _run(session: Any, source: object, **inputs: NDArray[Any]) -> NDArray[np.float32]:
    try:
        return np.asarray(session.run(None, inputs)[0])
    except Exception as problem:  # its errors share no parent
        raise FileError(f"{source} fails: {failure(problem)}; save the encoder again") from problem


def best_providers() -> list[Any]:
    """What to compute with, best first: CUDA where this ONNX Runtime has it, then the processor."""
    onnxruntime = import_offline("onnxruntime")
    # TF32 would leave a precision of only three digits.
    cuda = [(_CUDA, {"use_tf32": "0"})] if _CUDA in onnxruntime.get_available_providers() else []
    return [*cuda, _CPU]


def session_options(threads: int) -> Any:
    """Options of a session that prints nothing, and whose tensors take up to 4 GB together with other sessions.

    A small model can ask for any amount: nobody sees in a file how large its tensors become.
    """
    onnxruntime = import_offline("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are raised; the library would print them as well
    options.intra_op_num_threads = threads
    _limit_memory()
    options.add_session_config_entry("session.use_env_allocators", "1")
    return options


def new_session(model: bytes | str, options: Any, providers: list[Any]) -> Any:
    """An `onnxruntime.InferenceSession` over the content or the path of a model.

    Where the processor alone is used there is nothing to fall back to; the library would try again, and print so.
    """
    fallback = int(len(providers) > 1)
    return import_offline("onnxruntime").InferenceSession(model, options, providers=providers, enable_fallback=fallback)


def failure(problem: BaseException) -> str:
    """Why ONNX Runtime failed: the end of its message; names of its functions come before it."""
    text = first_line(problem)
    if isinstance(problem, MemoryError) or "is smaller than requested bytes" in text or "bad allocation" in text:
        return f"it needs more than {_MOST_MEMORY >> 30} GB of memory"
    return text[-_LONGEST_REASON:]


@cache
def _limit_memory() -> None:
    """Give the sessions of this process one pool of memory of limited size."""
    onnxruntime = import_offline("onnxruntime")
    kind = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    onnxruntime.create_and_register_allocator(kind, onnxruntime.OrtArenaCfg({"max_mem": _MOST_MEMORY}))


def open_session(
    content: bytes,
    source: object,
    expected: ModelShapes,
    threads: int | None = None,
    providers: list[Any] | None = None,
) -> Any:
    """An `onnxruntime.InferenceSession` over a model with these inputs and outputs; by default on the processor."""
    options = session_options(threads or available_cores())
    try:
        session = new_session(content, options, providers or [_CPU])
    except Exception as problem:  # its errors share no parent
        raise FileError(f"{source} is damaged or not an ONNX model; save the encoder again") from problem
    ends = (session.get_inputs(), session.get_outputs())
    refuse_other_model(source, expected, [{end.name: end.shape for end in side} for side in ends])
    return session
