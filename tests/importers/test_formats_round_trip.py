"""What is written can be read back, by polypcount and by other programs."""

import csv
import dataclasses
import io
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polypcount.corpus import Boxes, Corpus, Polyp, Video
from polypcount.errors import DataError, FileError
from polypcount.importers import write_boxes
from tests.importers.format_cases import Row, read, rows

NASTY = [
    "a",
    "A",
    "a/b",
    "..",
    ".",
    "case 1",
    " x",
    "x ",
    '"q"',
    "é😀",
    "a\nb",
    "<&>",
    "%(x)s",
    "#1",
    "CON",
    "gt",
    "a_1",
    "=",
    "'=",
    "-1+2",
    "@x",
]
EXAMPLES = settings(max_examples=int(os.environ.get("POLYPCOUNT_FUZZ", "15")))


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    """Small corpora of awkward names, sizes, identities and tracks; each polyp is in one video."""
    names = st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
    videos: list[Video] = []
    polyps: list[Polyp] = []
    columns = []
    for row, name in enumerate(draw(st.lists(names, min_size=1, max_size=3, unique=True))):
        video = Video(
            name,
            frame_count=draw(st.integers(1, 12)),
            fps=draw(st.sampled_from([None, 25.0, 29.97])),
            width=draw(st.integers(1, 2000)),
            height=draw(st.integers(1, 2000)),
        )
        videos.append(video)
        first = len(polyps)
        for index in range(draw(st.integers(0, 3))):
            polyps.append(
                Polyp(draw(st.sampled_from([f"{name}_{index + 4}", f"{row}{index}", f" p{row} {index}"])), name)
            )
        for _ in range(draw(st.integers(0, 8))):
            x, y = (draw(st.floats(-500, 2000, width=32)) for _ in range(2))
            across, down = (draw(st.floats(0.5, 500, width=32)) for _ in range(2))
            polyp = draw(st.integers(first - 1, len(polyps) - 1))
            score = draw(st.sampled_from([1.0, 0.5, 0.1]))
            track = draw(st.integers(-1, 3))
            frame = draw(st.integers(0, video.frame_count - 1))
            columns.append((row, frame, (x, y, x + across, y + down), score, polyp if polyp >= first else -1, track))
    unique = {polyp.id for polyp in polyps}
    if len(unique) < len(polyps):
        polyps = [dataclasses.replace(polyp, id=f"{polyp.id} {row}") for row, polyp in enumerate(polyps)]
    boxes = Boxes(*zip(*columns, strict=True)) if columns else Boxes.empty()
    return Corpus(tuple(videos), boxes, tuple(polyps))


def there_and_back(corpus: Corpus, format: str) -> Corpus:
    with tempfile.TemporaryDirectory() as folder:
        out = write_boxes(corpus, format, Path(folder) / "out")
        single = {"coco": out / "boxes.json", "csv": out / "boxes.csv"}
        return read(format, single.get(format, out))


def facts(corpus: Corpus, *names: str) -> list[tuple[Any, ...]]:
    return sorted((video.id, *(getattr(video, name) for name in names)) for video in corpus.videos)


def without(kept: Corpus, lose: Callable[[Row], Row]) -> list[Row]:
    return sorted(map(lose, rows(kept)), key=repr)


SIZES = ("frame_count", "width", "height")


@EXAMPLES
@given(corpora())
def test_coco_keeps_everything(corpus: Corpus) -> None:
    back = there_and_back(corpus, "coco")
    assert back.videos == corpus.videos
    assert {polyp.id: polyp for polyp in back.polyps} == {polyp.id: polyp for polyp in corpus.polyps}
    assert rows(back) == rows(corpus)


@EXAMPLES
@given(corpora())
def test_cvat_keeps_boxes_exactly(corpus: Corpus) -> None:
    back = there_and_back(corpus, "cvat")
    assert facts(back, *SIZES) == facts(corpus, *SIZES)
    assert rows(back) == rows(corpus)


@EXAMPLES
@given(corpora())
def test_csv_keeps_boxes_exactly(corpus: Corpus) -> None:
    assert rows(there_and_back(corpus, "csv")) == rows(corpus)


