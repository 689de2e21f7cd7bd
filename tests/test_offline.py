"""No library sends usage data, and none leaves files behind."""

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import PROGRAM
from tests.counting.recordings import boxes, recording, write_in


def empty_home(folder: Path) -> dict[str, str]:
    """An environment whose home and temporary folders are empty, as on a new machine."""
    folder.mkdir()
    places = {name: str(folder) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    kept = {name: value for name, value in os.environ.items() if name not in ("ORT_DISABLE_TELEMETRY",)}
    return {**kept, **places, "POLYPCOUNT_ENGINE": "auto"}


def test_onnx_runtime_leaves_no_file_behind(tmp_path: Path) -> None:
    script = "from polypcount.offline import import_offline; import_offline('onnxruntime').get_available_providers()"
    subprocess.run([sys.executable, "-c", script], env=empty_home(tmp_path / "home"), check=True, timeout=120)
    assert list((tmp_path / "home").iterdir()) == []


def test_counting_leaves_nothing_but_its_report(tmp_path: Path) -> None:
    table = write_in("csv", tmp_path / "boxes", boxes(tracks=True, only=slice(0, 1)))
    command: list[str | Path] = [PROGRAM, "count", recording(), "--boxes", table, "--out", tmp_path / "out"]
    subprocess.run(command, env=empty_home(tmp_path / "home"), check=True, timeout=120, capture_output=True)
    assert (tmp_path / "out" / "report.html").exists()
    assert list((tmp_path / "home").rglob("*")) == []
