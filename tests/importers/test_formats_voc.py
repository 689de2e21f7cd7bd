"""Pascal VOC folders: frames, identities, sizes, and what is wrong with bad files."""

from pathlib import Path

import pytest

from tests.importers.format_cases import read, refused, rows, told

XYXY = (10.0, 20.0, 40.0, 60.0)


def voc(identity: str = "", size: str = "<width>64</width><height>48</height>", box: str = "10 20 40 60") -> str:
    sides = "".join(f"<{n}>\n {v} </{n}>" for n, v in zip(("xmin", "ymin", "xmax", "ymax"), box.split(), strict=True))
    return (
        f"<annotation><size>{size}</size><object><name>p</name>{identity}<bndbox>{sides}</bndbox></object></annotation>"
    )


def save(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_one_video(tmp_path: Path) -> None:
    folder = tmp_path / "case"
    save(folder / "f_2.xml", voc("<unique_id>001-001_1</unique_id>"))
    save(folder / "f_10.0.xml", voc("<track_id>4</track_id>", size="<width>32</width><height>32</height>"))
    save(folder / "f_12.xml", "<annotation></annotation>")
    corpus = read("voc", folder)
    (video,) = corpus.videos
    assert (video.id, video.frame_count, video.width, video.height) == ("case", 13, 64, 48)
    assert rows(corpus) == [("case", 10, XYXY, 1.0, "case_4", -1), ("case", 2, XYXY, 1.0, "001-001_1", -1)]
    assert "1 of 2 images have another size than 64 x 48" in told(corpus, "remarks")[0]
    tracked = read("voc", folder, ids="track", first_frame=2, box="xyxy-inclusive", video="v")
    inclusive = (10.0, 20.0, 41.0, 61.0)
    assert rows(tracked) == [("v", 0, inclusive, 1.0, None, 0), ("v", 8, inclusive, 1.0, None, 4)]


def test_folder_of_videos(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save(tmp_path / name / "1.xml", voc("<unique_id>p</unique_id>"))
    assert [polyp.id for polyp in read("voc", tmp_path).polyps] == ["a_p", "b_p"]


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("1.xml", "not XML", "1.xml:1: not well-formed XML"),
        ("1.xml", "<annotations/>", "1.xml:1: the root element must be annotation"),
        ("1.xml", voc(box="10 20 x 60"), "object/bndbox: four numbers"),
        ("1.xml", voc(box="10 20 10 60"), "object: the box must have x1 < x2"),
        (
            "1.xml",
            f"<unique_id>{'x' * 2000}</unique_id>".join(("<annotation><object>", "</object></annotation>")),
            "bndbox",
        ),
        ("1.xml", voc(f"<unique_id>{'x' * 2000}</unique_id>"), "an identity that can be an id"),
        ("b_5.xml", voc(), "b_5.xml: frame 5 has a file already"),
        ("notes.xml", voc(), "notes.xml: a name that ends in the number"),
    ],
)
def test_bad_file(tmp_path: Path, name: str, text: str, part: str) -> None:
    save(tmp_path / "a_5.xml", voc())
    save(tmp_path / name, text)
    refused("voc", tmp_path, part)
    corpus = read("voc", tmp_path, skip_bad=True)
    assert len(corpus.boxes) == 1
    assert len(told(corpus, "left_out")) == 1


def test_not_voc(tmp_path: Path) -> None:
    refused("voc", tmp_path, "holds no XML files")
    refused("voc", save(tmp_path / "1.xml", voc()), "a folder of XML files is expected")
    save(tmp_path / "1.xml", voc())
    refused("voc", tmp_path, "1.xml: frames are numbered from 2, found 1", first_frame=2)
