"""The operating point for counting, beside an encoder."""

import json
from pathlib import Path
from typing import Any

import pytest

from polypcount.encoder import bundled_folder, keep_counting_point, operating_points
from polypcount.encoder.bundle import POINTS
from polypcount.errors import DataError, FileError

POINT: dict[str, Any] = {
    "method": "probability-linkage",
    "parameters": {"intercept": -7.0, "looks": 12.0, "time": -0.6, "threshold": 0.7},
    "cannot_link": True,
    "varied": "threshold",
    "values": [0.4, 0.6, 0.7],
    "level": 0.9,
    "selected_on": "a test",
    "measured": {"coverage": 0.9},
}


def test_it_is_kept_alone_or_beside_other_points(tmp_path: Path) -> None:
    keep_counting_point(tmp_path, POINT)
    assert operating_points(tmp_path)["counting"] == POINT
    keep_counting_point(tmp_path, {**POINT, "level": 0.8})
    assert operating_points(tmp_path)["counting"]["level"] == 0.8
    others = operating_points(bundled_folder())
    (tmp_path / POINTS).write_text(json.dumps(others))
    keep_counting_point(tmp_path, POINT)
    found = operating_points(tmp_path)
    assert found["points"] == others["points"]
    assert found["selected_on"] == others["selected_on"]


@pytest.mark.parametrize(
    "change",
    [
        {"values": []},
        {"values": [0.7, 0.4]},
        {"values": ["0.7"]},
        {"level": 1.0},
        {"cannot_link": 1},
        {"parameters": {"threshold": None}},
        {"parameters": {"threshold": 1e12}},
        {"selected_on": ""},
        {"measured": {"coverage": "high"}},
        {"more": 1},
    ],
)
def test_what_is_wrong_is_named_and_not_written(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=next(iter(change))):
        keep_counting_point(tmp_path, {**POINT, **change})
    assert not any(tmp_path.iterdir())
    keep_counting_point(tmp_path, POINT)
    described = json.loads((tmp_path / POINTS).read_text())
    described["counting"].update(change)
    (tmp_path / POINTS).write_text(json.dumps(described))
    with pytest.raises(FileError, match=next(iter(change))):
        operating_points(tmp_path)


def test_without_a_folder_it_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises((FileError, NotADirectoryError)):
        keep_counting_point(tmp_path / "file", POINT)
