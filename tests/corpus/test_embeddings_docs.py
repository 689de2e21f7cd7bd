"""The page on embeddings of one's own: its example runs as it stands, and its table names every column."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polypcount.corpus import Embeddings
from polypcount.corpus.embeddings.formats import OPTIONAL, REQUIRED

PAGE = (Path(__file__).parents[2] / "docs" / "bring-your-own-embeddings.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        exec(block.replace("procedures=19", "procedures=5"), names)  # fewer, to be quick
    mine, gathered = Embeddings.load("mine.parquet"), Embeddings.load("mine-gathered.parquet")
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{len(mine)} tracklets of {len(mine.polyps)} polyps in 5 videos"
    assert re.fullmatch(r"FR \d+\.\d\d at FPR 0\.\d{3}", second)
    assert (tmp_path / "study" / "study.json").exists()
    for name in ("video", "start_frame", "stop_frame", "box_count", "vectors"):
        assert np.array_equal(getattr(mine, name), getattr(gathered, name))
    assert [mine.polyps[row].id for row in mine.polyp] == [gathered.polyps[row].id for row in gathered.polyp]
    assert len(gathered.polyps) >= len(mine.polyps)
    assert {tuple(pair) for pair in gathered.together.tolist()} <= {tuple(pair) for pair in mine.together.tolist()}


def test_the_table_has_every_column() -> None:
    rows = dict(re.findall(r"^\| `(\w+)`.*? \| .*? \| (yes|no) \|", PAGE, re.MULTILINE))
    assert rows == {
        **dict.fromkeys((*REQUIRED, "vector"), "yes"),
        **dict.fromkeys((*OPTIONAL, "together"), "no"),
    }
