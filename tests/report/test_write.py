"""The folder of a report: whole or not at all, and nobody's files lost."""

import csv
import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polypcount.corpus import Video
from polypcount.errors import DataError, FileError
from polypcount.importers import read_corpus
from polypcount.report import read_count, refuse_unsuitable_report, write_report
from polypcount.report import write as write_module
from tests.report.reports import report_of

FILES = ["count.json", "polyps.csv", "report.html", "tracklets.csv"]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_four_files_and_nothing_beside_them(tmp_path: Path) -> None:
    assert write_report(report_of([1, 2, 1]), tmp_path / "new" / "case") == tmp_path / "new" / "case"
    assert names(tmp_path) == [f"new/case/{name}" for name in FILES]


def test_a_report_saves_itself(tmp_path: Path) -> None:
    assert report_of([1]).save(tmp_path / "a", export=("coco",)) == tmp_path / "a"
    assert names(tmp_path / "a") == sorted([*FILES, "boxes-coco/boxes.json"])


def test_tables_say_what_count_json_says(tmp_path: Path) -> None:
    folder = write_report(report_of([1, 2, 1]), tmp_path / "a")
    found = read_count(folder)
    polyps, tracklets = rows_of(folder / "polyps.csv"), rows_of(folder / "tracklets.csv")
    assert polyps[0] == {
        "video": "case-01",
        "polyp": "1",
        "first_seen_frame": "100",
        "last_seen_frame": "419",
        "first_seen_seconds": "4.0",
        "last_seen_seconds": "16.76",
        "visible_frames": "80",
        "visible_seconds": "3.2",
        "tracklets": "2",
        "certainty": "0.92",
        "best_frame": "400",
    }
    assert [int(row["polyp"]) for row in tracklets] == [one["polyp"] for one in found["tracklets"]]
    assert tracklets[1] == {
        "video": "case-01",
        "tracklet": "1",
        "polyp": "2",
        "start_frame": "240",
        "stop_frame": "280",
        "start_seconds": "9.6",
        "stop_seconds": "11.2",
        "box_count": "40",
        "mean_score": "",
        "best_score": "",
        "probability": "",
    }


def test_what_is_not_known_is_an_empty_cell(tmp_path: Path) -> None:
    folder = write_report(report_of([1], pictures=False, fps=None), tmp_path / "a")
    (row,) = rows_of(folder / "polyps.csv")
    assert (row["first_seen_seconds"], row["best_frame"]) == ("", "")


def test_headers_are_there_without_rows(tmp_path: Path) -> None:
    folder = write_report(report_of([]), tmp_path / "a")
    assert rows_of(folder / "polyps.csv") == []
    assert (folder / "tracklets.csv").read_text().startswith("video,tracklet,polyp,start_frame")


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    folder = write_report(report_of([1], video=Video("=1+1", 1000, 25)), tmp_path / "a")
    for name in ("polyps.csv", "tracklets.csv"):
        assert [row["video"] for row in rows_of(folder / name)] == ["'=1+1"]


def test_names_that_are_no_valid_text_can_be_written(tmp_path: Path) -> None:
    folder = write_report(report_of([1], video=Video("case\udcff", 1000, 25)), tmp_path / "a")
    assert read_count(folder)["video"]["id"] == "case\\udcff"
    assert "case\\udcff" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("format", ["coco", "mot", "cvat"])
