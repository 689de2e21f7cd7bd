"""CVAT XML: tracks with keyframes, outside, identities, images, and what is wrong with bad files."""

from pathlib import Path

import pytest
from PIL import Image

from polypcount.importers.boxes import cvat
from tests.importers.format_cases import read, refused, rows, told

META = (
    "<meta><task><name>case 1</name><size>20</size>"
    "<original_size><width>64</width><height>48</height></original_size></task></meta>"
)


def box(frame: int | str, left: float | str = 0, outside: int = 0, inner: str = "") -> str:
    right = float(left) + 10 if isinstance(left, (int, float)) else 10
    sides = f'xtl="{left}" ytl="0" xbr="{right}" ybr="10"'
    return f'<box frame="{frame}" outside="{outside}" occluded="0" keyframe="1" {sides}>{inner}</box>'


def attribute(name: str, value: object) -> str:
    return f'<attribute name="{name}">{value}</attribute>'


def track(*boxes: str, number: object = 3) -> str:
    return f'<track id="{number}" label="polyp">{"".join(boxes)}</track>'


def save(folder: Path, *parts: str, name: str = "file.xml") -> Path:
    path = folder / name
    path.write_text(f"<?xml version='1.0'?>\n<annotations><version>1.1</version>{''.join(parts)}</annotations>")
    return path


def spans(path: Path) -> list[tuple[int, float]]:
    return sorted((row[1], row[2][0]) for row in rows(read("cvat", path)))


def test_task_and_track(tmp_path: Path) -> None:
    corpus = read("cvat", save(tmp_path, META, track(box(2))))
    (video,) = corpus.videos
    assert (video.id, video.frame_count, video.width, video.height) == ("case 1", 20, 64, 48)
    assert rows(corpus) == [("case 1", 2, (0.0, 0.0, 10.0, 10.0), 1.0, "case 1_3", -1)]


def test_a_task_that_begins_later_in_the_video(tmp_path: Path) -> None:
    meta = META.replace("<size>20</size>", "<size>20</size><start_frame>100</start_frame><stop_frame>119</stop_frame>")
    corpus = read("cvat", save(tmp_path, meta, track(box(100), box(101))))
    assert corpus.videos[0].frame_count == 120
    assert [row[1] for row in rows(corpus)] == [100, 101]
    refused("cvat", save(tmp_path, meta, track(box(120))), "frames are numbered 0 to 119, found 120")


def test_a_checkbox_is_no_identity_and_several_labels_are_told(tmp_path: Path) -> None:
    tracks = [track(box(1, inner=attribute("polyp", "true")), number=n) for n in (3, 4)]
    tool = track(box(1, 30), number=5).replace('label="polyp"', 'label="forceps"')
    corpus = read("cvat", save(tmp_path, META, *tracks, tool))
    assert [polyp.id for polyp in corpus.polyps] == ["case 1_3", "case 1_4", "case 1_5"]
    assert "boxes of 2 classes are all taken as polyps: 'forceps', 'polyp'" in told(corpus, "remarks")[0]


def test_keyframes_are_interpolated(tmp_path: Path) -> None:
    assert spans(save(tmp_path, track(box(4, 8), box(0, 0)))) == [(0, 0), (1, 2), (2, 4), (3, 6), (4, 8)]


def test_outside_ends_a_track_until_the_next_box(tmp_path: Path) -> None:
    path = save(tmp_path, META, track(box(0, 0), box(2, 4, outside=1), box(6, 5), box(7, 6), box(8, 6, outside=1)))
    assert spans(path) == [(0, 0), (1, 2), (6, 5), (7, 6)]


def test_nothing_follows_the_last_box(tmp_path: Path) -> None:
    assert spans(save(tmp_path, META, track(box(5)))) == [(5, 0)]


def test_attributes(tmp_path: Path) -> None:
    first = box(0, inner=attribute("identity", "p &amp; q") + attribute("score", 0.5) + attribute("track", 8))
    corpus = read(
        "cvat", save(tmp_path, META, track(first, box(2)), track(box(0, 20, inner=attribute("Identity", ""))))
    )
    assert [row[1:2] + row[3:] for row in rows(corpus)] == [
        (0, 0.5, "p & q", 8),
        (0, 1.0, None, -1),
        (1, 0.5, "p & q", 8),
        (2, 1.0, "p & q", -1),
    ]


