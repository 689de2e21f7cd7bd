"""The other datasets, quirk by quirk, and the real ones where they are there."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from polypcount.corpus import check
from polypcount.errors import FileError
from polypcount.importers.datasets.one_polyp import tracks_by_overlap
from polypcount.importers.reading import BoxRows, Problems
from polypcount.tracking import link_tracklets

from ..conftest import DATA
from .miniatures import image, ldpolypvideo, polypsset, sun, sun_name, write
from .reading import frames_and_boxes, remarks
from .reading import read as imported

# LDPolypVideo


def test_ldpolypvideo(tmp_path: Path) -> None:
    corpus = imported("ldpolypvideo", ldpolypvideo(tmp_path))
    assert [(v.id, v.frame_count, v.width, v.height, v.split) for v in corpus.videos] == [
        ("ldpolypvideo-1", 3, 560, 480, "trainvalid"),
        ("ldpolypvideo-101", 3, 560, 480, "test"),
    ]
    assert [polyp.id for polyp in corpus.polyps] == ["ldpolypvideo-1", "ldpolypvideo-101"]
    assert frames_and_boxes(corpus, "ldpolypvideo-1") == [(k, [11.0 + k, 20, 60, 70]) for k in range(3)]
    assert len(frames_and_boxes(corpus, "ldpolypvideo-101")) == 4, "blank lines are passed over"
    assert corpus.videos[0].source == str(tmp_path / "TrainValid" / "Images" / "1")
    assert len(corpus.files) == 0


def test_ldpolypvideo_several_boxes_are_reported_and_can_be_separated(tmp_path: Path) -> None:
    corpus = imported("ldpolypvideo", ldpolypvideo(tmp_path))
    assert remarks(corpus) == [
        "video ldpolypvideo-101: several boxes in 2 frames, though it counts as one polyp (split_tracks separates them)"
    ]
    split = imported("ldpolypvideo", tmp_path, split_tracks=True)
    mine = split.boxes.of_video(1)
    assert split.boxes.polyp[mine].tolist() == [-1] * 4
    assert split.boxes.track[mine].tolist() == [0, 1, 0, 1]
    assert [polyp.id for polyp in split.polyps] == ["ldpolypvideo-1"]
    assert len(link_tracklets(split.boxes)) == 3


def test_ldpolypvideo_images_with_a_prefix_and_missing_numbers(tmp_path: Path) -> None:
    root = ldpolypvideo(tmp_path)
    folder = root / "TrainValid" / "Images" / "1"
    for path in list(folder.iterdir()):
        path.rename(folder / f"vid_1_{path.stem}.jpg")
    assert len(frames_and_boxes(imported("ldpolypvideo", root), "ldpolypvideo-1")) == 3
    (folder / "vid_1_2.jpg").unlink()
    (root / "TrainValid" / "Annotations" / "1" / "2.txt").unlink()
    gap = imported("ldpolypvideo", root)
    assert [frame for frame, _ in frames_and_boxes(gap, "ldpolypvideo-1")] == [0, 2], "a missing frame is not closed up"
    assert gap.files.name.tolist() == ["vid_1_1.jpg", "vid_1_3.jpg"]


def test_ldpolypvideo_boxes_out_of_the_image_and_without_images(tmp_path: Path) -> None:
    root = ldpolypvideo(tmp_path)
    write(root / "TrainValid" / "Annotations" / "1" / "1.txt", "1\n-4 20 600 490\n")
    corpus = imported("ldpolypvideo", root)
    assert frames_and_boxes(corpus, "ldpolypvideo-1")[0] == (0, [0, 20, 560, 480])
    shutil.rmtree(root / "TrainValid" / "Images")
    bare = imported("ldpolypvideo", root)
    assert bare.videos[0].source is None
    assert frames_and_boxes(bare, "ldpolypvideo-1") == frames_and_boxes(corpus, "ldpolypvideo-1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"1\.txt:1: the number of boxes is expected"),
        ("1 2 3 4\n", r"1\.txt:1: the number of boxes is expected"),
        ("2\n1 2 30 40\n", r"1\.txt:1: the number of boxes is expected .* 1 follow"),
        ("1\n1 2 30\n", r"1\.txt:2: four numbers are expected, found '1 2 30'"),
        ("1\n\n1 2 x 40\n", r"1\.txt:3: four numbers are expected"),
        ("1\n30 2 1 40\n", r"1\.txt:2: the box must have x1 < x2"),
    ],
)
def test_ldpolypvideo_bad_text(text: str, message: str, tmp_path: Path) -> None:
    root = ldpolypvideo(tmp_path)
    write(root / "TrainValid" / "Annotations" / "1" / "1.txt", text)
    with pytest.raises(FileError, match=message):
        imported("ldpolypvideo", root)
    assert len(imported("ldpolypvideo", root, skip_bad=True).boxes) == 6


def test_ldpolypvideo_folders_of_one_name(tmp_path: Path) -> None:
    root = ldpolypvideo(tmp_path)
    shutil.copytree(root / "TrainValid", root / "Test", dirs_exist_ok=True)
    with pytest.raises(FileError, match="video folders must differ"):
        imported("ldpolypvideo", root)
    with pytest.raises(FileError, match="has neither TrainValid/Annotations nor Test/Annotations"):
        imported("ldpolypvideo", root / "Test")


# SUN


def test_sun_orders_clips_by_number_and_never_joins_them(tmp_path: Path) -> None:
    corpus = imported("sun", sun(tmp_path))
    positive = next(video for video in corpus.videos if video.id == "sun-case1")
    assert (positive.frame_count, positive.fps, positive.width, positive.height) == (6, 30.0, 100, 80)
    # Clip a2 before a10, though a10 comes first in the text and in the alphabet; frame 3 stays free between them. The
    # last line is no polyp.
    assert frames_and_boxes(corpus, "sun-case1") == [
        (0, [2, 5, 42, 50]),
        (1, [3, 5, 43, 50]),
        (4, [0, 5, 40, 50]),
        (5, [1, 5, 41, 50]),
    ]
    assert len(link_tracklets(corpus.boxes)) == 2
    names = corpus.files.name[corpus.files.of_video(corpus.videos.index(positive))].tolist()
    assert names == [sun_name(2, 1), sun_name(2, 2), sun_name(2, 3), sun_name(10, 1), sun_name(10, 2)]


def test_sun_negatives_of_the_same_name_are_kept_apart(tmp_path: Path) -> None:
    corpus = imported("sun", sun(tmp_path))
    assert sorted(video.id for video in corpus.videos) == ["sun-case1", "sun-negative-case1"]
    assert [polyp.id for polyp in corpus.polyps] == ["sun-case1"]
    assert frames_and_boxes(corpus, "sun-negative-case1") == []


def test_sun_numbers_before_the_dash_come_first(tmp_path: Path) -> None:
    root = sun(tmp_path)
    image(root / "positive" / "case1" / sun_name(1, 1, part=2), (100, 80))
    corpus = imported("sun", root)
    assert corpus.files.name[
        corpus.files.video == 1 if corpus.videos[1].id == "sun-case1" else corpus.files.video == 0
    ][-1] == (sun_name(1, 1, part=2))


def test_sun_is_joined_by_name_and_works_without_images(tmp_path: Path) -> None:
    root = sun(tmp_path)
    expected = frames_and_boxes(imported("sun", root), "sun-case1")
    text = root / "positive" / "annotation_txt" / "case1.txt"
    text.write_text("\n\n".join(reversed(text.read_text().splitlines())) + "\n")
    assert frames_and_boxes(imported("sun", root), "sun-case1") == expected
    shutil.rmtree(root / "positive" / "case1")
    bare = imported("sun", root)
    assert frames_and_boxes(bare, "sun-case1") == expected
    assert bare.videos[[v.id for v in bare.videos].index("sun-case1")].source is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nothing\n", r"case1\.txt:6: '<file name> xmin,ymin,xmax,ymax,class' is expected"),
        (f"{sun_name(2, 1)} 1,2,30,40,0\n", r"case1\.txt:6: each image must be named once"),
        (f"{sun_name(7, 7)} 1,2,30,40,0\n", r"case1\.txt:6: there is no image"),
        ("odd.jpg 1,2,30,40,0\n", "the file name must end like"),
    ],
)
def test_sun_bad_lines(line: str, message: str, tmp_path: Path) -> None:
    root = sun(tmp_path)
    with (root / "positive" / "annotation_txt" / "case1.txt").open("a") as file:
        file.write(line)
    with pytest.raises(FileError, match=message):
        imported("sun", root)
    assert len(imported("sun", root, skip_bad=True).boxes) == 4


def test_sun_texts_apart_from_their_images(tmp_path: Path) -> None:
    root = sun(tmp_path)
    expected = imported("sun", root)
    (root / "part2").mkdir()
    (root / "positive" / "annotation_txt").rename(root / "part2" / "annotation_txt")
    apart = imported("sun", root)
    assert frames_and_boxes(apart, "sun-case1") == frames_and_boxes(expected, "sun-case1")
    assert sorted(video.id for video in apart.videos) == ["sun-case1", "sun-negative-case1"]
    assert all(video.source for video in apart.videos)
    shutil.rmtree(root / "positive")
    bare = imported("sun", root)
    assert {video.id: bool(video.source) for video in bare.videos} == {"sun-case1": False, "sun-negative-case1": True}


def test_missing_annotations_are_told(tmp_path: Path) -> None:
    root = ldpolypvideo(tmp_path / "ld")
    (root / "TrainValid" / "Annotations" / "1" / "2.txt").unlink()
    assert "video 1: 2 annotation files for 3 images" in remarks(imported("ldpolypvideo", root))
    root = sun(tmp_path / "sun")
    image(root / "positive" / "case1" / sun_name(2, 9), (100, 80))
    assert "video sun-case1: 5 lines for 6 images" in remarks(imported("sun", root))
    root = polypsset(tmp_path / "ps")
    (root / "val2019" / "Annotation" / "10" / "2.xml").unlink()
    assert "video polypsset-val-10: 2 annotation files for 3 images" in remarks(imported("polypsset", root))


def test_a_link_to_itself(tmp_path: Path) -> None:
    root = sun(tmp_path)
    (root / "x").symlink_to(root / "x")
    with pytest.raises(FileError, match="cannot be followed"):
        imported("sun", root)


def test_a_folder_that_leads_back_to_itself(tmp_path: Path) -> None:
    root = sun(tmp_path)
    (root / "negative" / "again").symlink_to(root)
    with pytest.raises(FileError, match="is a link back to a folder that it lies in"):
        imported("sun", root)


# PolypsSet


def test_polypsset(tmp_path: Path) -> None:
    corpus = imported("polypsset", polypsset(tmp_path))
    assert [(v.id, v.frame_count, v.split, v.width) for v in corpus.videos] == [
        ("polypsset-val-10", 3, "val", 100),
        ("polypsset-test-10", 3, "test", 100),
    ]
    assert [polyp.id for polyp in corpus.polyps] == ["polypsset-val-10", "polypsset-test-10"]
    assert frames_and_boxes(corpus, "polypsset-val-10") == [(0, [10, 20, 50, 60]), (2, [12, 20, 52, 60])]
    assert remarks(corpus) == ["train2019 is left out: its frames belong to no sequence (train2019 imports them)"]
    assert corpus.videos[0].source == str(tmp_path / "val2019" / "Image" / "10")


def test_polypsset_below_its_own_folder(tmp_path: Path) -> None:
    polypsset(tmp_path / "PolypsSet")
    assert len(imported("polypsset", tmp_path).videos) == 2


def test_polypsset_train2019_only_when_asked_for(tmp_path: Path) -> None:
    root = polypsset(tmp_path)
    with pytest.raises(FileError, match="train2019 are shuffled and belong to no sequence"):
        imported("polypsset", root / "train2019")
    whole = imported("polypsset", root, train2019=True)
    assert [video.id for video in whole.videos][-1] == "polypsset-train-1"
    assert whole.files.name.tolist() == ["8.jpg", "7.jpg"], "001 comes before 002"
    assert "1 groups guessed" in remarks(whole)[-1]
    assert len(imported("polypsset", root / "train2019", train2019=True).videos) == 1


def test_polypsset_frame_without_an_image(tmp_path: Path) -> None:
    root = polypsset(tmp_path)
    (root / "val2019" / "Image" / "10" / "2.jpg").unlink()
    corpus = imported("polypsset", root)
    assert corpus.files.name.tolist() == ["1.jpg", "10.jpg"]
    assert corpus.files.frame.tolist() == [0, 2]


def test_tracks_follow_the_best_overlap() -> None:
    rows = BoxRows(Problems())
    for frame, x in ((0, 0), (0, 6), (1, 5), (1, 1), (2, 7)):
        rows.add("x", frame, (x, 0, x + 10, 10))
    assert tracks_by_overlap(rows) == [0, 1, 1, 0, 1]


def test_real_clip() -> None:
    clip = DATA / "ldpolypvideo-clip"
    if not clip.is_dir():
        pytest.skip(f"the clip is not at {DATA}")
    corpus = imported("frames-json", clip / "boxes.json", source=clip / "clip.mp4", fps=25.0)
    (video,) = corpus.videos
    assert (video.frame_count, video.width, video.height, video.fps) == (53, 560, 480, 25.0)
    frames, counts = np.unique(corpus.boxes.frame, return_counts=True)
    assert frames[counts == 2].tolist() == list(range(8)), "two boxes in the first eight frames"
    assert corpus.boxes.xyxy[0].tolist() == [19, 306, 50, 355]
    assert not check(corpus).items


def test_hidden_files_are_passed_over_and_names_may_have_spaces(tmp_path: Path) -> None:
    root = ldpolypvideo(tmp_path / "LD Polyp Video")
    write(root / "TrainValid" / "Annotations" / "1" / "._1.txt", "junk")
    write(root / "TrainValid" / "Images" / "1" / "._1.jpg", "junk")
    os.mkdir(root / "videos without polyps")
    assert len(imported("ldpolypvideo", root).boxes) == 7


def test_names_without_numbers_are_in_their_order(tmp_path: Path) -> None:
    root = ldpolypvideo(tmp_path)
    for kind, suffix in (("Images", "jpg"), ("Annotations", "txt")):
        for number, name in enumerate("abc", 1):
            folder = root / "TrainValid" / kind / "1"
            (folder / f"{number}.{suffix}").rename(folder / f"{name}.{suffix}")
    corpus = imported("ldpolypvideo", root)
    assert [frame for frame, _ in frames_and_boxes(corpus, "ldpolypvideo-1")] == [0, 1, 2]
    assert "video 1: file names have no numbers, so their order is taken" in remarks(corpus)
    write(root / "TrainValid" / "Annotations" / "1" / "d.txt", "0\n")
    with pytest.raises(FileError, match=r"d\.txt: no image has this name"):
        imported("ldpolypvideo", root)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sun", "no case folders"),
        ("polypsset", "neither val2019"),
        ("cvc-clinicdb", "Original"),
        ("stills", "no images"),
    ],
)
def test_an_empty_folder_is_no_dataset(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=message):
        imported(name, tmp_path)


def test_two_texts_for_a_case_and_folders_nested_too_deep(tmp_path: Path) -> None:
    root = sun(tmp_path / "sun")
    write(root / "again" / "annotation_txt" / "case1.txt", "")
    with pytest.raises(FileError, match="are for the same case; keep one"):
        imported("sun", root)
    (tmp_path / "deep" / "/".join("d" * 40)).mkdir(parents=True)
    with pytest.raises(FileError, match="nested more than"):
        imported("sun", tmp_path / "deep")
