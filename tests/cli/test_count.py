"""`polypcount count` and `demo`, as their users run them."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from polypcount.corpus import Boxes, Corpus, Video
from polypcount.importers import write_boxes
from polypcount.video import open_source
from tests.conftest import Run
from tests.counting.bright import BY_LOOKS, bright, finder_folder
from tests.counting.recordings import FPS, FRAMES, HEIGHT, WIDTH, boxes, recording


@pytest.fixture
def case(tmp_path: Path) -> tuple[Path, Path]:
    """A recording and its boxes."""
    return case_in(tmp_path, "case", boxes(tracks=True))


def case_in(folder: Path, name: str, table: Boxes) -> tuple[Path, Path]:
    shutil.copy(recording(), folder / f"{name}.mp4")
    corpus = Corpus((Video(name, FRAMES, FPS, WIDTH, HEIGHT),), table)
    written = write_boxes(corpus, "csv", folder / f"csv-{name}")
    (folder / "boxes").mkdir(exist_ok=True)
    return folder / f"{name}.mp4", Path(shutil.move(written / "boxes.csv", folder / "boxes" / f"{name}.csv"))


def test_a_recording_is_counted_and_reported(case: tuple[Path, Path], tmp_path: Path, polypcount: Run) -> None:
    video, table = case
    done = polypcount("count", video, "--boxes", table, "--out", tmp_path / "out", "--export", "coco,mot", "--video")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("3 polyps (no interval) in 5 tracklets of case\n  No interval is given: ")
    assert "lasts 8.8 s" in done.stdout
    assert "embed" in done.stdout
    out = tmp_path / "out"
    names = {"report.html", "count.json", "polyps.csv", "tracklets.csv", "boxes-coco", "boxes-mot", "annotated.mp4"}
    assert {entry.name for entry in out.iterdir()} == {*names, "review"}
    found = json.loads((out / "count.json").read_text())
    assert found["count"] == 3
    assert [tracklet["polyp"] for tracklet in found["tracklets"]] == [1, 2, 1, 2, 3]
    assert str(tmp_path) not in (out / "count.json").read_text()
    with (out / "polyps.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 3
    options = ("--polyps", 4, "--engine", "onnx", "--method", "threshold")
    given = polypcount("count", video, "--boxes", table, "--out", tmp_path / "given", *options)
    assert given.stdout.startswith("4 polyps (no interval)")
    assert (
        json.loads((tmp_path / "given" / "count.json").read_text())["provenance"]["parameters"]["method"] == "threshold"
    )
    again = polypcount("count", video, "--boxes", table, "--out", out)
    assert again.returncode == 2
    assert len(again.stderr.splitlines()) == 1
    assert "--force" in again.stderr
    assert polypcount("count", video, "--boxes", table, "--out", out, "--force").returncode == 0


def test_several_with_one_bad_are_summed_up(tmp_path: Path, polypcount: Run) -> None:
    one, _ = case_in(tmp_path, "one", boxes(tracks=True))
    two, _ = case_in(tmp_path, "two", boxes(tracks=True, only=slice(0, 1)))
    (tmp_path / "bad.mp4").write_bytes(b"no video")
    (tmp_path / "boxes" / "bad.csv").write_text((tmp_path / "boxes" / "one.csv").read_text())
    (tmp_path / "histology.csv").write_text("video,histology\none,AD\ntwo,HP\n")
    out = tmp_path / "out"
    asked = ("--boxes-dir", tmp_path / "boxes", "--out", out, "--histology", tmp_path / "histology.csv")
    done = polypcount("count", one, tmp_path / "bad.mp4", two, *asked)
    assert done.returncode == 2
    assert "2 of 3 counted" in done.stdout
    assert "bad.mp4" in done.stderr
    summary = json.loads((out / "summary.json").read_text())
    assert {entry.name for entry in out.iterdir()} == {"one", "two", "summary.json", "summary.csv", "summary.html"}
    assert [row["count"] for row in summary["procedures"]] == [3, None, 1]
    assert summary["polyps_per_colonoscopy"]["mean"] == 2.0


def test_pseudonyms_take_the_place_of_names(case: tuple[Path, Path], tmp_path: Path, polypcount: Run) -> None:
    video, table = case
    key = tmp_path / "key.csv"
    done = polypcount("count", video, "--boxes", table, "--out", tmp_path / "a", "--pseudonyms", key, "--only", "case")
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "a" / "count.json").read_text() + (tmp_path / "a" / "report.html").read_text()
    assert "case" not in json.loads((tmp_path / "a" / "count.json").read_text())["video"]["id"]
    assert "case.mp4" not in written
    assert "case.csv" not in written
    first = key.read_text()
    assert str(video) in first
    assert polypcount("count", video, "--boxes", table, "--out", tmp_path / "b", "--pseudonyms", key).returncode == 0
    assert key.read_text() == first


def test_a_detector_finds_the_boxes(tmp_path: Path, polypcount: Run) -> None:
    rule = json.dumps(BY_LOOKS)
    asked = ("--detector", finder_folder(false_alarms=rule), "--out", tmp_path / "out", "--export", "mot", "--video")
    done = polypcount("count", bright(), *asked)
    assert done.returncode == 0, done.stderr
    first, second, *rest = done.stdout.splitlines()
    assert first == "1 polyp (no interval) in 2 tracklets of bright"
    assert second.startswith("  The boxes were found by the detector detector.onnx. It may have missed")
    assert any("1 tracklet is perhaps no polyp" in line for line in rest)
    found = json.loads((tmp_path / "out" / "count.json").read_text())
    assert [(one["start_frame"], one["stop_frame"]) for one in found["tracklets"]] == [(10, 61), (90, 129)]
    assert [one["start_frame"] for one in found["perhaps_no_polyp"]] == [150]
    assert found["detector"]["looks"] == 100
    lower = polypcount("count", bright(), *asked[:2], "--confidence", 0.95, "--out", tmp_path / "none")
    assert lower.returncode == 0
    assert "100 looks in 0:08 of recording, no box that begins a track" in lower.stdout
    assert "--confidence" in lower.stdout
    assert (tmp_path / "none" / "report.html").exists()
    for wrong, told in (("nonsense", "nonsense does not exist; give bundled, an ONNX file"), (bright(), "bright.mp4")):
        no_detector = polypcount("count", bright(), "--detector", wrong)
        assert (no_detector.returncode, len(no_detector.stderr.splitlines())) == (2, 1)
        assert told in no_detector.stderr


def test_without_boxes_the_bundled_detector_is_taken_and_said(tmp_path: Path, polypcount: Run) -> None:
    with_boxes, table = case_in(tmp_path, "one", boxes(tracks=True))
    shutil.move(table, tmp_path / "one.csv")
    shutil.copy(bright(), tmp_path / "two.mp4")
    done = polypcount("count", with_boxes, tmp_path / "two.mp4", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "one.csv, beside the recording" in done.stdout
    assert done.stdout.count("found by the bundled detector, a research model") == 1
    own, bundled = (json.loads((tmp_path / "out" / name / "count.json").read_text()) for name in ("one", "two"))
    assert own["detector"] is None
    assert (bundled["detector"]["name"], bundled["detector"]["bundled"]) == ("bundled", True)
    assert "bundled detector" in (tmp_path / "out" / "two" / "report.html").read_text()
    missing = polypcount("count", tmp_path / "two.mp4", "--boxes-dir", tmp_path / "boxes", "-o", tmp_path / "missing")
    assert missing.returncode == 2
    assert "must have one file of boxes called two.json" in missing.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--boxes", "nowhere.json"), "nowhere.json"),
        (("--boxes", "{boxes}", "--mask", "1,2,3"), "1,2,3"),
        (("--boxes", "{boxes}", "--detector", "x.onnx"), "one of --boxes"),
        (("--boxes", "{boxes}", "--min-frames", "0"), ""),
        (("--boxes", "{boxes}", "--first-frame", "-100"), "frame"),
        (("--boxes", "{boxes}", "--export", "png"), "png"),
        (("--boxes", "{boxes}", "--encoder", "{boxes}"), ""),
        (("--boxes", "{boxes}", "--only", "another"), "another"),
        (("--boxes", "{boxes}", "--histology", "{boxes}"), "--histology is for a summary of several recordings"),
        (("--boxes", "{boxes}", "--detector-set", "size=640x640"), "--detector-set is for a --detector"),
        (("--boxes", "{boxes}", "--boxes-dir", "x"), "one of --boxes"),
        (("--boxes-dir", "{boxes}"), "--boxes-dir"),
        (("--detector", "{boxes}", "--detector-set", "size=big"), "--detector-set: size must be WIDTHxHEIGHT"),
        (("--boxes", "{boxes}", "--format", "cocoa"), "there is no format 'cocoa'"),
        (("--boxes", "{boxes}", "--fps", "0"), "fps"),
        (("--boxes", "{boxes}", "--method", "guess"), "guess"),
        (("--boxes", "{boxes}", "--min-polyps", "3", "--max-polyps", "2"), "--min-polyps 3"),
        (("--boxes", "{boxes}", "--polyps", "3", "--max-polyps", "4"), "--polyps"),
        (("--boxes", "{boxes}", "--engine", "abacus"), "abacus"),
        (("--boxes", "{boxes}", "--only", "case", "--only", "b"), "--only is given 2 times"),
        (("--all",), "--all is for corpus folders"),
        (("--boxes", "{boxes}", "--from", "half"), "90s, found 'half' (--from)"),
        (("--boxes", "{boxes}", "--from", "0:05", "--to", "0:04"), "holds no frame"),
        (("--boxes", "{boxes}", "--keep-polyps"), "name no polyps"),
        (("--boxes", "{boxes}", "--ids", "track"), "no use for ids"),
        (("--size", "64x64"), "size is a setting for a file of boxes"),
    ],
)
def test_what_is_wrong_is_one_line_and_leaves_nothing(
    arguments: tuple[str, ...], told: str, case: tuple[Path, Path], tmp_path: Path, polypcount: Run
) -> None:
    video, table = case
    filled = [argument.replace("{boxes}", str(table)) for argument in arguments]
    done = polypcount("count", video, "--out", tmp_path / "out", *filled)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_no_boxes_are_no_polyps(case: tuple[Path, Path], tmp_path: Path, polypcount: Run) -> None:
    video, table = case
    table.write_text(table.read_text().splitlines()[0] + "\n")
    (tmp_path / "none.json").write_text(json.dumps({"width": WIDTH, "height": HEIGHT, "frames": [[]] * FRAMES}))
    done = polypcount("count", video, "--boxes", tmp_path / "none.json", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no polyps counted in 0 tracklets of case\n  There are no boxes")
    assert (tmp_path / "out" / "report.html").exists()


def test_a_folder_that_cannot_be_written_is_found_before_the_work(
    case: tuple[Path, Path], tmp_path: Path, polypcount: Run
) -> None:
    video, table = case
    done = polypcount("count", video, "--boxes", table, "--out", table / "below")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "below" in done.stderr


def test_boxes_beside_a_recording_are_found_and_said(
    tmp_path: Path, polypcount: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    video, table = case_in(tmp_path, "case", boxes(tracks=True))
    monkeypatch.chdir(tmp_path)
    shutil.move(table, "case.csv")
    done = polypcount("count", "case.mp4", "-o", "out")
    assert done.stdout.splitlines()[:2] == [
        "boxes: case.csv, beside the recording",
        "3 polyps (no interval) in 5 tracklets of case",
    ]
    (tmp_path / "case.json").write_text("{}")
    two = polypcount("count", "case.mp4", "-o", "two")
    assert (two.returncode, "case.csv and case.json are both beside" in two.stderr) == (2, True)
    # In a folder of recordings, a second recording of the same name is no file of boxes.
    (tmp_path / "case.json").unlink()
    shutil.copy(video, "case.avi")
    assert polypcount("count", "case.mp4", "--boxes-dir", ".", "-o", "three").returncode == 0


def test_one_object_or_one_line_is_all_that_is_printed(
    case: tuple[Path, Path], tmp_path: Path, polypcount: Run
) -> None:
    video, table = case
    done = polypcount("count", video, "--boxes", table, "--out", tmp_path / "a", "--json")
    values = json.loads(done.stdout)
    assert values == {**json.loads((tmp_path / "a" / "count.json").read_text()), "folder": str(tmp_path / "a")}
    assert (values["count"], done.stderr) == (3, "")
    quiet = polypcount("count", video, "--boxes", table, "--out", tmp_path / "b", "--quiet")
    assert (quiet.stdout, quiet.stderr) == ("3 polyps (no interval) in 5 tracklets of case\n", "")


def test_every_video_of_a_corpus(tmp_path: Path, polypcount: Run) -> None:
    table = boxes(tracks=True)
    names = ("one", "../two", "..")
    videos = tuple(Video(name, FRAMES, FPS, WIDTH, HEIGHT, str(recording())) for name in names)
    Corpus(videos, table).save(tmp_path / "corpus")
    which = polypcount("count", tmp_path / "corpus", "--out", tmp_path / "out")
    assert which.stderr.endswith("say which one to take (--only, --all)\n")
    done = polypcount("count", tmp_path / "corpus", "--all", "--out", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert [(row["name"], row["count"]) for row in summary["procedures"]] == [("one", 3), ("../two", 0), ("..", 0)]
    folders = {entry.name for entry in (tmp_path / "out").iterdir() if entry.is_dir()}
    assert folders == {"one", ".._two", "_.."}
    assert {entry.name for entry in tmp_path.iterdir()} == {"corpus", "out"}


def test_a_part_of_a_recording(case: tuple[Path, Path], tmp_path: Path, polypcount: Run) -> None:
    video, table = case
    for start, stop in (("0:02.4", "5.2s"), ("60", "130")):
        out = tmp_path / start.replace(":", "-")
        done = polypcount("count", video, "--boxes", table, "--from", start, "--to", stop, "--video", "--out", out)
        assert done.returncode == 0, done.stderr
        count = json.loads((out / "count.json").read_text())
        assert [(one["start_frame"], one["stop_frame"]) for one in count["tracklets"]] == [(60, 100), (80, 120)]
        assert "Only frames 60 to 129 of 220 were counted." in count["remarks"]
        assert count["provenance"]["parameters"]["frames"] == [60, 130]
        assert open_source(out / "annotated.mp4").frame_count == 70
