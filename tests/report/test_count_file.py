"""count.json: what is in it, and what its reader refuses."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polypcount.errors import FileError, PolypcountError
from polypcount.report import read_count, write_report
from polypcount.report.count_file import count_values
from tests.report.reports import MEANING, detected_report, report_of


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = write_report(report_of([1, 2, 1]), tmp_path_factory.mktemp("count") / "report")
    return read_count(folder)


def test_what_is_in_it(good: dict[str, Any]) -> None:
    assert list(good) == [
        "format", "format_version", "count", "interval", "no_interval", "detector", "video", "polyps", "tracklets",
        "perhaps_no_polyp", "pairs", "repeated", "left_out", "named_polyps", "retired", "seconds", "remarks",
        "provenance", "files",
    ]  # fmt: skip
    assert (good["format"], good["format_version"], good["count"]) == ("polypcount-count", 2, 2)
    assert good["interval"] == {"low": 1, "high": 3, "level": 0.95, "meaning": MEANING}
    assert good["video"] == {
        "id": "case-01",
        "file": "case-01.mp4",
        "fps": 25.0,
        "variable_frame_rate": False,
        "frame_count": 720,
        "duration_seconds": 28.8,
        "width": 64,
        "height": 48,
    }
    assert good["polyps"][0] == {
        "number": 1,
        "tracklets": [0, 2],
        "first_seen_frame": 100,
        "last_seen_frame": 419,
        "first_seen_seconds": 4.0,
        "last_seen_seconds": 16.76,
        "visible_frames": 80,
        "visible_seconds": 3.2,
        "certainty": 0.92,
        "best_frame": {"frame": 400, "seconds": 16.0, "quality": 0.20038},
    }
    assert good["tracklets"][1] == {
        "polyp": 2,
        "start_frame": 240,
        "stop_frame": 280,
        "start_seconds": 9.6,
        "stop_seconds": 11.2,
        "box_count": 40,
        "mean_score": None,
        "best_score": None,
    }
    assert (good["detector"], good["perhaps_no_polyp"]) == (None, [])
    assert good["pairs"] == [{"first": 0, "second": 1, "together": 0.4, "doubt": "one?"}]
    assert good["repeated"] == [2] * 60
    assert (good["left_out"], good["retired"]) == (2, 0)
    assert good["seconds"] == {"decode": 1.25, "embed": 75.0}
    assert good["files"] == ["polyps.csv", "report.html", "tracklets.csv"]


def test_it_names_no_folder(good: dict[str, Any]) -> None:
    assert "secret" not in json.dumps(good)
    assert good["provenance"]["sources"] == ["case-01.mp4", "boxes.json"]
    assert good["provenance"]["parameters"]["parameters"]["of"] == "x"


def test_what_a_detector_found_is_in_it(tmp_path: Path) -> None:
    found = read_count(write_report(detected_report(), tmp_path / "report"))
    assert found["detector"] == {
        "name": "bundled",
        "bundled": True,
        "every_frames": 2,
        "looks": 360,
        "note": "The boxes were found by the bundled detector.",
    }
    assert [(one["mean_score"], one["best_score"]) for one in found["tracklets"]] == [(0.75, 0.875)] * 2
    assert found["perhaps_no_polyp"] == [
        {
            "start_frame": 50,
            "stop_frame": 81,
            "start_seconds": 2.0,
            "stop_seconds": 3.24,
            "box_count": 31,
            "probability": 0.25,
            "mean_score": 0.5,
            "best_score": 0.625,
            "best_frame": 60,
            "best_box": [16.0, 12.0, 48.0, 36.0],
        }
    ]
    lines = (tmp_path / "report" / "tracklets.csv").read_text().splitlines()
    assert lines[0].endswith(",box_count,mean_score,best_score,probability")
    assert lines[2].endswith(",40,0.75,0.875,")
    assert lines[3] == "case-01,,,50,81,2.0,3.24,31,0.5,0.625,0.25"


def test_what_is_not_known_is_null() -> None:
    found = count_values(report_of([1], pictures=False, fps=None))
    assert found["video"]["duration_seconds"] is None
    assert found["tracklets"][0]["start_seconds"] is None
    polyp = found["polyps"][0]
    assert [polyp[name] for name in ("first_seen_seconds", "visible_seconds", "best_frame")] == [None, None, None]


@pytest.mark.parametrize(("groups", "fps"), [([], None), ([1], 29.97), (list(range(1, 61)), 29.97)])
def test_small_and_large_counts_read_back(tmp_path: Path, groups: list[int], fps: float | None) -> None:
    report = report_of(groups, pictures=False, fps=fps, retired=len(groups) % 2)
    count = read_count(write_report(report, tmp_path / "a"))
    assert count == count_values(report, count["files"])
    assert count["count"] == report.count


def test_a_count_of_an_earlier_version_is_read() -> None:
    count = read_count(Path(__file__).parents[1] / "earlier_formats" / "count")
    assert (count["count"], count["video"]["id"], len(count["tracklets"])) == (1, "sim-study-5-000", 3)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("format",), "other"),
        (("format_version",), True),
        (("format_version",), 3),
        (("count",), True),
        (("count",), 7),
        (("interval", "level"), None),
        (("video",), []),
        (("video", "fps"), "25"),
        (("polyps", 1, "number"), 3),
        (("polyps", 0, "tracklets"), [0]),
        (("polyps", 0, "tracklets"), [0, 2, 2]),
        (("polyps", 0, "tracklets"), "02"),
        (("tracklets", 2, "polyp"), 2),
        (("tracklets", 2, "start_frame"), 1.5),
        (("pairs", 0, "second"), 3),
        (("pairs", 0, "first"), -1),
        (("seconds",), []),
        (("files",), [1]),
    ],
)
def test_a_bad_field_is_named_in_one_line(
    tmp_path: Path, good: dict[str, Any], path: tuple[Any, ...], value: Any
) -> None:
    changed = json.loads(json.dumps(good))
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    (tmp_path / "count.json").write_text(json.dumps(changed))
    with pytest.raises(FileError, match=path[0].replace("_", ".")) as caught:
        read_count(tmp_path / "count.json")
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "count.json") in str(caught.value)


@pytest.mark.parametrize("field", ["count", "interval", "provenance"])
def test_a_missing_field_is_named(tmp_path: Path, good: dict[str, Any], field: str) -> None:
    (tmp_path / "count.json").write_text(json.dumps({key: value for key, value in good.items() if key != field}))
    with pytest.raises(FileError, match=f"{field} is missing"):
        read_count(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"\xff\xfe"],
)
def test_other_files_are_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "count.json").write_bytes(content)
    with pytest.raises(FileError) as caught:
        read_count(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"count\.json"):
        read_count(tmp_path)


def test_fields_that_are_not_known_yet_are_left(tmp_path: Path, good: dict[str, Any]) -> None:
    later = {**good, "later": [1], "video": {**good["video"], "also": "later"}}
    (tmp_path / "count.json").write_text(json.dumps(later))
    assert read_count(tmp_path) == later


def test_every_field_is_documented(good: dict[str, Any]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    fields = set(good) | {name for key in ("interval", "video") for name in good[key]}
    fields |= {name for key in ("polyps", "tracklets", "pairs") for name in good[key][0]}
    detected = count_values(detected_report())
    fields |= {*detected["detector"], *detected["perhaps_no_polyp"][0]}
    assert [name for name in sorted(fields) if f"`{name}`" not in text] == []


@settings(max_examples=30)
@given(data=st.data())
def test_whatever_stands_in_a_field_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, good: dict[str, Any], data: st.DataObject
) -> None:
    anything = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=5,
    )
    changed = json.loads(json.dumps(good))
    inside: Any = changed
    while isinstance(inside, (dict, list)) and inside and data.draw(st.booleans()):
        key = data.draw(st.sampled_from(list(inside) if isinstance(inside, dict) else range(len(inside))))
        if not isinstance(inside[key], (dict, list)) or not inside[key] or data.draw(st.booleans()):
            inside[key] = data.draw(anything)
            break
        inside = inside[key]
    path = tmp_path_factory.getbasetemp() / "hostile.json"
    path.write_text(json.dumps(changed))
    with contextlib.suppress(PolypcountError):
        assert read_count(path)["format_version"] in (1, 2)
