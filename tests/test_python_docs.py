"""docs/python.md names every public name; its examples and those of the README run."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import polypcount
from tests.counting.recordings import boxes, recording, write_in
from tests.detection.onnx_detectors import finder
from tests.evaluation.embedded import embedded

PROJECT = Path(__file__).parents[1]
PAGE = (PROJECT / "docs" / "python.md").read_text(encoding="utf-8")


def test_every_public_name_is_listed_and_used() -> None:
    examples = "".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
    listed = set(re.findall(r"`(\w+)`", "".join(line for line in PAGE.splitlines() if line.startswith("| `"))))
    names = set(polypcount.__all__) - {"__version__"}
    assert names - set(re.findall(r"pc\.(\w+)", examples)) == set()
    assert names - listed == set()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the examples name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLYPCOUNT_CACHE", str(tmp_path / "cache"))
    shutil.copy(recording(), "case.mp4")
    shutil.copy(write_in("coco", tmp_path / "coco", boxes(tracks=True)), "case.json")
    return tmp_path


def run(page: str) -> dict[str, Any]:
    """Run the examples of a page, one after the other; the names that they leave."""
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        exec(block, names)
    return names


def test_the_example_of_the_readme_runs(here: Path) -> None:
    embedded([[3, 2], [4], [2, 2]]).save(here / "mine.parquet")
    names = run((PROJECT / "README.md").read_text(encoding="utf-8"))
    assert names["report"].count == 3
    assert names["known"].count <= 4, "at most, as the example says"
    assert (here / "case-count" / "report.html").exists()
    assert (here / "study" / "study.json").exists()


def test_the_examples_run(here: Path) -> None:
    finder(here / "detector.onnx", "yolo-classes", (160, 128))
    names = run(PAGE)
    assert names["report"].count == 3
    assert names["live"].count == names["polyps_so_far"] == 1
    assert len(names["pieces"]) == 1
    assert (here / "run" / "encoder.json").exists()
