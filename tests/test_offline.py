"""No library sends usage data, and none leaves files behind."""

import os
import subprocess
import sys
from pathlib import Path


def test_onnx_runtime_leaves_no_file_behind(tmp_path: Path) -> None:
    script = "from polypcount.offline import import_offline; import_offline('onnxruntime').get_available_providers()"
    places = {name: str(tmp_path) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_DATA_HOME")}
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    subprocess.run([sys.executable, "-c", script], env={**environment, **places}, check=True, timeout=120)
    assert list(tmp_path.iterdir()) == []
