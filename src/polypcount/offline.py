"""Import libraries that send usage data to their makers so that they cannot send it."""

import importlib
import os
import sys
import warnings
from typing import Any

_OPENVINO_SENDER = "openvino_telemetry"


def import_offline(name: str) -> Any:
    """Import `onnxruntime` or `openvino` with its telemetry off.

    ONNX Runtime reads `ORT_DISABLE_TELEMETRY` when it is loaded; turning telemetry off later does not stop it.
    OpenVINO sends a message when it is imported, unless the package that sends it is not installed; so that package is
    hidden from it during the import.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    hidden = _OPENVINO_SENDER not in sys.modules
    if hidden:
        sys.modules[_OPENVINO_SENDER] = None  # type: ignore[assignment]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    finally:
        if hidden:
            sys.modules.pop(_OPENVINO_SENDER, None)
