"""REAL-Colon, quirk by quirk."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from polypcount.corpus import check
from polypcount.errors import DataError, FileError
from polypcount.importers.datasets.real_colon import _read_lesions, _read_video, _read_videos, split_of
from polypcount.importers.datasets.real_colon_frames import FrameReader
from polypcount.importers.reading import Options, Problems

from ..conftest import DATA
from .miniatures import LESION_INFO, VIDEO_INFO, real_colon, real_colon_xml, write
from .reading import boxes_of, remarks
from .reading import real_colon_corpus as imported


def test_folders_become_videos_with_boxes_and_polyps(tmp_path: Path) -> None:
    corpus = imported(real_colon(tmp_path, {"001-001": 2, "001-009": 1, "004-015": 0}))
    assert [(v.id, v.frame_count, v.fps, v.width, v.height) for v in corpus.videos] == [
        ("001-001", 12, 29.97, 1240, 1080),
        ("001-009", 12, 29.97, 1240, 1080),
        ("004-015", 12, 29.97, 1240, 1080),
    ]
    assert [(v.dataset, v.centre, v.split, v.source) for v in corpus.videos] == [
        ("real-colon", "001", "train", None),
        ("real-colon", "001", "study", None),
        ("real-colon", "004", "", None),
    ]
    assert boxes_of(corpus) == [
        ("001-001", 2, [10, 5, 60, 60], "001-001_1"),
        ("001-001", 3, [10, 5, 60, 60], "001-001_1"),
        ("001-001", 4, [20, 5, 70, 60], "001-001_2"),
        ("001-001", 5, [20, 5, 70, 60], "001-001_2"),
        ("001-009", 2, [10, 5, 60, 60], "001-009_1"),
        ("001-009", 3, [10, 5, 60, 60], "001-009_1"),
    ]
    assert [(p.id, p.video, p.size_mm, p.site, p.histology) for p in corpus.polyps] == [
        ("001-001_1", "001-001", 1.0, "sigma", "AD"),
        ("001-001_2", "001-001", 2.0, "sigma", "AD"),
        ("001-009_1", "001-009", 1.0, "sigma", "AD"),
    ]


def test_both_spellings_of_the_annotation_folder(tmp_path: Path) -> None:
    one = imported(real_colon(tmp_path / "a", {"001-001": 1}, folder="annotation"))
    two = imported(real_colon(tmp_path / "b", {"001-001": 1}, folder="annotations"))
    assert one.content_hash == two.content_hash


def test_frame_numbers_are_not_padded_and_may_be_decimal(tmp_path: Path) -> None:
    root = real_colon(tmp_path, {"001-001": 5})
    folder = root / "001-001_annotations"
    expected = imported(root)
    assert [frame for _, frame, _, _ in boxes_of(expected)] == list(range(2, 12)), "9 comes before 10"
    for path in list(folder.iterdir()):
        path.rename(path.with_name(f"{path.stem}.0.xml"))
    assert imported(root).content_hash == expected.content_hash


def test_frames_folder_becomes_the_source(tmp_path: Path) -> None:
    root = real_colon(tmp_path, {"001-001": 1})
    for frame in range(12):
        write(root / "001-001_frames" / f"001-001_{frame}.jpg", "")
    corpus = imported(root)
    assert corpus.videos[0].source == str(root / "001-001_frames")
    assert len(corpus.files) == 0, "image k is frame k"
    assert not check(corpus).items
    (root / "001-001_annotations" / "001-001_7.xml").unlink()
    with_gap = imported(root)
    assert "video 001-001: 11 annotation files for 12 frames" in remarks(with_gap)
    assert with_gap.videos[0].frame_count == 12
    assert len(with_gap.files) == 0, "images are complete all the same"
    (root / "001-001_frames" / "001-001_3.jpg").unlink()
    partial = imported(root)
    assert "video 001-001: 11 images for 12 frames" in remarks(partial)
    assert partial.files.frame.tolist() == [0, 1, 2, *range(4, 12)]
    assert partial.files.name.tolist()[3] == "001-001_4.jpg", "a missing image moves no other"


def test_boxes_are_cut_at_the_edge_of_the_image(tmp_path: Path) -> None:
    root = real_colon(tmp_path, {"001-001": 1})
    objects = [("001-001_1", (-5.0, 10.0, 1300.0, 1080.0))]
    write(root / "001-001_annotations" / "001-001_2.xml", real_colon_xml("001-001", 2, *objects))
    corpus = imported(root)
    assert boxes_of(corpus)[0][2] == [0, 10, 1240, 1080]
    assert "video 001-001: 1 box cut at the edge of the image" in remarks(corpus)


def test_two_polyps_in_a_frame(tmp_path: Path) -> None:
    root = real_colon(tmp_path, {"001-001": 2})
    objects = [("001-001_2", (1.0, 2.0, 30.0, 40.0)), ("001-001_1", (100.5, 2.0, 130.0, 40.25))]
    write(root / "001-001_annotations" / "001-001_0.xml", real_colon_xml("001-001", 0, *objects))
    found = [box for box in boxes_of(imported(root)) if box[1] == 0]
    assert found == [
        ("001-001", 0, [1, 2, 30, 40], "001-001_2"),
        ("001-001", 0, [100.5, 2, 130, 40.25], "001-001_1"),
    ]


def test_an_annotated_polyp_need_not_be_in_the_table(tmp_path: Path) -> None:
    root = real_colon(tmp_path, {"001-001": 2})
    write(root / "lesion_info.csv", LESION_INFO + '"001-001_1","001-001",3,"sigma","adenoma","AD"\n')
    corpus = imported(root)
    assert [(p.id, p.size_mm) for p in corpus.polyps] == [("001-001_1", 3.0), ("001-001_2", None)]


def test_without_tables_all_that_files_tell_is_imported(tmp_path: Path) -> None:
    root = real_colon(tmp_path, {"001-001": 2, "001-010": 0})
    (root / "video_info.csv").unlink()
    (root / "lesion_info.csv").unlink()
    corpus = imported(root)
    assert [(v.fps, v.frame_count, v.split) for v in corpus.videos] == [(None, 12, "train"), (None, 12, "")]
    assert len(corpus.polyps) == 2
    assert any("video_info.csv is not there" in remark for remark in remarks(corpus))
    assert [video.id for video in imported(root, split="train").videos] == ["001-001"]
    with pytest.raises(FileError, match=r"nothing of .* can be imported: study: 0 videos"):
        imported(root, split="study")


def test_split_and_how_a_partial_download_differs(tmp_path: Path) -> None:
    root = real_colon(tmp_path, {"001-001": 2, "001-002": 0, "001-009": 1, "002-003": 1})
    shutil.rmtree(root / "002-003_annotations")
    train = imported(root, split="train")
    assert [video.id for video in train.videos] == ["001-001"]
    assert remarks(train)[-1] == (
        "train: 1 videos with 2 polyps, published are 27 with 85; missing with lesions: 002-003"
    )
    study = imported(root, split="study")
    assert [video.id for video in study.videos] == ["001-009"]
    with pytest.raises(DataError, match="split must be one of train, study, all, found 'test'"):
        imported(root, split="test")


def test_the_published_tables_give_the_published_split() -> None:
    meta = DATA / "real-colon-meta"
    if not meta.is_dir():
        pytest.skip(f"the tables of REAL-Colon are not at {meta}")
    polyps, videos = (
        _read_lesions(meta / "lesion_info.csv", Problems()),
        _read_videos(meta / "video_info.csv", Problems()),
    )
    assert len(videos) == 60
    assert len(polyps) == 132
    counts: dict[str, dict[str, int]] = {"train": {}, "study": {}}
    for polyp in polyps:
        assert polyp.video
        part = counts[split_of(polyp.video)]
        part[polyp.video] = part.get(polyp.video, 0) + 1
    assert (len(counts["train"]), sum(counts["train"].values())) == (27, 85)
    study = (
        "001-009 2, 001-010 3, 001-014 1, 002-009 5, 002-010 3, 002-011 5, 002-014 4, 003-009 1, 003-010 1, 003-012 3"
    )
    study += ", 003-013 6, 003-014 1, 003-015 1, 004-009 1, 004-011 1, 004-012 1, 004-013 1, 004-014 4, 004-015 3"
    assert counts["study"] == {item.split()[0]: int(item.split()[1]) for item in study.split(", ")}


BAD = {
    "x2 before x1": (
        real_colon_xml("001-001", 2, ("001-001_1", (9, 5, 3, 60))),
        r"001-001_2\.xml:14: object: the box must have x1 < x2",
    ),
    "no number": (
        real_colon_xml("001-001", 2, ("001-001_1", (9, 5, 30, 60))).replace("<xmin>9", "<xmin>nine"),
        r"001-001_2\.xml:14: object/bndbox: four numbers are expected, found xmin 'nine'",
    ),
    "polyp of another video": (
        real_colon_xml("001-001", 2, ("001-002_1", (9, 5, 30, 60))),
        "unique_id must begin with 001-001_, found '001-002_1'",
    ),
    "no identity": (
        real_colon_xml("001-001", 2, ("", (9, 5, 30, 60))),
        "unique_id must begin with 001-001_, found None",
    ),
    "two boxes in one object": (
        real_colon_xml("001-001", 2, ("001-001_1", (9, 5, 30, 60))).replace("</object>", "<bndbox/></object>"),
        "one bndbox is expected, found 2",
    ),
    "no size": (real_colon_xml("001-001", 2).replace("width>", "w>"), "annotation/size: width and height are missing"),
    "size of nothing": (real_colon_xml("001-001", 2, size=(0, 9)), "annotation/size: width and height must be pixels"),
    "another size": (
        real_colon_xml("001-001", 2, size=(640, 480)),
        "the frame must be 1240 x 1080 as others, found 640 x 480",
    ),
    "another root": ("<coco></coco>", "the root element must be annotation, found coco"),
    "cut short": (
        real_colon_xml("001-001", 2)[:90],
        r"001-001_2\.xml:\d: not well-formed XML: unclosed token|no element found",
    ),
    "empty": ("", "not well-formed XML: no element found"),
    "too deep": ("<a>" * 1000, "elements nested more than 64 deep"),
    "entity bomb": (
        '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
        + real_colon_xml("001-001", 2, ("&b;", (1, 2, 30, 40))),
        "a document type declaration is not allowed",
    ),
    "external entity": (
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
        + real_colon_xml("001-001", 2, ("&x;", (1, 2, 30, 40))),
        "a document type declaration is not allowed",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_stops_the_import_or_is_left_out(kind: str, tmp_path: Path) -> None:
    text, message = BAD[kind]
    root = real_colon(tmp_path / "data", {"001-001": 2})
    write(root / "001-001_annotations" / "001-001_2.xml", text)
    with pytest.raises(FileError, match=message) as caught:
        imported(root)
    assert caught.value.mend == ("skip_bad",)
    assert "\n" not in str(caught.value)
    rest = imported(root, skip_bad=True)
    assert rest.provenance.parameters["left_out_count"] == 1
    assert "001-001_2.xml" in rest.provenance.parameters["left_out"][0]
    assert [frame for _, frame, _, _ in boxes_of(rest)] == [3, 4, 5]


def test_bad_names_and_repeated_frames(tmp_path: Path) -> None:
    root = real_colon(tmp_path, {"001-001": 1})
    folder = root / "001-001_annotations"
    stranger = write(folder / "002-001_3.xml", "")
    with pytest.raises(FileError, match=r"002-001_3\.xml: the name must be 001-001_<number>\.xml"):
        imported(root)
    stranger.unlink()
    write(folder / "001-001_3.0.xml", real_colon_xml("001-001", 3))
    with pytest.raises(FileError, match="frame 3 has another annotation file already"):
        imported(root)


@pytest.mark.parametrize(
    ("table", "text", "message"),
    [
        ("video_info.csv", "a,b\n1,2\n", r"video_info\.csv:1: the header lacks unique_video_name, fps, num_frames"),
        (
            "video_info.csv",
            VIDEO_INFO + '"001-001",6,"m","O",fast,12,1,8\n',
            r"video_info\.csv:2: fps and num_frames must be",
        ),
        (
            "lesion_info.csv",
            LESION_INFO + '"001-001_1","001-001",big,"s","a","AD"\n',
            r"lesion_info\.csv:2: size \[mm\] must be",
        ),
        (
            "lesion_info.csv",
            LESION_INFO + '"x","001-001",1,"s","a","AD"\n' * 2,
            r"lesion_info\.csv:3: a lesion must have",
        ),
        ("video_info.csv", "\xff", "video_info.csv"),
    ],
)
def test_bad_tables(table: str, text: str, message: str, tmp_path: Path) -> None:
    root = real_colon(tmp_path, {"001-001": 1})
    (root / table).write_text(text, encoding="latin-1")
    with pytest.raises(FileError, match=message):
        imported(root)


def test_a_frame_of_another_size_brings_no_box(tmp_path: Path) -> None:
    root = real_colon(tmp_path, {"001-001": 2})
    odd = real_colon_xml("001-001", 2, ("001-001_1", (10, 10, 150, 150)), size=(640, 480))
    write(root / "001-001_annotations" / "001-001_2.xml", odd)
    rest = imported(root, skip_bad=True)
    assert [frame for _, frame, _, _ in boxes_of(rest)] == [3, 4, 5]


def test_what_is_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="has no folder or archive such as 001-001_annotations"):
        imported(tmp_path)
    with pytest.raises(DataError, match="real-colon has no use for fps; its own options are: split"):
        imported(tmp_path, fps=25)
    with pytest.raises(FileError, match="does not exist"):
        imported(tmp_path / "nowhere")


def test_recognised_files_equal_parsed_ones(tmp_path: Path) -> None:
    """The quick way and the parser agree on files that differ in spacing, numbers and objects."""
    rng = np.random.default_rng(3)
    folder = tmp_path / "001-001_annotations"
    for frame in range(120):
        corners = rng.integers(0, 900, (rng.integers(0, 4), 2)) / rng.choice([1, 2, 4])
        objects = [(f"001-001_{rng.integers(1, 9)}", (x, y, x + 99.5, y + 150)) for x, y in corners.tolist()]
        text = real_colon_xml("001-001", frame, *objects)
        text = text.replace("\n", "\r\n") if frame % 11 == 0 else text.replace("\n", "") if frame % 13 == 0 else text
        write(folder / f"001-001_{frame}.xml", text)
    quick = _read_video("001-001", folder, None, None, (), Problems())

    class OnlyParser(FrameReader):
        def _recognised(self, name: str, number: int, data: bytes) -> bool:
            return False

    slow = OnlyParser("001-001", folder, Problems())
    slow.read_folder()
    assert len(quick.boxes) > 100
    rows = slow.rows.to_corpus(quick.videos[0])
    assert quick.boxes == rows.boxes
    assert quick.polyps == rows.polyps


def test_options_say_what_was_given() -> None:
    assert Options(split="train", source=Path("x"), first_frame=0).given() == {
        "split": "train",
        "source": "x",
        "first_frame": 0,
    }


@pytest.mark.parametrize(
    ("video", "split"), [("001-008", "train"), ("001-009", "study"), ("00\x0001", ""), ("001-0²8", ""), ("", "")]
)
def test_the_split_of_a_video_goes_by_its_number(video: str, split: str) -> None:
    assert split_of(video) == split