def test_exported_boxes_carry_the_polyps_that_were_counted(tmp_path: Path, format: str) -> None:
    report = report_of([1, 2, 1])
    assert report.tracklet is not None
    some = np.where(np.arange(120) % 4 == 0, -1, report.tracklet)
    report = report_of([1, 2, 1], tracklet=some.astype(np.int32))
    folder = write_report(report, tmp_path / "a", export=(format, format))
    place = folder / f"boxes-{format}"
    found = read_corpus(format, place / "boxes.json" if format == "coco" else place, cache=False)
    assert len(found.boxes) == 120
    mine = [None if row < 0 else found.polyps[row].id for row in found.boxes.polyp]
    expected = report.polyp_of_boxes()
    groups = {(a, int(b)) for a, b in zip(mine, expected, strict=True)}
    assert len(groups) == len({a for a, _ in groups}) == len({b for _, b in groups}) == 3
    assert (None, -1) in groups
    assert "secret" not in "".join(path.read_text() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("changed", "export", "message"),
    [
        ({}, ("word",), "word"),
        ({}, ("coco", "sun"), "sun"),
        ({"boxes": None, "tracklet": None}, ("coco",), "boxes"),
    ],
)
def test_exports_that_cannot_be_made_leave_nothing(
    tmp_path: Path, changed: dict[str, Any], export: tuple[str, ...], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        write_report(report_of([1], **changed), tmp_path / "a", export=export)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    folder = write_report(report_of([1]), tmp_path / "a")
    before = (folder / "report.html").read_bytes()
    with pytest.raises(FileError, match="exists already") as caught:
        write_report(report_of([1, 2]), folder)
    assert caught.value.mend == ("force",)
    assert (folder / "report.html").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_force_replaces_a_report_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    folder = write_report(report_of([1]), tmp_path / "a", export=("coco", "mot"))
    (folder / "annotated.mp4").write_bytes(b"old")
    (folder / ".DS_Store").write_bytes(b"")
    write_report(report_of([1, 2]), folder, force=True)
    assert names(tmp_path) == [f"a/{name}" for name in FILES]
    assert read_count(folder)["count"] == 2


def test_force_takes_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    write_report(report_of([1]), tmp_path / "a", force=True)
    assert names(tmp_path / "a") == FILES


@pytest.mark.parametrize("name", ["notes.txt", "boxes-coco/mine.json", "sub/deep/x"])
def test_force_never_deletes_what_is_not_of_a_report(tmp_path: Path, name: str) -> None:
    folder = write_report(report_of([1]), tmp_path / "a", export=("coco",))
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("mine")
    with pytest.raises(FileError, match=f"holds {name}, which would be deleted"):
        write_report(report_of([1, 2]), folder, force=True)
    assert (folder / name).read_text() == "mine"
    assert read_count(folder)["count"] == 1


def test_force_never_deletes_links(tmp_path: Path) -> None:
    folder = write_report(report_of([1]), tmp_path / "a")
    (tmp_path / "other").mkdir()
    (folder / "link").symlink_to(tmp_path / "other")
    with pytest.raises(FileError, match="holds link, which"):
        write_report(report_of([1]), folder, force=True)


@pytest.mark.parametrize("content", [None, "{}", '{"format": "polypcount-corpus"}'])
def test_force_leaves_other_folders_alone(tmp_path: Path, content: str | None) -> None:
    (tmp_path / "thesis.doc").write_text("mine")
    if content is not None:
        (tmp_path / "count.json").write_text(content)
    with pytest.raises(FileError, match="holds files but no report"):
        write_report(report_of([1]), tmp_path, force=True)
    assert (tmp_path / "thesis.doc").read_text() == "mine"


def test_files_and_links_are_no_place_for_a_report(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileError, match="is a file"):
        refuse_unsuitable_report(tmp_path / "file", force=True)
    with pytest.raises(FileError, match="file/a cannot be written"):
        refuse_unsuitable_report(tmp_path / "file" / "a")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileError, match="is a link"):
        refuse_unsuitable_report(tmp_path / "link", force=True)
    refuse_unsuitable_report(tmp_path / "new")


def test_the_folder_may_be_given_relative_to_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert write_report(report_of([1]), "a") == Path("a")
    assert names(tmp_path / "a") == FILES


def test_a_full_disk_is_one_line_and_leaves_what_was_there(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    import signal

    folder = write_report(report_of([1]), tmp_path / "a")
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(FileError, match="a: the report cannot be written: File too large") as caught:
            write_report(report_of(range(1, 30)), folder, force=True)
        with pytest.raises(FileError, match="b: the report cannot be written: File too large"):
            write_report(report_of(range(1, 30)), tmp_path / "b")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert read_count(folder)["count"] == 1


def test_no_space_left_while_boxes_are_exported_names_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from polypcount.importers.boxes import coco_write

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(coco_write, "write", full)
    monkeypatch.setattr("polypcount.importers.boxes.coco.write", full, raising=False)
    with pytest.raises(FileError, match=f"^{tmp_path}/a: the report cannot be written: No space left on device$"):
        write_report(report_of([1]), tmp_path / "a", export=("coco",))
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_cannot_take_its_place_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_report(report_of([1]), tmp_path / "a")
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError(errno.EACCES, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(FileError, match="a: the report cannot be written: Permission denied"):
        write_module.write_report(report_of([1, 2]), folder, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert json.loads((folder / "count.json").read_text())["count"] == 1
