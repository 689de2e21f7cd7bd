"""Libraries that would send usage data to their makers, imported so that they cannot."""

import importlib
import os
import sys
import warnings
from typing import Any

_OPENVINO_SENDER = "openvino_telemetry"


def import_offline(name: str) -> Any:
    """Import `onnxruntime`, `openvino` or `nncf` with its telemetry off.

    ONNX Runtime reads `ORT_DISABLE_TELEMETRY` when it is loaded; turning telemetry off later does not stop it.
    OpenVINO and NNCF send a message when they are imported, unless the package that sends it is not installed; so
    that package is hidden from them during the import.
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
