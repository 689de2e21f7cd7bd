"""CSV with the documented header, and what is wrong with bad files."""

from pathlib import Path

import pytest

from polypcount.errors import DataError
from polypcount.importers.boxes.any_format import guess_format
from tests.importers.format_cases import read, refused, rows, told

XYXY = (10.0, 20.0, 40.0, 60.0)


def save(folder: Path, text: str, name: str = "case.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_least_columns(tmp_path: Path) -> None:
    path = save(tmp_path, "\ufeffframe, x1,y1,x2,y2\n0,10,20,40,60\n\n2.0, 10,20,40,60\n")
    corpus = read("csv", path, width=64, height=48, fps=25)
    assert rows(corpus) == [("case", 0, XYXY, 1.0, None, -1), ("case", 2, XYXY, 1.0, None, -1)]
    assert (corpus.videos[0].frame_count, corpus.videos[0].width) == (3, 64)


def test_all_columns_in_any_order(tmp_path: Path) -> None:
    head = "polyp,video,track,frame,x1,y1,x2,y2,score\n"
    text = f'{head}p,a,4,1,10,20,40,60,0.5\n,b,,2,10,20,40,60,\n7,b,-1,3,10,20,40,60,1\n"x, y",b,,4,10,20,40,60,1\n'
    corpus = read("csv", save(tmp_path, text), first_frame=1)
    assert rows(corpus) == [
        ("a", 0, XYXY, 0.5, "p", 4),
        ("b", 1, XYXY, 1.0, None, -1),
        ("b", 2, XYXY, 1.0, "7", -1),
        ("b", 3, XYXY, 1.0, "x, y", -1),
    ]


def test_numbers_as_polyps_without_videos(tmp_path: Path) -> None:
    path = save(tmp_path, "frame,x1,y1,x2,y2,polyp\n0,10,20,30,40,7\n", "v.csv")
    assert rows(read("csv", path, box="xywh")) == [("v", 0, XYXY, 1.0, "v_7", -1)]
    assert rows(read("csv", path, box="xywh", video="w")) == [("w", 0, XYXY, 1.0, "w_7", -1)]


@pytest.mark.parametrize("separator", [";", "\t"])
def test_semicolons_and_tabs_of_spreadsheets(tmp_path: Path, separator: str) -> None:
    lines = ("frame;x1;y1;x2;y2;score;polyp", "0;10;20;40;60,25;0,5;a,b", "1;10.5;20;40;60;;")
    path = save(tmp_path, "\r\n".join(lines).replace(";", separator) + "\r\n")
    corpus = read("csv", path)
    assert rows(corpus) == [
        ("case", 0, (10.0, 20.0, 40.0, 60.25), 0.5, "a,b", -1),
        ("case", 1, (10.5, 20.0, 40.0, 60.0), 1.0, None, -1),
    ]
    assert guess_format(path) == "csv"


def test_only_a_header(tmp_path: Path) -> None:
    corpus = read("csv", save(tmp_path, "frame,x1,y1,x2,y2\n"), frame_count=5)
    assert [(video.id, video.frame_count) for video in corpus.videos] == [("case", 5)]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", ":1: the header must have frame, x1, y1, x2, y2 and may have video, score, polyp, track"),
        ("frame,x1,y1,x2\n", ":1: the header must have"),
        ("frame,x1,y1,x2,y2,conf\n", ":1: the header must have"),
        ("frame,x1,y1,x2,y2,x1\n", ":1: the header must have"),
        ('frame,x1,y1,x2,y2\n1,2,3,4,"5', ":2: not readable as CSV"),
    ],
)
def test_not_boxes(tmp_path: Path, text: str, part: str) -> None:
    refused("csv", save(tmp_path, text), part, skip_bad=True)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("1,2,3", "7 values are expected"),
        ("x,10,20,40,60,,", "whole numbers for frame and track"),
        ("1,10,20,nan,60,,", "numbers for box and score"),
        ("1,10,20,40,60,x,", "numbers for box and score"),
        ("1,10,20,40,60,1e39,", "the score must be a finite number"),
        ("1,40,20,10,60,,", "x1 < x2"),
        ("-1,10,20,40,60,,", "frames are numbered from 0, found -1"),
        ('1,10,20,40,60,,"""\\ud800"""', "the id of a polyp"),
    ],
)
def test_bad_line(tmp_path: Path, line: str, part: str) -> None:
    path = save(tmp_path, f"frame,x1,y1,x2,y2,score,polyp\n0,10,20,40,60,1,\n{line}\n")
    refused("csv", path, f"{path}:3: ", part)
    corpus = read("csv", path, skip_bad=True)
    assert len(corpus.boxes) == 1
    assert len(told(corpus, "left_out")) == 1


def test_video_is_for_files_without_videos(tmp_path: Path) -> None:
    path = save(tmp_path, "video,frame,x1,y1,x2,y2\na,0,10,20,40,60\n")
    with pytest.raises(DataError, match="has a column video"):
        read("csv", path, video="x")
