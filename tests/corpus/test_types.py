"""What the types refuse, and how they say so."""

import dataclasses

import numpy as np
import pytest

from polypcount.corpus import Boxes, Corpus, FrameFiles, Polyp, Tracklets, Video
from polypcount.errors import DataError

GOOD = [0.0, 0.0, 10.0, 10.0]


def test_columns_get_their_types_and_defaults() -> None:
    boxes = Boxes(video=[0, 0], frame=[3, 4], xyxy=[GOOD, [1.0, 2.0, 3.0, 4.0]])
    assert {name: str(column.dtype) for name, column in boxes.columns().items()} == {
        "video": "int32",
        "frame": "int32",
        "xyxy": "float32",
        "score": "float32",
        "polyp": "int32",
        "track": "int32",
    }
    assert boxes.score.tolist() == [1, 1]
    assert boxes.polyp.tolist() == boxes.track.tolist() == [-1, -1]
    assert len(Boxes.empty()) == 0
    assert Boxes.empty().xyxy.shape == (0, 4)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"xyxy": [GOOD, [5, 0, 5, 9]]}, "boxes row 1: x2 must be greater than x1, found x1 5 and x2 5"),
        ({"xyxy": [[0, 7, 9, 6], GOOD]}, "boxes row 0: y2 must be greater than y1, found y1 7 and y2 6"),
        ({"xyxy": [GOOD, [0, float("nan"), 9, 9]]}, "boxes row 1: xyxy must be finite, found nan"),
        ({"score": [float("inf"), 1]}, "boxes row 0: score must be finite, found inf"),
        ({"frame": [0, -1]}, "boxes row 1: frame must be at least 0, found -1"),
        ({"frame": [0.5, 1]}, "boxes row 0: frame must be a whole number, found 0.5"),
        ({"frame": [float("nan"), 1]}, "boxes row 0: frame must be a whole number, found nan"),
        ({"frame": [0, 2**31]}, "boxes row 1: frame must be at most 2147483646, found 2147483648"),
        ({"frame": ["a", "b"]}, "boxes: column frame must hold whole numbers"),
        ({"score": ["a", "b"]}, "boxes: column score must hold numbers"),
        ({"polyp": [-2, -1]}, "boxes row 0: polyp must be at least -1, found -2"),
        ({"track": [-2, -3]}, r"boxes row 0: track must be at least -1, found -2 \(and 1 more row like it\)"),
        ({"score": [1j, 1]}, "boxes: column score must hold numbers, found complex128"),
        ({"xyxy": [GOOD, [1, 2]]}, "boxes: the rows of xyxy must be equally long"),
        ({"frame": [1]}, "Boxes: columns must be equally long, found rows: video 2, frame 1"),
        ({"frame": [[0, 1]]}, r"column frame must have one dimension, found the shape \[1, 2\]"),
        ({"xyxy": [[0, 1, 2], [0, 1, 2]]}, r"xyxy must have the shape \[n, 4\], found \[2, 3\]"),
    ],
)
def test_bad_boxes_are_refused_by_row(columns: dict[str, object], message: str) -> None:
    whole = {"video": [0, 0], "frame": [0, 1], "xyxy": [GOOD, GOOD], **columns}
    with pytest.raises(DataError, match=message):
        Boxes(**whole)  # type: ignore[arg-type]


def test_nothing_can_be_changed_afterwards() -> None:
    given = np.array([0, 1], np.int32)
    boxes = Boxes([0, 0], given, [GOOD, GOOD])
    given[0] = 9
    assert boxes.frame.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        boxes.frame[0] = 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        boxes.frame = given  # type: ignore[misc]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"id": ""}, "the id must not be empty"),
        ({"frame_count": -1}, "frame_count must be from 0"),
        ({"frame_count": 2.5}, "frame_count must be whole"),
        ({"fps": 0}, "fps must be a positive number or None, found 0"),
        ({"fps": float("nan")}, "fps must be a positive number or None, found nan"),
        ({"width": 0}, "width must be positive or None"),
        ({"width": 2**40}, "width must be positive or None"),
        ({"fps": "25"}, "fps must be a number, found '25'"),
        ({"frame_count": float("inf")}, "frame_count must be whole, found inf"),
        ({"frame_count": 10**400}, "frame_count must be from 0"),
        ({"frame_count": None}, "frame_count must be a number, found None"),
        ({"id": 5}, "id must be a text, found 5"),
        ({"dataset": None}, "dataset must be a text, found None"),
        ({"source": ""}, "the source must not be empty"),
    ],
)
def test_bad_videos_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Video(**{"id": "a", "frame_count": 10, **values})  # type: ignore[arg-type]


