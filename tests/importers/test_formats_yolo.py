"""YOLO text: columns, sizes from options, description and images, and what is wrong with bad files."""

from pathlib import Path

import pytest
from PIL import Image

from tests.importers.format_cases import read, refused, rows, told

LINE = "0 0.5 0.5 0.25 0.5"
XYXY = (150.0, 50.0, 250.0, 150.0)  # in an image of 400 x 200
SIZE = {"width": 400, "height": 200}


def save(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_columns(tmp_path: Path) -> None:
    folder = tmp_path / "case"
    save(folder / "f_2.txt", f"{LINE}\n{LINE} 0.5\n{LINE} 0.25 7\n{LINE} 0.75 -1\n")
    save(folder / "f_10.txt", "")
    save(folder / "classes.txt", "polyp\n")
    corpus = read("yolo", folder, **SIZE)
    assert rows(corpus) == [
        ("case", 1, XYXY, 0.25, "case_7", -1),
        ("case", 1, XYXY, 0.5, None, -1),
        ("case", 1, XYXY, 0.75, None, -1),
        ("case", 1, XYXY, 1.0, None, -1),
    ]
    assert corpus.videos[0].frame_count == 10
    tracked = read("yolo", folder, ids="track", first_frame=0, **SIZE)
    assert rows(tracked)[0] == ("case", 2, XYXY, 0.25, None, 7)


def test_a_lone_sixth_number_is_a_score_or_an_id(tmp_path: Path) -> None:
    folder = tmp_path / "case"
    save(folder / "f_1.txt", f"{LINE} 7\n{LINE} 0.5\n")
    assert [row[3:] for row in rows(read("yolo", folder, **SIZE))] == [(0.5, None, -1), (1.0, "case_7", -1)]
    save(folder / "f_1.txt", f"{LINE} 1\n")
    assert [row[3:] for row in rows(read("yolo", folder, ids="track", **SIZE))] == [(1.0, None, 1)]
    save(folder / "f_1.txt", f"{LINE} 1.5\n")
    refused("yolo", folder, "f_1.txt:1: class cx cy width height", **SIZE)


def test_folder_of_videos(tmp_path: Path) -> None:
    for name in ("v10", "v2"):
        save(tmp_path / name / "000001.txt", f"{LINE} 1 3")
    (tmp_path / "empty").mkdir()
    corpus = read("yolo", tmp_path, **SIZE)
    assert [video.id for video in corpus.videos] == ["v2", "v10"]
    assert [polyp.id for polyp in corpus.polyps] == ["v2_3", "v10_3"]


def test_size_from_images(tmp_path: Path) -> None:
    save(tmp_path / "labels" / "v" / "000002.txt", LINE)
    images = tmp_path / "images" / "v"
    images.mkdir(parents=True)
    for number in (1, 2, 3):
        Image.new("L", (400, 200)).save(images / f"{number:06d}.png")
    corpus = read("yolo", tmp_path / "labels", images=tmp_path / "images")
    (video,) = corpus.videos
    assert (video.frame_count, video.width, video.height, video.source) == (3, 400, 200, str(images))
    assert corpus.files.frame.tolist() == [0, 1, 2]
    assert rows(corpus) == [("v", 1, XYXY, 1.0, None, -1)]
    save(tmp_path / "labels" / "v" / "000009.txt", LINE)
    refused("yolo", tmp_path / "labels", "000009.txt: an image of this name", images=tmp_path / "images")
    refused("yolo", tmp_path / "labels", "nothing does not exist", images=tmp_path / "nothing")


def test_size_from_description(tmp_path: Path) -> None:
    save(tmp_path / "v" / "1.txt", LINE)
    refused("yolo", tmp_path, "1.txt: the size of the images is not known", "width height images")
    save(tmp_path / "v" / "seqinfo.ini", "[Sequence]\nname=w\nimWidth=400\nimHeight=200\n")
    assert rows(read("yolo", tmp_path)) == [("w", 0, XYXY, 1.0, None, -1)]


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("1.txt", "0 0.5 0.5 0.25", "1.txt:1: class cx cy width height"),
        ("1.txt", f"{LINE} 1 2 3", "1.txt:1: class cx cy width height"),
        ("1.txt", f"{LINE} 1 2.5", "whole number as id"),
        ("1.txt", "0 0.5 0.5 x 0.5", "1.txt:1: class cx cy width height"),
        ("1.txt", "0 0.5 0.5 0 0.5", "1.txt:1: the box must have x1 < x2"),
        ("0.txt", LINE, "0.txt: frames are numbered from 1, found 0"),
        ("notes.txt", LINE, "notes.txt: a name that ends in the number of the frame"),
        ("b_5.txt", LINE, "b_5.txt: frame 5 has a file already, a_5.txt"),
    ],
)
def test_bad_file(tmp_path: Path, name: str, text: str, part: str) -> None:
    save(tmp_path / "a_5.txt", LINE)
    save(tmp_path / name, text)
    refused("yolo", tmp_path, part, **SIZE)
    corpus = read("yolo", tmp_path, skip_bad=True, **SIZE)
    assert len(corpus.boxes) == 1
    assert len(told(corpus, "left_out")) == 1


def test_not_yolo(tmp_path: Path) -> None:
    refused("yolo", tmp_path, "holds no text files")
    refused("yolo", save(tmp_path / "1.txt", LINE), "a folder of text files is expected")
    (tmp_path / "1.txt").write_bytes(b"\xff")
    refused("yolo", tmp_path, "1.txt is not UTF-8", **SIZE)
