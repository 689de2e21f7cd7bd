"""No library sends usage data, and none leaves files behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROGRAM
from tests.counting.recordings import boxes, recording, write_in


def empty_home(folder: Path) -> dict[str, str]:
    """An environment whose home and temporary folders are empty, as on a new machine."""
    folder.mkdir()
    places = {name: str(folder) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    kept = {name: value for name, value in os.environ.items() if not name.endswith("DISABLE_TELEMETRY")}
    return {**kept, **places, "POLYPCOUNT_ENGINE": "auto"}


@pytest.mark.parametrize(
    "script",
    [
        "from polypcount.offline import import_offline; import_offline('onnxruntime').get_available_providers()",
        # Not by us, as torch's exporter does, also in a process of its own.
        "import polypcount, onnxruntime; onnxruntime.get_available_providers()",
        "import polypcount, subprocess, sys; subprocess.run([sys.executable, '-c', 'import onnxruntime'], check=True)",
    ],
)
def test_onnx_runtime_leaves_no_file_behind(tmp_path: Path, script: str) -> None:
    subprocess.run([sys.executable, "-c", script], env=empty_home(tmp_path / "home"), check=True, timeout=120)
    assert list((tmp_path / "home").iterdir()) == []


def test_the_hub_adds_no_usage_data_to_a_download() -> None:
    pytest.importorskip("huggingface_hub")
    script = "import polypcount; from huggingface_hub import constants; print(constants.HF_HUB_DISABLE_TELEMETRY)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "True\n"


def test_counting_leaves_nothing_but_its_report(tmp_path: Path) -> None:
    table = write_in("csv", tmp_path / "boxes", boxes(tracks=True, only=slice(0, 1)))
    command: list[str | Path] = [PROGRAM, "count", recording(), "--boxes", table, "--out", tmp_path / "out"]
    subprocess.run(command, env=empty_home(tmp_path / "home"), check=True, timeout=120, capture_output=True)
    assert (tmp_path / "out" / "report.html").exists()
    assert list((tmp_path / "home").rglob("*")) == []
