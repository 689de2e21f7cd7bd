"""docs/python.md names every public name, and its examples run."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import polypcount
from tests.counting.recordings import boxes, recording, write_in
from tests.detection.onnx_detectors import finder

PAGE = (Path(__file__).parents[1] / "docs" / "python.md").read_text(encoding="utf-8")


def test_every_public_name_is_listed_and_used() -> None:
    examples = "".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
    listed = set(re.findall(r"`(\w+)`", "".join(line for line in PAGE.splitlines() if line.startswith("| `"))))
    names = set(polypcount.__all__) - {"__version__"}
    assert names - set(re.findall(r"pc\.(\w+)", examples)) == set()
    assert names - listed == set()


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLYPCOUNT_CACHE", str(tmp_path / "cache"))
    shutil.copy(recording(), "case.mp4")
    shutil.copy(write_in("coco", tmp_path / "coco", boxes(tracks=True)), "case.json")
    finder(tmp_path / "detector.onnx", "yolo-classes", (160, 128))
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        exec(block, names)
    assert names["report"].count == 3
    assert names["live"].count == names["polyps_so_far"] == 1
    assert len(names["pieces"]) == 1
    assert (tmp_path / "run" / "encoder.json").exists()
