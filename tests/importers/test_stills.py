"""Stills: CVC-ClinicDB, Kvasir-SEG, PolypSize and folders of one's own, small ones and real ones."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from polypcount.corpus import check
from polypcount.errors import DataError, FileError
from polypcount.importers.datasets.cvc_clinicdb import published_sequences

from ..conftest import DATA
from .miniatures import image, voc, write
from .reading import frames_and_boxes, remarks
from .reading import read as imported


def test_the_published_ranges_of_cvc_clinicdb() -> None:
    sequences = published_sequences()
    assert len(sequences) == 612
    assert len(set(sequences.values())) == 29
    assert (sequences[25], sequences[26], sequences[612]) == ("1", "2", "29")
    table = DATA / "cvc-clinicdb" / "sequences.csv"
    if table.exists():
        rows = [line.split(",") for line in table.read_text().split()[1:]]
        assert {int(frame): sequence for frame, sequence in rows} == sequences


def cvc(root: Path, suffix: str = "png") -> Path:
    for number, parts in {
        24: [(10, 10, 30, 30)],
        26: [(5, 5, 25, 20), (40, 5, 60, 20)],
        27: [(5, 5, 25, 20), (40, 40, 42, 42)],
    }.items():
        image(root / "Original" / f"{number}.{suffix}")
        image(root / "Ground Truth" / f"{number}.{suffix}", parts=tuple(parts))
    return root


def test_cvc_clinicdb_masks_become_boxes(tmp_path: Path) -> None:
    corpus = imported("cvc-clinicdb", cvc(tmp_path, "tif"))
    assert [(v.id, v.frame_count) for v in corpus.videos] == [("cvc-clinicdb-01", 1), ("cvc-clinicdb-02", 2)]
    assert frames_and_boxes(corpus, "cvc-clinicdb-02") == [
        (0, [5, 5, 25, 20]),
        (0, [40, 5, 60, 20]),
        (1, [5, 5, 25, 20]),
    ], "two parts are two boxes, a speck is none"
    assert corpus.files.name.tolist() == ["24.tif", "26.tif", "27.tif"]


def test_cvc_clinicdb_sequences_from_a_table(tmp_path: Path) -> None:
    table = write(tmp_path / "s.csv", "frame,sequence\n24,x\n26,x\n27,y\n")
    corpus = imported("cvc-clinicdb", cvc(tmp_path / "d"), sequences=table)
    assert [(v.id, v.frame_count) for v in corpus.videos] == [("cvc-clinicdb-0x", 2), ("cvc-clinicdb-0y", 1)]
    write(table, "frame,sequence\n24,x\n")
    with pytest.raises(FileError, match=r"26\.png: it belongs to no sequence"):
        imported("cvc-clinicdb", tmp_path / "d", sequences=table)
    (tmp_path / "d" / "Ground Truth" / "24.png").write_bytes(b"\x89PNG nothing")
    with pytest.raises(FileError, match=r"24\.png is not a readable image"):
        imported("cvc-clinicdb", tmp_path / "d")


@pytest.mark.parametrize("mode", ["0 and 1", "palette", "alpha"])
def test_masks_of_other_kinds(mode: str, tmp_path: Path) -> None:
    image(tmp_path / "images" / "a.png")
    marked = np.zeros((48, 64), np.uint8)
    marked[10:30, 20:50] = 1
    if mode == "alpha":
        mask = Image.new("RGBA", (64, 48))
        mask.putalpha(Image.fromarray(marked * 255))
    else:
        mask = Image.fromarray(marked)
        if mode == "palette":
            mask.putpalette([0, 0, 0, 128, 0, 0])
    (tmp_path / "masks").mkdir()
    mask.save(tmp_path / "masks" / "a.png")
    assert imported("stills", tmp_path).boxes.xyxy.tolist() == [[20, 10, 50, 30]]
    Image.new("L", (64, 48)).save(tmp_path / "masks" / "a.png")
    assert "it marks nothing" in remarks(imported("stills", tmp_path))[0]


def test_parts_of_a_mask_that_touch_at_a_corner_are_one(tmp_path: Path) -> None:
    image(tmp_path / "images" / "a.png")
    image(tmp_path / "masks" / "a.png", parts=((10, 10, 20, 20), (20, 20, 30, 30)))
    assert imported("stills", tmp_path).boxes.xyxy.tolist() == [[10, 10, 30, 30]]


def test_options_may_be_texts(tmp_path: Path) -> None:
    table = write(tmp_path / "s.csv", "frame,sequence\n24,x\n26,x\n27,y\n")
    assert len(imported("cvc-clinicdb", cvc(tmp_path / "d"), sequences=str(table)).videos) == 2
    with pytest.raises(FileError, match="gone does not exist") as caught:
        imported("cvc-clinicdb", tmp_path / "d", sequences="gone")
    assert caught.value.mend == ("sequences",)
    for wrong in ({"colour": "red"}, {"fps": "fast"}, {"box": "round"}):
        with pytest.raises(DataError, match=f"coco: {next(iter(wrong))} "):
            imported("coco", tmp_path, **wrong)


def test_stills_with_masks_labels_and_splits(tmp_path: Path) -> None:
    image(tmp_path / "images" / "train" / "a 1.jpg")
    image(tmp_path / "masks" / "a 1.jpg", parts=((10, 10, 30, 30),))
    image(tmp_path / "images" / "val" / "b.jpg")
    write(tmp_path / "labels" / "val" / "b.txt", "0 0.5 0.5 0.25 0.5\n\n")
    corpus = imported("stills", tmp_path)
    name = tmp_path.name
    assert [(v.id, v.split, v.frame_count) for v in corpus.videos] == [
        (f"{name}-a 1", "train", 1),
        (f"{name}-b", "val", 1),
    ]
    assert corpus.boxes.xyxy[1].tolist() == [24, 12, 40, 36]
    np.testing.assert_allclose(corpus.boxes.xyxy[0], [10, 10, 30, 30], atol=1)
    assert [polyp.id for polyp in corpus.polyps] == [f"{name}-a 1", f"{name}-b"]
    assert not check(corpus).items
    image(tmp_path / "images" / "c.jpg")
    with pytest.raises(FileError, match=r"c\.jpg: it has neither a mask nor a label"):
        imported("stills", tmp_path)
    image(tmp_path / "masks" / "c.jpg", size=(9, 9))
    with pytest.raises(FileError, match="must be 64 x 48 pixels as its image, found 9 x 9"):
        imported("stills", tmp_path)
    image(tmp_path / "images" / "val" / "c.jpg")
    with pytest.raises(FileError, match="has the same name as"):
        imported("stills", tmp_path)


def test_polypsize_takes_any_label_of_the_same_name(tmp_path: Path) -> None:
    for number in (5, 6, 8, 9):
        image(tmp_path / "frames" / f"Video07_frame{number:04d}.jpg")
    write(tmp_path / "xml" / "Video07_frame0005.xml", voc(64, 48, ("1", "2", "30", "40")))
    write(tmp_path / "txt" / "Video07_frame0006.txt", "0 0.5 0.5 0.25 0.5\n")
    image(tmp_path / "masks" / "Video07_frame0008.png", parts=((10, 10, 30, 30),))
    corpus = imported("polypsize", tmp_path)
    assert frames_and_boxes(corpus, "polypsize-Video07") == [
        (0, [1, 2, 30, 40]),
        (1, [24, 12, 40, 36]),
        (3, [10, 10, 30, 30]),
    ]
    assert corpus.videos[0].frame_count == 5
    assert remarks(corpus) == ["Video07_frame0009.jpg: no label, so no box"]
    with pytest.raises(FileError, match="has 4 images VideoNN_frameNNNN and 0 labels"):
        imported("polypsize", tmp_path / "frames")


def test_real_cvc_clinicdb() -> None:
    if not (DATA / "cvc-clinicdb").is_dir():
        pytest.skip(f"cvc-clinicdb is not at {DATA}")
    corpus = imported("cvc-clinicdb", DATA / "cvc-clinicdb")
    assert len(corpus.videos) == len(corpus.polyps) == 29
    assert sum(video.frame_count for video in corpus.videos) == len(corpus.files) == 612
    assert len(corpus.boxes) == 646
    findings = check(corpus)
    assert {finding.kind for finding in findings} == {"polyp twice in a frame"}
    assert [finding.video for finding in findings] == ["cvc-clinicdb-04", "cvc-clinicdb-27"]


def test_real_kvasir_seg(tmp_path: Path) -> None:
    """The first hundred stills; all thousand have 1,063 boxes."""
    if not (DATA / "kvasir-seg").is_dir():
        pytest.skip(f"kvasir-seg is not at {DATA}")
    for kind in ("images", "masks"):
        (tmp_path / kind).mkdir()
        for path in sorted((DATA / "kvasir-seg" / kind).rglob("*.*"), key=lambda path: path.stem)[:100]:
            (tmp_path / kind / path.name).symlink_to(path)
    corpus = imported("kvasir-seg", tmp_path)
    assert len(corpus.videos) == len(corpus.polyps) == len(corpus.files) == 100
    assert len(corpus.boxes) == 104
    assert not check(corpus).errors
