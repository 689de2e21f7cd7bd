"""What computes a detector: ONNX Runtime, or OpenVINO on the processor."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.encoder.engine_onnx import best_providers, failure, new_session, session_options
from polypcount.encoder.engines import refuse_unusable
from polypcount.errors import FileError, first_line
from polypcount.machine import available_cores
from polypcount.offline import openvino_core

_LOG = logging.getLogger(__name__)
# Most by which outputs of two engines may differ: in their unit (scores, pixels), and as a share of the value.
_MOST_APART, _MOST_SHARE = 1e-3, 1e-4

# From inputs and the names of outputs to these outputs.
Runner = Callable[[Mapping[str, NDArray[Any]], Sequence[str]], list[NDArray[Any]]]


class EngineError(Exception):
    """A runner fails; the message is the reason that its library gives."""


def open_session(path: Path) -> Any:
    """The `onnxruntime.InferenceSession` of a file; its errors are those of the library."""
    options = session_options(available_cores())
    # Threads that wait for the next image by spinning take the cores from decoding it.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return new_session(str(path), options, best_providers())


def onnx_runner(session: Any) -> Runner:
    """Run a session of ONNX Runtime."""

    def run(inputs: Mapping[str, NDArray[Any]], outputs: Sequence[str]) -> list[NDArray[Any]]:
        try:
            return [np.asarray(value) for value in session.run(list(outputs), dict(inputs))]
        except Exception as problem:  # the errors of ONNX Runtime share no parent
            raise EngineError(failure(problem)) from problem

    return run


def openvino_runner(path: Path, inputs: Mapping[str, Sequence[int]]) -> Runner:
    """Run the file with OpenVINO, on the processor, in 32 bits. inputs: The shape of each input, by name.

    Raises:
        PolypcountError: OpenVINO is not installed.
        FileError: It cannot read or run the file.
    """
    refuse_unusable("openvino")
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",  # must not round to 16 bits
        "INFERENCE_NUM_THREADS": available_cores(),
    }
    try:
        core = openvino_core()
        network = core.read_model(str(path))
        network.reshape({name: list(shape) for name, shape in inputs.items()})
        request = core.compile_model(network, "CPU", settings).create_infer_request()
    except Exception as problem:  # OpenVINO raises errors of many kinds for an operation that it does not have
        raise FileError(
            f"{path} cannot be run with OpenVINO ({first_line(problem)}); use the engine onnx", mend="detector.engine"
        ) from problem

    def run(values: Mapping[str, NDArray[Any]], outputs: Sequence[str]) -> list[NDArray[Any]]:
        try:
            request.infer(dict(values), share_inputs=True)
            # The next image overwrites the outputs, so they are copied.
            return [np.array(request.get_tensor(name).data) for name in outputs]
        except Exception as problem:
            raise EngineError(first_line(problem)) from problem

    return run


def trusted_openvino(
    path: Path, expected: Mapping[str, NDArray[Any]], inputs: Mapping[str, NDArray[Any]]
) -> Runner | None:
    """OpenVINO for a file, if it is installed and gives what ONNX Runtime gives.

    Args:
        path: The file.
        expected: Outputs of ONNX Runtime by name.
        inputs: What they were computed from.
    """
    try:
        runner = openvino_runner(path, {name: values.shape for name, values in inputs.items()})
        found = runner(inputs, list(expected))
    except (FileError, EngineError) as problem:
        _LOG.info("ONNX Runtime is used, since OpenVINO fails: %s", first_line(problem))
        return None
    for (name, wanted), values in zip(expected.items(), found, strict=True):
        if values.shape != wanted.shape or not np.allclose(values, wanted, _MOST_SHARE, _MOST_APART):
            _LOG.info("ONNX Runtime is used, since OpenVINO gives another output %s", name)
            return None
    return runner
