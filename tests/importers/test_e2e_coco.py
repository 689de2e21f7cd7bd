"""The combined COCO files of the paper's authors, old and new, and folds."""

import json
from pathlib import Path
from typing import Any

import pytest

from polypcount.corpus import Corpus
from polypcount.errors import FileError
from polypcount.importers import read_corpus

from .miniatures import image, write


def imported(path: Path, **options: object) -> Corpus:
    return read_corpus("e2e-coco", path, cache=False, **options)  # type: ignore[arg-type]


def newer(video: str, dataset: str, polyp: str, frames: range = range(3)) -> dict[str, Any]:
    """Images with sequence_id, frame_id and dataset_id, annotations with identity_id."""
    base = sum(map(ord, video)) * 1000
    images = [
        {"id": base + k, "file_name": f"{video}_{k}.jpg", "width": 64, "height": 48, "frame_id": k,
         "sequence_id": video, "dataset_id": dataset}
        for k in frames
    ]  # fmt: skip
    boxes = [
        {"id": base + k, "image_id": base + k, "bbox": [k, 2, 30, 40], "category_id": 1, "identity_id": polyp,
         "size": 4, "histology": "AD"}
        for k in frames
    ]  # fmt: skip
    return {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "polyp"}]}


def joined(*parts: dict[str, Any]) -> str:
    return json.dumps({key: [entry for part in parts for entry in part[key]] for key in ("images", "annotations")})


def test_a_combined_file(tmp_path: Path) -> None:
    text = joined(
        newer("dataset3_001-001", "dataset3", "dataset3_001-001_1"), newer("dataset0_7", "dataset0", "dataset0_7")
    )
    corpus = imported(write(tmp_path / "instances_train.json", text))
    assert [(v.id, v.dataset, v.split, v.frame_count, v.width) for v in corpus.videos] == [
        ("dataset0_7", "dataset0", "train", 3, 64),
        ("dataset3_001-001", "real-colon", "train", 3, 64),
    ]
    assert [(p.id, p.video, p.size_mm, p.histology) for p in corpus.polyps] == [
        ("dataset0_7", "dataset0_7", 4.0, "AD"),
        ("dataset3_001-001_1", "dataset3_001-001", 4.0, "AD"),
    ]
    assert corpus.boxes.xyxy[1].tolist() == [1, 2, 31, 42], "x, y, width and height"
    assert corpus.boxes.frame.tolist() == [0, 1, 2] * 2


def test_the_older_meaning_of_sequence_id(tmp_path: Path) -> None:
    images = [{"id": k, "file_name": f"001-001_{k}.jpg", "width": 64, "height": 48} for k in (4, 5)]
    boxes = [
        {"id": k, "image_id": k, "bbox": [1, 2, 30, 40], "category_id": 1, "sequence_id": "001-001_2"} for k in (4, 5)
    ]
    path = write(tmp_path / "train.json", json.dumps({"images": images, "annotations": boxes}))
    corpus = imported(path)
    assert [(v.id, v.frame_count) for v in corpus.videos] == [("001-001", 6)]
    assert [p.id for p in corpus.polyps] == ["001-001_2"]
    assert corpus.boxes.frame.tolist() == [4, 5]


def test_a_fold(tmp_path: Path) -> None:
    fold = tmp_path / "oneout_001-009"
    write(fold / "annotations" / "instances_train.json", joined(newer("001-001", "dataset3", "001-001_1")))
    write(fold / "annotations" / "instances_val.json", joined(newer("001-010", "dataset3", "001-010_1")))
    write(fold / "annotations" / "instances_test.json", joined(newer("001-009", "dataset3", "001-009_1")))
    for video in ("001-001", "001-009", "001-010"):
        for k in range(3):
            image(fold / "images" / f"{video}_{k}.jpg")
    corpus = imported(fold)
    assert {v.id: v.split for v in corpus.videos} == {"001-001": "train", "001-010": "val", "001-009": "test"}
    assert corpus.videos[0].source == str(fold / "images")
    assert corpus.files.name[corpus.files.of_video(0)].tolist() == [f"{corpus.videos[0].id}_{k}.jpg" for k in range(3)]
    with pytest.raises(FileError, match="it holds folds, choose one of them: oneout_001-009"):
        imported(tmp_path)
    write(fold / "annotations" / "instances_val.json", joined(newer("001-001", "dataset3", "001-001_1")))
    with pytest.raises(FileError, match=r"the video 001-001 is in instances_train\.json already"):
        imported(fold)


@pytest.mark.parametrize(
    ("key", "index", "change", "message"),
    [
        (
            "annotations",
            1,
            {"identity_id": None},
            r"annotations\[1\]: the id of a polyp of video v is expected, found None",
        ),
        ("annotations", 1, {"bbox": [1, 2, 3]}, r"annotations\[1\]\.bbox: four numbers are expected"),
        ("annotations", 1, {"bbox": [1, 2, -3, 4]}, r"annotations\[1\]: the box must have x1 < x2"),
        ("annotations", 1, {"image_id": 99}, r"annotations\[1\]\.image_id: the id of an image is expected, found 99"),
        ("images", 1, {"frame_id": -1}, r"images\[1\]: a sequence_id and a frame_id from 0"),
        ("images", 1, {"frame_id": 0}, r"images\[1\]: frame 0 of video v is image \d+ already"),
    ],
)
def test_bad_entries(key: str, index: int, change: dict[str, Any], message: str, tmp_path: Path) -> None:
    content = newer("v", "dataset3", "v_1")
    content[key][index].update(change)
    path = write(tmp_path / "instances_train.json", json.dumps(content))
    with pytest.raises(FileError, match=message):
        imported(path)
    assert len(imported(path, skip_bad=True).boxes) == 2


def test_a_polyp_of_two_videos_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", joined(newer("a", "d", "p"), newer("b", "d", "p")))
    with pytest.raises(FileError, match=r"annotations\[3\]: the id of a polyp of video b is expected, found 'p'"):
        imported(path)