LIKE_FORMULAS = st.tuples(
    st.sampled_from(["", "'", "''", " "]),
    st.sampled_from(list("=+-@\t\r")),
    st.sampled_from(["", "1", "'", "SUM(A1)", "x"]),
).map("".join)


@EXAMPLES
@given(st.lists(LIKE_FORMULAS, min_size=2, max_size=6, unique=True))
def test_ids_like_formulas_are_guarded_in_csv_and_read_back(ids: list[str]) -> None:
    videos = tuple(Video(name, 1) for name in ids)
    polyps = tuple(Polyp(name, name) for name in ids)
    columns = [(row, 0, (0, 0, 9, 9), 1.0, row, -1) for row in range(len(ids))]
    corpus = Corpus(videos, Boxes(*zip(*columns, strict=True)), polyps)
    assert sorted(rows(there_and_back(corpus, "csv"))) == sorted(rows(corpus))
    with tempfile.TemporaryDirectory() as folder:
        table = (write_boxes(corpus, "csv", Path(folder) / "out") / "boxes.csv").read_text()
    cells = [cell for line in csv.reader(io.StringIO(table, newline="")) for cell in line]
    assert not [cell for cell in cells if cell[:1] in tuple("=+-@\t\r") and cell not in ("+1", "-1")]


@EXAMPLES
@given(corpora())
def test_mot_keeps_boxes_and_polyps(corpus: Corpus) -> None:
    back = there_and_back(corpus, "mot")
    assert facts(back, "fps", *SIZES) == facts(corpus, "fps", *SIZES)
    assert rows(back) == without(corpus, lambda row: row if row[4] is None else (*row[:3], 1.0, row[4], -1))


@EXAMPLES
@given(corpora())
def test_yolo_keeps_boxes_nearly(corpus: Corpus) -> None:
    back = there_and_back(corpus, "yolo")
    with_polyps = {row[0] for row in rows(corpus) if row[4] is not None}
    expected = without(corpus, lambda row: (*row[:5], -1 if row[0] in with_polyps else row[5]))
    found = rows(back)

    def key(row: Row) -> Any:
        return (row[0], row[1], repr(row[3:]), tuple(np.round(row[2], 1)))

    for mine, theirs in zip(sorted(expected, key=key), sorted(found, key=key), strict=True):
        assert (mine[:2], mine[3:]) == (theirs[:2], theirs[3:])
        np.testing.assert_allclose(mine[2], theirs[2], atol=1e-3)
    assert facts(back, *SIZES) == facts(corpus, *SIZES)


@pytest.fixture
def corpus() -> Corpus:
    """Two videos; a polyp twice in a frame, a gap, a box without a polyp."""
    boxes = Boxes(
        video=[0, 0, 0, 0, 1],
        frame=[0, 0, 1, 5, 2],
        xyxy=np.array([[0, 0, 10.5, 10], [20, 0, 30, 10], [1, 0, 11, 10], [2, 0, 12, 10.1], [5, 5, 9, 9]]),
        score=[1, 1, 0.9, 1, 0.3],
        polyp=[0, 0, 0, 1, -1],
        track=[-1, -1, -1, -1, 4],
    )
    videos = (
        Video("one/1", 8, 25, 64, 48, dataset="sun", centre="c", split="train"),
        Video("two", 3, None, 32, 32),
        Video("none", 4),
    )
    polyps = (Polyp("one/1_7", "one/1", 4.5, "rectum", "AD"), Polyp("other", "one/1"), Polyp("unseen", "two", 3))
    return Corpus(videos, boxes, polyps)


def test_coco_details(corpus: Corpus) -> None:
    back = there_and_back(corpus, "coco")
    assert back.videos == corpus.videos
    assert set(back.polyps) == set(corpus.polyps)
    assert back.content_hash == corpus.content_hash


