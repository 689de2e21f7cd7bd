"""Disks that are full: one line that names the file, and nothing left of it."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from polypcount.corpus import Corpus
from polypcount.simulate import TimelineSettings, simulate_scenes
from tests.conftest import Run
from tests.evaluation.embedded import embedded
from tests.review import disks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts a small disk")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for 16 KiB."""
    with disks.small_disk(tmp_path / "disk", "16k") as folder:
        yield folder


def unfinished(folder: Path) -> list[Path]:
    return list(folder.rglob("*.unfinished"))


def test_a_study(polypcount: Run, tmp_path: Path, small_disk: Path) -> None:
    embedded([[5, 4], [6], [3, 2, 4], [2, 2]], seed=1).save(tmp_path / "a.parquet")
    (small_disk / "other").write_bytes(b"x" * 8192)
    out = small_disk / "study"
    done = polypcount("study", tmp_path / "a.parquet", "--grid", "coarse", "--out", out)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"polypcount: {out}/")
    assert line.endswith(": No space left on device")
    assert not (out / "study.json").exists()
    assert not (out / "summary.md").exists()
    assert unfinished(small_disk) == []


def test_a_cache(polypcount: Run, tmp_path: Path, small_disk: Path) -> None:
    settings = TimelineSettings(minutes=0.2, width=64, height=64)
    corpus: Corpus = simulate_scenes(tmp_path / "scenes", 1, 3, "study", settings=settings, processes=1)
    corpus.save(tmp_path / "corpus")
    asked = ("embed", tmp_path / "corpus", "--out", tmp_path / "v.parquet", "--min-frames", 5)
    done = polypcount(*asked, env={**os.environ, "POLYPCOUNT_CACHE": str(small_disk)})
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert str(small_disk) in line
    assert "No space left on device" in line
    assert "POLYPCOUNT_CACHE" in line
    assert unfinished(small_disk) == []
    assert not (tmp_path / "v.parquet").exists()
