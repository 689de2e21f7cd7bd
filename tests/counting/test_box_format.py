"""Which format boxes have, where nobody says it."""

import json
import os
from pathlib import Path

import pytest

from polypcount.counting import read_procedure
from polypcount.counting.box_format import guess_format
from polypcount.errors import DataError, FileError, PolypcountError
from tests.counting.recordings import boxes, recording, same_boxes, write_images, write_in

MOT = "".join(f"{frame + 1},4,20,20,48,48,0.9,-1,-1,-1\n" for frame in range(5, 45))


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("det.txt", MOT, "mot"),
        ("det.csv", MOT, "mot"),
        ("det", MOT.replace(",", " "), "mot"),
        ("det.txt", "frame,x1,y1,x2,y2\n5,20,20,68,68\n", "csv"),
        ("det.txt", '\ufeff"frame","x1","y1","x2","y2"\n5,20,20,68,68\n', "csv"),
        ("det.json", '\ufeff [{"image_id": 5, "bbox": [20, 20, 48, 48], "score": 1}]', "coco-results"),
        ("det.json", "[]", "coco-results"),
        ("det.txt", "", "mot"),
        ("det.json", '{"note": "frames", "frames": [[{"bbox": [0, 0, 9, 9]}]]}', "frames-json"),
        ("det.json", json.dumps({"info": {"frames": 1}, "images": [], "annotations": []}), "coco"),
    ],
)
def test_small_files_are_recognised(name: str, text: str, format: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert guess_format(tmp_path / name) == format
    assert read_procedure(recording(), tmp_path / name).video.id == "case"


def test_text_files_of_frames_are_told_from_those_of_videos(tmp_path: Path) -> None:
    (tmp_path / "mot").mkdir()
    (tmp_path / "mot" / "case.txt").write_text(MOT)
    assert guess_format(tmp_path / "mot") == "mot"
    assert len(read_procedure(recording(), tmp_path / "mot").boxes) == 40
    (tmp_path / "yolo").mkdir()
    (tmp_path / "yolo" / "classes.txt").write_text("polyp\n")
    (tmp_path / "yolo" / "000001.txt").touch()
    (tmp_path / "yolo" / "000002.txt").write_text("0 0.5 0.5 0.25 0.25 0.9 7\n")
    assert guess_format(tmp_path / "yolo") == "yolo"
    found = read_procedure(recording(), tmp_path / "yolo").boxes
    assert found.frame.tolist() == [1]
    assert found.xyxy.tolist() == [[60, 48, 100, 80]]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("boxes", b"", "say it with --format"),
        ("boxes.mp4", b"\x00\x00\x00 ftypisom", "say it with --format"),
        ("boxes.json", b"{", r"boxes\.json:1: not valid JSON"),
        ("boxes.json", b"5", "an object with images and annotations"),
        ("boxes.json", b'{"images": []}', "annotations must be a list"),
        ("boxes.csv", b"a,b\n1,2\n", "the header lacks frame"),
        ("boxes.xml", b"<html></html>", "annotations"),
        ("boxes.xml", b"<annotation></annotation>", "a folder of XML files is expected"),
        ("boxes.txt", b"hello\n", "numbers with commas between"),
        ("nowhere.json", None, r"nowhere\.json does not exist"),
        ("nowhere", None, "does not exist"),
    ],
)
def test_what_has_no_boxes_is_named(name: str, content: bytes | None, told: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=told) as caught:
        read_procedure(recording(), tmp_path / name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_bad_row_says_which_verb_takes_the_rest(tmp_path: Path) -> None:
    (tmp_path / "boxes.csv").write_text("frame,x1,y1,x2,y2\n5,20,20,68,68\nx,1,2,3,4\n")
    with pytest.raises(FileError, match=r"boxes\.csv:3: .* \(polypcount import --skip-bad takes the rest\)"):
        read_procedure(recording(), tmp_path / "boxes.csv")


def test_a_folder_without_boxes_and_one_of_several_files_say_what_is_wanted(tmp_path: Path) -> None:
    told = "cannot be told; say it with --format: coco, coco-results, mot, yolo, frames-json, voc, cvat, csv"
    with pytest.raises(FileError, match=told):
        read_procedure(recording(), write_images(tmp_path / "images", range(2)))
    (tmp_path / "one.json").write_text("{}")
    (tmp_path / "two.csv").write_text("")
    with pytest.raises(FileError, match="holds several files of boxes; give the one that belongs to the recording"):
        read_procedure(recording(), tmp_path)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="pipe is not a file"):
        read_procedure(recording(), tmp_path / "pipe")
    memory = Path("/proc/self/mem")  # a file, of which the first bytes cannot be read by anybody
    if not memory.exists():
        pytest.skip("this system has no /proc")
    for name in ("boxes.json", "boxes.txt", "boxes"):
        (tmp_path / name).symlink_to(memory)
        with pytest.raises(FileError, match=f"{name} cannot be read: Input/output error"):
            read_procedure(recording(), tmp_path / name)


def test_a_wrong_name_of_a_format_lists_the_right_ones(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no format 'cocoa'; there are: corpus, real-colon, .*, csv"):
        read_procedure(recording(), tmp_path, boxes_format="cocoa")
    place = write_in("csv", tmp_path / "boxes", boxes(tracks=True))
    with pytest.raises(PolypcountError, match=r"boxes\.csv:1: not valid JSON"):
        read_procedure(recording(), place, boxes_format="coco")
    assert same_boxes(read_procedure(recording(), place.parent, boxes_format="csv").boxes, boxes(tracks=True))


@pytest.mark.parametrize("format", ["coco", "coco-results", "frames-json", "cvat", "csv"])
@pytest.mark.parametrize("name", ["boxes", "boxes.dat", "boxes.2024"])
def test_the_name_of_a_file_need_not_tell(format: str, name: str, tmp_path: Path) -> None:
    place = write_in(format, tmp_path / "written", boxes(tracks=True)).rename(tmp_path / name)
    assert guess_format(place) == format
    assert same_boxes(read_procedure(recording(), place).boxes, boxes(tracks=True))