def test_bad_polyps_are_refused() -> None:
    with pytest.raises(DataError, match="polyp p: size_mm must be"):
        Polyp("p", size_mm=-1)
    with pytest.raises(DataError, match="id must not be empty"):
        Polyp("")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"boxes": Boxes([0], [10], [GOOD])}, "boxes row 0: frame 10 is outside video a, whose frames are 0 to 9"),
        ({"boxes": Boxes([2], [0], [GOOD])}, "boxes row 0: video 2 is unknown"),
        ({"boxes": Boxes([0], [0], [GOOD], polyp=[0])}, "boxes row 0: polyp 0 is unknown"),
        ({"files": FrameFiles([0], [10], ["x.png"])}, "frame files row 0: frame 10 is outside video a"),
        ({"polyps": (Polyp("p", video="b"),)}, "polyp p: there is no video b in the corpus"),
        ({"polyps": (Polyp("p"), Polyp("p"))}, "polyp ids must differ; more than once there is p"),
        ({"videos": (Video("a", 1), Video("a", 2))}, "video ids must differ; more than once there is a"),
    ],
)
def test_bad_corpora_are_refused(parts: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Corpus(**{"videos": (Video("a", 10),), **parts})  # type: ignore[arg-type]


def test_frame_files_stay_inside_their_folder_and_are_unique() -> None:
    for name in ("/etc/passwd", "../x.png", "a/../../x.png"):
        with pytest.raises(DataError, match=r"frame files row 0: .* lies outside"):
            FrameFiles([0], [0], [name])
    with pytest.raises(DataError, match="frame files row 2: frame 4 of its video has a file already"):
        FrameFiles([0, 0, 0], [4, 2, 4], ["a.png", "b.png", "c.png"])
    with pytest.raises(DataError, match="frame files row 0: name must be a non-empty text, found ''"):
        FrameFiles([0], [0], [""])


def test_a_corpus_orders_its_rows() -> None:
    boxes = Boxes([1, 0, 0, 0], [0, 5, 2, 5], [GOOD] * 4, score=[0.1, 0.2, 0.3, 0.4])
    assert not boxes.is_ordered
    corpus = Corpus((Video("a", 10), Video("b", 10)), boxes)
    assert corpus.boxes.is_ordered
    assert corpus.boxes.score.tolist() == pytest.approx([0.3, 0.2, 0.4, 0.1])
    assert corpus.boxes.of_video(0) == slice(0, 3)


def test_tracklets_gather_their_boxes_whatever_the_row_order() -> None:
    boxes = Boxes([0] * 5, [9, 1, 8, 2, 5], [GOOD] * 5, polyp=[1, 0, 1, 0, 2])
    tracklets = Tracklets.gather(boxes, [1, 0, 1, 0, -1])
    assert tracklets.rows(0).tolist() == [1, 3]
    assert tracklets.rows(1).tolist() == [2, 0]
    assert (tracklets.start_frame.tolist(), tracklets.stop_frame.tolist()) == ([1, 8], [3, 10])
    assert tracklets.box_count.tolist() == [2, 2]
    assert tracklets.polyp.tolist() == [0, 1]
    mixed = Tracklets.gather(boxes, [0, 0, 0, 0, 0])
    assert mixed.polyp.tolist() == [-1]


def test_tracklets_of_unequal_columns_are_refused() -> None:
    whole = Tracklets.gather(Boxes([0, 0], [0, 1], [GOOD, GOOD]), [0, 0])
    with pytest.raises(DataError, match="columns must be equally long"):
        dataclasses.replace(whole, polyp=np.array([0, 1], np.int32))


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ([0, 0], "label must have a row per box, found 2 for 3 boxes"),
        ([0, 2, 2], "no box has the label 1"),
        ([0, 0, 0], "box row 2 carries the label of a tracklet in another video"),
    ],
)
def test_bad_tracklets_are_refused(label: list[int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Tracklets.gather(Boxes([0, 0, 1], [0, 1, 2], [GOOD] * 3), label)
