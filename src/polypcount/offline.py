"""Keep libraries from sending usage data to their makers.

Importing this module, as `import polypcount` does, turns off what can be turned off by the environment, also for
processes that are started later. ONNX Runtime reads its switch when it is loaded, by us or by torch's exporter; turning
its telemetry off later does not stop it. The hub of transformers would add usage data to a download that was asked for.
"""

import functools
import importlib
import os
import sys
import warnings
from typing import Any

_OPENVINO_SENDER = "openvino_telemetry"

os.environ.update(ORT_DISABLE_TELEMETRY="1", HF_HUB_DISABLE_TELEMETRY="1")


def import_offline(name: str) -> Any:
    """Import `onnxruntime` or `openvino` with its telemetry off.

    OpenVINO sends a message when it is imported, unless the package that sends it is not installed; so that package is
    hidden from it during the import.
    """
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


@functools.cache
def openvino_core() -> Any:
    """The only `openvino.Core` of this process, which lives as long as the process.

    On the processor, OpenVINO gives the thread that first compiles a model another stack for signals. If the last core
    goes in another thread, as the garbage collector may decide, that stack is freed while it is in use, and the next
    Ctrl-C ends Python with a segmentation fault (seen with OpenVINO 2026.4).
    """
    return import_offline("openvino").Core()
