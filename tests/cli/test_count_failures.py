"""`polypcount count` when the disk is full, files are damaged, names are double, or somebody ends it."""

import csv
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from polypcount.corpus import Boxes, Corpus, Video
from polypcount.counting import CountReport
from polypcount.report import read_count
from polypcount.storage import only_writer
from polypcount.video.write import write_video
from tests.cli.test_count import case_in
from tests.conftest import Run
from tests.counting.recordings import FPS, HEIGHT, WIDTH, boxes, frame_at, recording, write_images
from tests.detection.onnx_detectors import finder

PROGRAM = Path(sys.executable).with_name("polypcount")


def whole_or_absent(out: Path) -> bool:
    """Whether there is no report, or one with all of its files."""
    return not out.exists() or all((out / name).is_file() for name in read_count(out)["files"])


def short(path: Path) -> Path:
    """A recording of 12 frames."""
    write_video(path, [frame_at(frame) for frame in range(12)], FPS)
    return path


def with_small_files(blocks: int, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run the program where no file may be larger than so many blocks, of 512 bytes in most shells."""
    command = ["sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh", str(PROGRAM), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    video, table = case_in(tmp_path, "case", boxes(tracks=True))
    before = set(tmp_path.iterdir())
    done = with_small_files(20, "count", video, "--boxes", table, "--out", tmp_path / "out")
    assert done.returncode == 2
    *progress, line = done.stderr.splitlines()
    assert line.endswith(f"{tmp_path}/out: the report cannot be written: File too large")
    assert all(one.endswith("left") for one in progress)  # of a slow machine
    assert set(tmp_path.iterdir()) == before


def test_a_disk_that_is_too_full_for_the_video_keeps_the_count(tmp_path: Path) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (60, HEIGHT, WIDTH, 3), np.uint8)
    frames[:, 16:112, 32:128] = 90  # what the report shows takes little room
    write_video(tmp_path / "one.mp4", frames, FPS, quality=20)
    table = tmp_path / "one.csv"
    table.write_text("frame,x1,y1,x2,y2,track\n" + "".join(f"{k},56,40,104,88,0\n" for k in range(9)))
    asked = ("--video", "--boxes", table, "--out", tmp_path / "a")
    done = with_small_files(300, "count", tmp_path / "one.mp4", *asked)
    assert done.returncode == 2
    assert done.stdout.startswith("1 polyp (no interval)")
    (line,) = done.stderr.splitlines()
    assert "annotated.mp4: the video cannot be written" in line
    assert whole_or_absent(tmp_path / "a")
    assert not (tmp_path / "a" / "annotated.mp4").exists()


def test_a_video_that_fails_does_not_stop_the_others(
    tmp_path: Path, polypcount: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("one", "two"):
        case_in(tmp_path, name, boxes(tracks=True, only=slice(0, 1)))
    monkeypatch.setattr("polypcount.report.write_annotated", full)
    asked = ("--video", "--boxes-dir", tmp_path / "boxes", "--out", tmp_path / "b")
    both = polypcount("count", tmp_path / "one.mp4", tmp_path / "two.mp4", *asked)
    assert both.returncode == 2
    assert both.stderr.count("counted, but") == 2
    assert "2 of 2 counted" in both.stdout
    rows = json.loads((tmp_path / "b" / "summary.json").read_text())["procedures"]
    assert [(row["count"], row["error"]) for row in rows] == [(1, ""), (1, "")]


def test_what_cannot_be_read_is_one_line_and_leaves_nothing(tmp_path: Path, polypcount: Run) -> None:
    video, table = case_in(tmp_path, "case", boxes(tracks=True))
    whole = recording().read_bytes()
    (tmp_path / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "head.mp4").write_bytes(whole[:2000])
    damaged = [(tmp_path / "cut.mp4", table), (tmp_path / "head.mp4", table)]
    if Path("/proc/self/mem").exists():  # a file of which the first bytes cannot be read by anybody
        (tmp_path / "no.mp4").symlink_to("/proc/self/mem")
        (tmp_path / "no.csv").symlink_to("/proc/self/mem")
        damaged += [(tmp_path / "no.mp4", table), (video, tmp_path / "no.csv")]
    for source, given in damaged:
        done = polypcount("count", source, "--boxes", given, "--out", tmp_path / "out")
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert (source if source != video else given).name in done.stderr
        assert not (tmp_path / "out").exists()


def test_without_a_frame_rate_times_are_frames(tmp_path: Path, polypcount: Run) -> None:
    write_images(tmp_path / "case", range(60))
    (tmp_path / "boxes.csv").write_text(
        "frame,x1,y1,x2,y2,track\n" + "".join(f"{k},20,20,68,68,0\n" for k in range(5, 45))
    )
    asked = ("count", tmp_path / "case", "--boxes", tmp_path / "boxes.csv", "--out", tmp_path / "out", "--video")
    done = polypcount(*asked)
    assert done.returncode == 0, done.stderr
    assert "--fps" in done.stdout
    assert (tmp_path / "out" / "annotated.mp4").exists()
    assert json.loads((tmp_path / "out" / "count.json").read_text())["polyps"][0]["visible_seconds"] is None
    again = polypcount(*asked, "--fps", "20", "--force")
    assert "--fps" not in again.stdout
    assert json.loads((tmp_path / "out" / "count.json").read_text())["polyps"][0]["visible_seconds"] == 2.0


def test_of_a_corpus_with_several_videos_one_is_named(tmp_path: Path, polypcount: Run) -> None:
    clip = short(tmp_path / "clip.mp4")
    videos = tuple(Video(name, 12, FPS, WIDTH, HEIGHT, str(clip)) for name in ("one", "two"))
    Corpus(videos, Boxes.empty()).save(tmp_path / "corpus")
    done = polypcount("count", tmp_path / "corpus", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "has 2 videos (one, two)" in done.stderr
    assert "--only" in done.stderr
    detector = finder(tmp_path / "detector.onnx", "yolo-classes", (WIDTH, HEIGHT))
    asked = ("count", tmp_path / "corpus", "--detector", detector, "--out", tmp_path / "found")
    assert "--only" in polypcount(*asked).stderr
    assert polypcount(*asked, "--only", "two").returncode == 0
    assert read_count(tmp_path / "found")["video"]["id"] == "two"


def test_two_recordings_of_one_name_are_told_apart_or_refused(tmp_path: Path, polypcount: Run) -> None:
    places = [short(tmp_path / day / "case.mp4") for day in ("monday", "tuesday")]
    key = ("--pseudonyms", tmp_path / "key.csv")
    by_name = ("--boxes-dir", tmp_path / "monday")
    finding = ("--detector", finder(tmp_path / "detector.onnx", "yolo-classes", (WIDTH, HEIGHT)))
    asked = ("--out", tmp_path / "out")
    for more, told in (
        (finding, "are both called 'case'; rename one, or use --pseudonyms\n"),
        ((*by_name, *key), "are both called 'case'; rename one\n"),
    ):
        done = polypcount("count", *places, *asked, *more)
        assert done.returncode == 2
        assert done.stderr.endswith(f"{places[0]} and {places[1]} {told}")
    twice = polypcount("count", places[0], places[0].parent / ".." / "monday" / "case.mp4", *asked, *key, *finding)
    assert (twice.returncode, "is given twice" in twice.stderr) == (2, True)
    assert not (tmp_path / "out").exists()
    done = polypcount("count", *places, *asked, *key, *finding)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "key.csv").open() as file:
        known = {row["recording"]: row["pseudonym"] for row in csv.DictReader(file)}
    assert set(known) == set(map(str, places))
    assert all((tmp_path / "out" / pseudonym / "report.html").exists() for pseudonym in known.values())


def test_a_summary_is_not_replaced_by_the_news_that_reports_are_there(tmp_path: Path, polypcount: Run) -> None:
    for name in ("one", "two"):
        case_in(tmp_path, name, boxes(tracks=True, only=slice(0, 1)))
    asked = ("count", tmp_path / "one.mp4", tmp_path / "two.mp4", "--boxes-dir", tmp_path / "boxes")
    assert polypcount(*asked, "--out", tmp_path / "out").returncode == 0
    before = (tmp_path / "out" / "summary.json").read_bytes()
    again = polypcount(*asked, "--out", tmp_path / "out")
    assert again.returncode == 2
    (line,) = again.stderr.splitlines()
    assert "--force" in line
    assert (tmp_path / "out" / "summary.json").read_bytes() == before


def test_pseudonyms_are_in_the_names_of_folders_and_in_the_summary(tmp_path: Path, polypcount: Run) -> None:
    case_in(tmp_path, "smith", boxes(tracks=True, only=slice(0, 1)))
    (tmp_path / "jones.mp4").write_bytes(b"no video")
    (tmp_path / "boxes" / "jones.csv").write_text((tmp_path / "boxes" / "smith.csv").read_text())
    (tmp_path / "histology.csv").write_text("video,histology\nsmith,AD\njones,\n")
    asked = (
        "--pseudonyms",
        tmp_path / "key.csv",
        "--boxes-dir",
        tmp_path / "boxes",
        "--histology",
        tmp_path / "histology.csv",
    )
    done = polypcount("count", tmp_path / "smith.mp4", tmp_path / "jones.mp4", *asked, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "jones.mp4" in done.stderr
    for file in (tmp_path / "out").rglob("*"):
        content = file.read_bytes() if file.is_file() else file.name.encode()
        assert b"smith" not in content, file
        assert b"jones" not in content, file
    found = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert [row["count"] for row in found["procedures"]] == [1, None]
    assert [row["adenomas"] for row in found["procedures"]] == [1, 0]
    assert found["adenoma_detection_rate"]["share"] == 0.5
    alone = subprocess.run(
        [PROGRAM, "count", "smith.mp4", "--boxes", "boxes/smith.csv", "--pseudonyms", "key.csv"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert alone.returncode == 0, alone.stderr
    (folder,) = tmp_path.glob("*-count")
    assert folder.name.startswith("procedure_")


def test_of_two_counts_at_once_into_one_folder_one_wins(tmp_path: Path) -> None:
    """Both begin when nothing is there yet. The one that comes second is refused, and says what it counted."""
    video, table = case_in(tmp_path, "case", boxes(tracks=True))
    command: list[str | Path] = [PROGRAM, "count", video, "--boxes", table, "--out", tmp_path / "out"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120) for process in both]
    assert sorted(process.returncode for process in both) == [0, 2]
    out, err = said[0 if both[0].returncode else 1]
    assert len([line for line in err.splitlines() if " s left" not in line]) == 1
    assert str(tmp_path / "out") in err
    assert "--force" in err
    assert whole_or_absent(tmp_path / "out")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert "exists already" in err or out.startswith("3 polyps")


def test_a_report_that_comes_while_counting_is_not_replaced(
    tmp_path: Path, polypcount: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = import_module("polypcount.report.write")
    video, table = case_in(tmp_path, "case", boxes(tracks=True))
    page = write.report_page

    def slow(report: "CountReport") -> str:
        monkeypatch.setattr(write, "report_page", page)
        report.save(tmp_path / "out")  # as another process would
        (tmp_path / "out" / "mine").touch()
        return str(page(report))

    monkeypatch.setattr(write, "report_page", slow)
    done = polypcount("count", video, "--boxes", table, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "the report could not be written" in done.stdout, "the count is not lost"
    (line,) = done.stderr.splitlines()
    assert "another process has written a report there meanwhile" in line
    assert (tmp_path / "out" / "mine").exists()


def test_two_runs_over_several_recordings_do_not_mix(tmp_path: Path, polypcount: Run) -> None:
    for name in ("one", "two"):
        case_in(tmp_path, name, boxes(tracks=True, only=slice(0, 1)))
    asked = ("count", tmp_path / "one.mp4", tmp_path / "two.mp4", "--boxes-dir", tmp_path / "boxes")
    with only_writer(tmp_path / "out", "counting"):
        done = polypcount(*asked, "--out", tmp_path / "out", "--force")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.endswith(f"{tmp_path}/out: another process is counting there; wait for it, or stop it")
    assert not (tmp_path / "out").exists()


def test_a_stopped_run_leaves_no_earlier_summary(
    tmp_path: Path, polypcount: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for name in ("one", "two"):
        case_in(tmp_path, name, boxes(tracks=True, only=slice(0, 1)))
    asked = ("count", tmp_path / "one.mp4", tmp_path / "two.mp4", "--boxes-dir", tmp_path / "boxes")
    assert polypcount(*asked, "--out", tmp_path / "out").returncode == 0
    monkeypatch.setattr(import_module("polypcount.counting.basis"), "decide", stop)
    assert polypcount(*asked, "--out", tmp_path / "out", "--force").returncode == 130
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"one", "two"}
    assert all(whole_or_absent(tmp_path / "out" / name) for name in ("one", "two"))