def test_ids_as_tracks(tmp_path: Path) -> None:
    corpus = read("cvat", save(tmp_path, track(box(5))), ids="track", first_frame=5, video="v", fps=25)
    assert rows(corpus) == [("v", 0, (0.0, 0.0, 10.0, 10.0), 1.0, None, 3)]


def test_images(tmp_path: Path) -> None:
    Image.new("L", (8, 8)).save(tmp_path / "b.png")
    image = '<image id="{}" name="{}" width="64" height="48">{}</image>'
    inner = box("", 1, inner=attribute("object_id", 5)) + box("", 2, inner=attribute("polyp", "x")) + box("", 3)
    shapes = '<polygon points="1,1"/><tag label="x"/>'
    path = save(tmp_path, image.format(4, "a/b.png", inner + shapes), image.format(6, "a/c.png", ""))
    corpus = read("cvat", path)
    assert sorted((row[1], row[2][0], row[4]) for row in rows(corpus)) == [
        (4, 1.0, "file_5"),
        (4, 2.0, "x"),
        (4, 3.0, None),
    ]
    assert (corpus.videos[0].frame_count, corpus.videos[0].width) == (7, 64)
    assert "1 shapes are left out" in told(corpus, "remarks")[0]
    listed = read("cvat", path, source=tmp_path)
    assert listed.files.name.tolist() == ["b.png", "c.png"]


def test_folder_of_files(tmp_path: Path) -> None:
    for name in ("v10.xml", "v2.xml"):
        save(tmp_path, track(box(0)), name=name)
    assert [video.id for video in read("cvat", tmp_path).videos] == ["v2", "v10"]


def test_interpolation_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path, track(box(0), box(2_000_000_000)), track(box(0), number=4))
    refused("cvat", path, ":2: track: interpolation may give up to 2,000,000 boxes", "1,999,999,999")
    assert len(read("cvat", path, skip_bad=True).boxes) == 1
    monkeypatch.setattr(cvat, "_MOST_INTERPOLATED", 5)
    refused("cvat", save(tmp_path, track(box(0), box(4)), track(box(0), box(4))), "this track adds 3")


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (track(box(0), number="x"), "track: id must be a whole number"),
        (track(box("x")), "box: the number of a frame is expected, found 'x'"),
        (track(box(-1)), "box: frames are numbered from 0, found -1"),
        (track(box(20)), "box: frames are numbered 0 to 19, found 20"),
        (track(box(0, "x")), "box: xtl, ytl, xbr and ybr must be numbers"),
        (track(box(0, "10")), "box: the box must have x1 < x2"),
        (track(box(0, inner=attribute("score", "x"))), "the attribute score must be a number"),
        (track(box(0, inner=attribute("identity", "x" * 2000))), "an identity that can be an id"),
        ('<image id="x"/>', "image: the number of a frame is expected"),
        ('<image id="1"/><image id="1"/>', "image: ids must differ"),
    ],
)
def test_bad_part(tmp_path: Path, part: str, message: str) -> None:
    path = save(tmp_path, META, part)
    refused("cvat", path, f"{path}:2: ", message)
    corpus = read("cvat", path, skip_bad=True)
    assert len(corpus.boxes) == 0
    assert len(told(corpus, "left_out")) == 1


def test_two_boxes_of_a_track_in_a_frame(tmp_path: Path) -> None:
    refused("cvat", save(tmp_path, track(box(0), box(0))), "the track has a box in frame 0 already")


def test_bad_meta(tmp_path: Path) -> None:
    task = "<meta><task><name>x</name><size>{}</size></task></meta>"
    refused("cvat", save(tmp_path, task.format("x")), "meta/task/size: a whole number is expected, found 'x'")
    refused("cvat", save(tmp_path, task.format(10**12)), "meta: frame_count must be")
    several = "<meta><project><tasks><task/><task/></tasks></project></meta>"
    refused("cvat", save(tmp_path, several), "export each by itself", skip_bad=False)


def test_not_cvat(tmp_path: Path) -> None:
    path = tmp_path / "file.xml"
    refused("cvat", tmp_path, "holds no XML files")
    for text, part in (
        ("", "not well-formed"),
        ("<annotation/>", ":1: the root element must be annotations, found annotation"),
        ("<annotations><track>", "not well-formed"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><annotations>&b;</annotations>', "document type declaration is not allowed"),
    ):
        path.write_text(text)
        refused("cvat", path, part)
        refused("cvat", path, "nothing of", part, skip_bad=True)
