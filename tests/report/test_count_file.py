"""count.json: what is in it, and what its reader refuses."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polypcount.errors import FileError, PolypcountError
from polypcount.report import read_count, write_report
from polypcount.report.count_file import count_values
from tests.report.reports import MEANING, report_of


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = write_report(report_of([1, 2, 1]), tmp_path_factory.mktemp("count") / "report")
    return read_count(folder)


def test_what_is_in_it(good: dict[str, Any]) -> None:
    assert list(good) == [
        "format", "format_version", "count", "interval", "video", "polyps", "tracklets", "pairs", "repeated",
        "left_out", "retired", "seconds", "remarks", "provenance", "files",
    ]  # fmt: skip
    assert (good["format"], good["format_version"], good["count"]) == ("polypcount-count", 1, 2)
    assert good["interval"] == {"low": 1, "high": 3, "level": 0.95, "meaning": MEANING}
    assert good["video"] == {
        "id": "case-01",
        "file": "case-01.mp4",
        "fps": 25.0,
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
    }
    assert good["pairs"] == [{"first": 0, "second": 1, "together": 0.4, "doubt": "one?"}]
    assert good["repeated"] == [2] * 60
    assert (good["left_out"], good["retired"]) == (2, 0)
    assert good["seconds"] == {"decode": 1.25, "embed": 75.0}
    assert good["files"] == ["polyps.csv", "report.html", "tracklets.csv"]


def test_it_names_no_folder(good: dict[str, Any]) -> None:
    assert "secret" not in json.dumps(good)
    assert good["provenance"]["sources"] == ["case-01.mp4", "boxes.json"]
    assert good["provenance"]["parameters"]["parameters"]["of"] == "x"


def test_what_is_not_known_is_null() -> None:
    found = count_values(report_of([1], pictures=False, fps=None))
    assert found["video"]["duration_seconds"] is None
    assert found["tracklets"][0]["start_seconds"] is None
    polyp = found["polyps"][0]
    assert [polyp[name] for name in ("first_seen_seconds", "visible_seconds", "best_frame")] == [None, None, None]


@pytest.mark.parametrize("groups", [[], [1], list(range(1, 61))])
@pytest.mark.parametrize("fps", [None, 29.97])
def test_small_and_large_counts_read_back(tmp_path: Path, groups: list[int], fps: float | None) -> None:
    report = report_of(groups, pictures=False, fps=fps, retired=len(groups) % 2)
    found = read_count(write_report(report, tmp_path / "a"))
    assert {key: value for key, value in found.items() if key != "files"} == count_values(report)
    assert found["count"] == report.count


def put(path: tuple[Any, ...], value: Any) -> Callable[[Any], Any]:
    def change(count: Any) -> Any:
        for key in path[:-1]:
            count = count[key]
        count[path[-1]] = value
        return None

    return change


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "other", '"format" must be "polypcount-count"'),
        (("format_version",), True, "format_version must be a whole number from 1, found True"),
        (("format_version",), 0, "format_version must be a whole number from 1"),
        (("format_version",), 2, "format version 2, this polypcount reads up to 1: upgrade polypcount"),
        (("count",), "2", "count must be a whole number, found '2'"),
        (("count",), True, "count must be a whole number, found True"),
        (("count",), 7, "count must be the number of polyps and those retired, found 7"),
        (("interval", "level"), None, "interval: level must be a number, found None"),
        (("interval", "meaning"), 5, "interval: meaning must be a text"),
        (("video",), [], r"video must be an object, found \[\]"),
        (("video", "fps"), "25", "video: fps must be a number, found '25'"),
        (("polyps", 1, "number"), 3, "polyps must be numbered from 1 in their order"),
        (("polyps", 0, "tracklets"), [0], "do not say the same of who belongs to whom"),
        (("polyps", 0, "tracklets"), [0, 2, 2], "do not say the same of who belongs to whom"),
        (("polyps", 0, "tracklets"), [0, -1], "do not say the same of who belongs to whom"),
        (("polyps", 0, "tracklets"), "02", r"polyps\[0\]: tracklets must be a list"),
        (("tracklets", 2, "polyp"), 2, "do not say the same of who belongs to whom"),
        (("tracklets", 2, "start_frame"), 1.5, r"tracklets\[2\]: start_frame must be a whole number, found 1.5"),
        (("pairs", 0, "second"), 3, "a pair names a tracklet that is not there"),
        (("pairs", 0, "first"), -1, "a pair names a tracklet that is not there"),
        (("remarks",), "none", "remarks must be a list"),
        (("seconds",), [], "seconds must be an object"),
        (("files",), [1], r"files\[0\] must be a text"),
    ],
)
def test_a_bad_field_is_named_in_one_line(
    tmp_path: Path, good: dict[str, Any], path: tuple[Any, ...], value: Any, message: str
) -> None:
    changed = json.loads(json.dumps(good))
    put(path, value)(changed)
    (tmp_path / "count.json").write_text(json.dumps(changed))
    with pytest.raises(FileError, match=message) as caught:
        read_count(tmp_path / "count.json")
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "count.json") in str(caught.value)


@pytest.mark.parametrize(
    "field", ["count", "interval", "video", "polyps", "tracklets", "pairs", "repeated", "remarks", "provenance"]
)
def test_a_missing_field_is_named(tmp_path: Path, good: dict[str, Any], field: str) -> None:
    (tmp_path / "count.json").write_text(json.dumps({key: value for key, value in good.items() if key != field}))
    with pytest.raises(FileError, match=f"{field} is missing"):
        read_count(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"format": NaN}', b"9" * 10_000],
)
def test_other_files_are_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "count.json").write_bytes(content)
    with pytest.raises(FileError) as caught:
        read_count(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"count\.json cannot be read"):
        read_count(tmp_path)


def test_fields_that_are_not_known_yet_are_left(tmp_path: Path, good: dict[str, Any]) -> None:
    (tmp_path / "count.json").write_text(json.dumps({**good, "later": [1]}))
    assert read_count(tmp_path)["later"] == [1]


def test_every_field_is_documented(good: dict[str, Any]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    fields = set(good) | {name for key in ("interval", "video") for name in good[key]}
    fields |= {name for key in ("polyps", "tracklets", "pairs") for name in good[key][0]}
    assert [name for name in sorted(fields) if f"`{name}`" not in text] == []


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
        assert read_count(path)["format_version"] == 1
