"""Boxes of one recording in any format: recognised, parsed once, and put on the images that they name."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polypcount.corpus import Corpus
from polypcount.errors import DataError, FileError
from polypcount.importers import read_boxes, write_boxes
from polypcount.importers.boxes.any_format import guess_format
from tests.counting.recordings import boxes, same_boxes, several, write_in, write_voc

BOX = [20.0, 20.0, 68.0, 68.0]
MOT = "".join(f"{frame + 1},4,20,20,48,48,0.9,-1,-1,-1\n" for frame in range(5, 45))


def coco(numbers: range, annotated: tuple[int, ...]) -> dict[str, Any]:
    images = [{"id": number, "file_name": f"image_{number:04}.png"} for number in numbers]
    annotations = [{"id": number, "image_id": number, "bbox": [20, 20, 48, 48]} for number in annotated]
    return {"images": images, "annotations": annotations}


def names(numbers: range) -> list[str]:
    return [f"image_{number:04}.png" for number in numbers]


@pytest.mark.parametrize("image_names", [None, names(range(250))])
@pytest.mark.parametrize("format", ["coco", "coco-results", "frames-json"])
@pytest.mark.parametrize("named", [True, False])
def test_a_json_file_is_parsed_once(
    format: str, named: bool, image_names: list[str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_in(format, tmp_path / "boxes", boxes(tracks=True))
    content, parses, original = path.read_text(), [], json.loads

    def counted(text: Any, **settings: Any) -> Any:
        parses.append(text == content)
        return original(text, **settings)

    monkeypatch.setattr(json, "loads", counted)
    corpus = read_boxes(path, format if named else None, image_names=image_names)
    assert sum(parses) == 1
    assert same_boxes(corpus.boxes, boxes(tracks=True))


@pytest.mark.parametrize("numbers", [range(8), range(1, 9), range(10, 90, 10)])
def test_boxes_by_name_are_on_the_image_of_that_number(numbers: range, tmp_path: Path) -> None:
    third, last = numbers[2], numbers[7]
    (tmp_path / "voc").mkdir()
    (tmp_path / "yolo").mkdir()
    for number in (third, last):
        write_voc(tmp_path / "voc" / f"image_{number:04}.xml", [(BOX, 3)])
        (tmp_path / "yolo" / f"image_{number:04}.txt").write_text("0 0.275 0.34375 0.3 0.375\n")
    values = coco(numbers, (last, third))
    (tmp_path / "coco.json").write_text(json.dumps(values))
    for name in ("voc", "yolo", "coco.json"):
        corpus = read_boxes(tmp_path / name, width=160, height=128, image_names=names(numbers))
        assert corpus.boxes.frame.tolist() == [2, 7], name
        assert corpus.videos[0].frame_count == 8
        assert np.allclose(corpus.boxes.xyxy, BOX, atol=1e-3)
    with pytest.raises(DataError, match=rf"voc has boxes for image number {last}, and no image"):
        read_boxes(tmp_path / "voc", image_names=names(numbers[:5]))
    with_gap = ["" if number == numbers[1] else f"image_{number:04}.png" for number in numbers]
    assert read_boxes(tmp_path / "voc", image_names=with_gap).boxes.frame.tolist() == [2, 7]
    # Frame ids say which frame an image is, whatever its name.
    for frame, image in enumerate(values["images"]):
        image["frame_id"] = frame
    (tmp_path / "coco.json").write_text(json.dumps(values))
    assert read_boxes(tmp_path / "coco.json", image_names=names(numbers)).boxes.frame.tolist() == [2, 7]


def test_names_without_numbers_and_a_given_first_frame_map_nothing(tmp_path: Path) -> None:
    write_voc(tmp_path / "0001.xml", [(BOX, 0)])
    for image_names in (["a.png", "b.png", "c.png"], ["a1.png", "b1.png", "c2.png"]):
        assert read_boxes(tmp_path, image_names=image_names).boxes.frame.tolist() == [1]
    assert read_boxes(tmp_path, image_names=names(range(10, 40, 10)), first_frame=1).boxes.frame.tolist() == [0]


def test_other_videos_in_the_file_have_no_boxes_on_the_images(tmp_path: Path) -> None:
    for video, number in (("here", 10), ("there", 99)):
        (tmp_path / video).mkdir()
        write_voc(tmp_path / video / f"{number}.xml", [(BOX, 0)])
    corpus = read_boxes(tmp_path, image_names=names(range(10, 50, 10)))
    assert corpus.select(videos="here").boxes.frame.tolist() == [0]
    assert int(corpus.select(videos="there").boxes.frame[0]) >= 4


def test_the_size_of_the_recording_fills_in_what_the_file_does_not_say(tmp_path: Path) -> None:
    for format, expected in (("csv", 1000), ("mot", 160)):
        path = write_in(format, tmp_path / format, boxes(tracks=True))
        video = read_boxes(path, width=1000, height=800).videos[0]
        assert video.width == expected


def test_a_corpus_folder_and_a_wrong_format(tmp_path: Path) -> None:
    several("one", "two").save(tmp_path / "corpus")
    assert [video.id for video in read_boxes(tmp_path / "corpus").videos] == ["one", "two"]
    with pytest.raises(DataError, match="corpus") as caught:
        read_boxes(tmp_path / "corpus", first_frame=1)
    assert caught.value.mend == ("first_frame",)
    with pytest.raises(DataError, match=r"no format 'cocoa'; there are: corpus, real-colon, .*, csv"):
        read_boxes(tmp_path, "cocoa")
    folder = write_boxes(Corpus.load(tmp_path / "corpus"), "csv", tmp_path / "csv")
    assert len(read_boxes(folder, "csv").videos) == 2
    with pytest.raises(DataError, match="frames-json"):
        read_boxes(write_in("frames-json", tmp_path / "json", boxes()), first_frame=1)


def test_a_bad_row_says_that_an_import_can_skip_it(tmp_path: Path) -> None:
    (tmp_path / "boxes.csv").write_text("frame,x1,y1,x2,y2\n1,20,20,68,68\nx,1,2,3,4\n")
    with pytest.raises(FileError, match=r"boxes\.csv:3: .* \(polypcount import can skip") as caught:
        read_boxes(tmp_path / "boxes.csv")
    assert caught.value.mend == ()
    with pytest.raises(FileError, match=r"boxes\.csv:2: frames are numbered from 2, found 1") as caught:
        read_boxes(tmp_path / "boxes.csv", first_frame=2)
    assert caught.value.mend == ("first_frame",)


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
    assert read_boxes(tmp_path / name).videos[0].id == "det"


def test_text_files_of_frames_are_told_from_those_of_videos(tmp_path: Path) -> None:
    (tmp_path / "mot").mkdir()
    (tmp_path / "mot" / "case.txt").write_text(MOT)
    assert guess_format(tmp_path / "mot") == "mot"
    assert len(read_boxes(tmp_path / "mot").boxes) == 40
    (tmp_path / "yolo").mkdir()
    (tmp_path / "yolo" / "classes.txt").write_text("polyp\n")
    (tmp_path / "yolo" / "000001.txt").touch()
    (tmp_path / "yolo" / "000002.txt").write_text("0 0.5 0.5 0.25 0.25 0.9 7\n")
    assert guess_format(tmp_path / "yolo") == "yolo"
    found = read_boxes(tmp_path / "yolo", width=160, height=128).boxes
    assert found.frame.tolist() == [1]
    assert found.xyxy.tolist() == [[60, 48, 100, 80]]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("boxes", b"", "format of the boxes is not clear"),
        ("boxes.mp4", b"\x00\x00\x00 ftypisom", "format of the boxes is not clear"),
        ("boxes.json", b"{", "boxes.json is not valid JSON"),
        ("boxes.json", b"5", "an object with images and annotations"),
        ("boxes.json", b'{"images": []}', "annotations must be a list"),
        ("boxes.json", b'{"patient": 5}', "format of the boxes is not clear"),
        ("boxes.csv", b"a,b\n1,2\n", "the header must have frame"),
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
        read_boxes(tmp_path / name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_without_boxes_and_one_of_several_files_say_what_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    formats = "coco, coco-results, mot, yolo, frames-json, voc, cvat, csv"
    with pytest.raises(FileError, match=formats) as caught:
        read_boxes(tmp_path / "images")
    assert caught.value.mend == ("boxes_format",)
    (tmp_path / "one.json").write_text("{}")
    (tmp_path / "two.csv").write_text("")
    with pytest.raises(FileError, match="several files of boxes"):
        read_boxes(tmp_path)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="pipe is not a file"):
        read_boxes(tmp_path / "pipe")
    memory = Path("/proc/self/mem")  # a file, of which the first bytes cannot be read by anybody
    if not memory.exists():
        pytest.skip("this system has no /proc")
    for name in ("boxes.json", "boxes.txt", "boxes"):
        (tmp_path / name).symlink_to(memory)
        with pytest.raises(FileError, match=f"{name} cannot be read: Input/output error"):
            read_boxes(tmp_path / name)


def test_the_named_format_is_taken(tmp_path: Path) -> None:
    path = write_in("csv", tmp_path / "boxes", boxes(tracks=True))
    with pytest.raises(FileError, match=r"boxes\.csv is not valid JSON"):
        read_boxes(path, "coco")
    assert same_boxes(read_boxes(path.parent, "csv").boxes, boxes(tracks=True))


@pytest.mark.parametrize("format", ["coco", "coco-results", "frames-json", "cvat", "csv"])
def test_the_name_of_a_file_need_not_tell(format: str, tmp_path: Path) -> None:
    place = write_in(format, tmp_path / "written", boxes(tracks=True)).rename(tmp_path / "boxes.2024")
    assert guess_format(place) == format
    assert same_boxes(read_boxes(place).boxes, boxes(tracks=True))