def test_pycocotools_reads_our_coco(corpus: Corpus, tmp_path: Path) -> None:
    coco = pytest.importorskip("pycocotools.coco")
    loaded = coco.COCO(write_boxes(corpus, "coco", tmp_path / "out") / "boxes.json")
    assert len(loaded.getImgIds()) == 4
    assert [category["name"] for category in loaded.loadCats(loaded.getCatIds())] == ["polyp"]
    found = loaded.loadAnns(loaded.getAnnIds(imgIds=[1]))
    assert [annotation["bbox"] for annotation in found] == [[0, 0, 10.5, 10], [20, 0, 10, 10]]
    assert found[0]["area"] == 105
    assert loaded.loadRes(found).getAnnIds() == [1, 2]


@pytest.mark.filterwarnings("ignore:Operation with tuple is deprecated")
def test_motmetrics_reads_our_mot(corpus: Corpus, tmp_path: Path) -> None:
    io = pytest.importorskip("motmetrics").io
    out = write_boxes(corpus, "mot", tmp_path / "out")
    assert sorted(folder.name for folder in out.iterdir()) == ["none", "one_1", "two"]
    truth = io.loadtxt(out / "one_1" / "gt" / "gt.txt", fmt="mot16")
    assert truth.index.tolist() == [(1, 7), (1, 7), (2, 7), (6, 1)]
    # motmetrics takes 1 off x and y, as if pixels counted from 1; TrackEval, CVAT and we leave them as they are.
    assert truth[["X", "Y", "Width", "Height"]].to_numpy().tolist()[0] == [-1, -1, 10.5, 10]
    detections = io.loadtxt(out / "two" / "det" / "det.txt", fmt="mot15-2D")
    assert detections.index.tolist() == [(3, 4)]
    assert detections["Confidence"].tolist() == [0.3]


def test_no_spreadsheet_takes_an_id_in_csv_for_a_formula(tmp_path: Path) -> None:
    video = Video("=cmd()", 1, width=9, height=9)
    corpus = Corpus((video,), Boxes([0], [0], [[-1, -2, 3, 4]], polyp=[0]), (Polyp("@sum", "=cmd()"),))
    out = write_boxes(corpus, "csv", tmp_path / "out")
    with (out / "boxes.csv").open(newline="") as file:
        cells = list(csv.reader(file))[1]
    assert not [cell for cell in cells if cell[:1] in "=+@" and cell]
    assert cells[2] == "-1"
    assert rows(read("csv", out / "boxes.csv")) == rows(corpus)


def test_cvat_has_runs_and_copies(corpus: Corpus, tmp_path: Path) -> None:
    text = (write_boxes(corpus, "cvat", tmp_path / "out") / "one_1.xml").read_text()
    assert text.count("<track ") == 3
    assert text.count('<attribute name="identity">one/1_7</attribute>') == 5
    assert text.count('outside="1"') == 3
    assert "<name>one/1</name><size>8</size>" in text


def test_what_cannot_be_written(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="voc cannot be written; these can: coco, mot, yolo, cvat, csv"):
        write_boxes(corpus, "voc", tmp_path / "out")
    bare = dataclasses.replace(corpus, videos=tuple(dataclasses.replace(v, width=None) for v in corpus.videos))
    with pytest.raises(DataError, match="video one/1: YOLO text needs the width and height"):
        write_boxes(bare, "yolo", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format", ["coco", "mot", "yolo", "cvat", "csv"])
def test_an_empty_corpus_is_written(format: str, tmp_path: Path) -> None:
    out = write_boxes(Corpus(()), format, tmp_path / "out")
    try:
        assert len(read(format, out / f"boxes.{'json' if format == 'coco' else format}").boxes) == 0
    except FileError:
        assert format in ("mot", "yolo", "cvat")


def test_numbers_beyond_the_usual_survive(tmp_path: Path) -> None:
    sides = np.array([[1e-6, 3e-6, 2e-6, 1e30], [16777216, 0.1, 16777218, 0.2], [-1e4, 1 / 3, 1e-3, 2 / 3]], np.float32)
    corpus = Corpus((Video("v", 3, width=7, height=9),), Boxes([0, 0, 0], [0, 1, 2], sides, [1e-7, -3, 1e20]))
    for format in ("coco", "cvat", "csv", "mot"):
        back = there_and_back(corpus, format)
        np.testing.assert_array_equal(back.boxes.xyxy, sides, format)
        np.testing.assert_array_equal(back.boxes.score, corpus.boxes.score)
