"""MOT text: ground truth, trackers, detections, sequence folders, and what is wrong with bad files."""

from pathlib import Path

import pytest

from tests.importers.format_cases import read, refused, rows, told

XYXY = (10.0, 20.0, 40.0, 60.0)
INFO = "[Sequence]\nname=case 1\nimDir=img1\nframeRate=25\nseqLength=9\nimWidth=64\nimHeight=48\nimExt=.jpg\n"


def save(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_ground_truth(tmp_path: Path) -> None:
    path = save(
        tmp_path / "case.txt", "1,3,10,20,30,40,1,1,1\n\n2,3,10,20,30,40,0,1,1\n3, 4.0, 10,20,30,40, 1,1,0.5\r\n"
    )
    corpus = read("mot", path)
    assert rows(corpus) == [("case", 0, XYXY, 1.0, "case_3", -1), ("case", 2, XYXY, 1.0, "case_4", -1)]
    assert corpus.videos[0].frame_count == 3
    assert "1 rows are left out" in told(corpus, "remarks")[0]


def test_tracker_and_detections(tmp_path: Path) -> None:
    path = save(tmp_path / "case.txt", "1,3,10,20,30,40,0.5,-1,-1,-1\n2,-1,10,20,30,40,0.25\n")
    assert rows(read("mot", path)) == [("case", 0, XYXY, 0.5, None, 3), ("case", 1, XYXY, 0.25, None, -1)]
    assert [row[4:] for row in rows(read("mot", path, ids="polyp"))] == [("case_3", -1), (None, -1)]


def test_nine_columns_of_a_tracker_are_no_truth(tmp_path: Path) -> None:
    path = save(tmp_path / "case.txt", "1,3,10,20,30,40,0.5,0,-1\n2,3,10,20,30,40,0,0,-1\n")
    assert rows(read("mot", path)) == [("case", 0, XYXY, 0.5, None, 3), ("case", 1, XYXY, 0.0, None, 3)]


def test_ids_and_conventions_override(tmp_path: Path) -> None:
    path = save(tmp_path / "case.txt", "0 3 10 20 30 40 1 1 1\n")
    corpus = read("mot", path, ids="track", first_frame=0, box="xyxy", video="v", width=64, height=48)
    assert rows(corpus) == [("v", 0, (10.0, 20.0, 30.0, 40.0), 1.0, None, 3)]
    refused("mot", path, f"{path}:1", "numbered from 1, found 0", "first_frame")


def test_sequence_folder(tmp_path: Path) -> None:
    gt = save(tmp_path / "seq" / "gt" / "gt.txt", "1,3,10,20,30,40,1,-1,-1,-1\n")
    save(tmp_path / "seq" / "det" / "det.txt", "1,-1,0,0,5,5,0.5\n")
    save(tmp_path / "seq" / "seqinfo.ini", INFO)
    for path in (tmp_path, tmp_path / "seq", gt):
        corpus = read("mot", path)
        (video,) = corpus.videos
        assert (video.id, video.fps, video.frame_count, video.width, video.height) == ("case 1", 25.0, 9, 64, 48)
        assert rows(corpus) == [("case 1", 0, XYXY, 1.0, "case 1_3", -1)]
    assert "det.txt is not read" in told(read("mot", tmp_path), "remarks")[0]


def test_folder_of_tracker_files(tmp_path: Path) -> None:
    for name in ("b10", "b2"):
        save(tmp_path / f"{name}.txt", "1,3,10,20,30,40,0.5,-1,-1,-1\n")
    assert [video.id for video in read("mot", tmp_path).videos] == ["b2", "b10"]


def test_two_sequences_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save(tmp_path / name / "seqinfo.ini", INFO)
    refused("mot", tmp_path, "2 videos would have the id case 1")


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("1,1,2,3", "7, 9 or 10 numbers"),
        ("x,1,1,1,5,5,1,1,1", "whole numbers for frame and id"),
        ("1.5,1,1,1,5,5,1,1,1", "whole numbers for frame and id"),
        ("1,1,1,1,nan,5,1,1,1", "whole numbers for frame and id"),
        ("1,1,1,1,1_0,5,1,1,1", "whole numbers for frame and id"),
        ("1,1,1,1,0,5,1,1,1", "x1 < x2"),
        ("9" * 5000 + ",1,1,1,1,5,1,1,1", "whole numbers for frame and id"),
        ("9999999999,1,1,1,1,5,1,1,1", "frames are numbered 1 to 2147483647"),
        ("1,9999999999,1,1,1,5,1", "the track must be"),
        ("hello", "7, 9 or 10 numbers"),
    ],
)
def test_bad_line(tmp_path: Path, line: str, part: str) -> None:
    path = save(tmp_path / "case.txt", f"1,1,1,1,5,5,1,1,1\n{line}\n1,2,1,1,5,5,1,1,1\n")
    refused("mot", path, f"{path}:2: ", part)
    corpus = read("mot", path, skip_bad=True)
    assert len(corpus.boxes) == 2
    assert len(told(corpus, "left_out")) == 1


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("name=x\n", "seqinfo.ini:1: [section] or key=value is expected"),
        ("[Sequence]\na" + " " * 100_000 + "b\n", "seqinfo.ini:2: [section] or key=value is expected"),
        ("[Other]\nname=x\n", "the section [Sequence] is expected"),
        ("[Sequence]\nseqLength=x\n", "seqinfo.ini: seqlength: a whole number"),
        ("[Sequence]\nframeRate=-1\n", "seqinfo.ini: fps must be"),
        ('[Sequence]\nname="\\ud800"\n', "seqinfo.ini: name"),
        ("[Sequence]\nname=x\n[Polyps]\nx=y\n", "[Polyps] x"),
        ("[Sequence]\nseqLength=2\n", "gt.txt:1: frames are numbered 1 to 2, found 3"),
    ],
)
def test_bad_seqinfo(tmp_path: Path, text: str, part: str) -> None:
    save(tmp_path / "gt" / "gt.txt", "3,1,1,1,5,5,1,1,1\n")
    save(tmp_path / "seqinfo.ini", text)
    refused("mot", tmp_path, part)


def test_not_mot(tmp_path: Path) -> None:
    refused("mot", tmp_path, "holds neither gt/gt.txt nor det/det.txt")
    path = tmp_path / "case.txt"
    path.write_bytes(b"\xff\xfe\x00")
    refused("mot", path, "not UTF-8")
