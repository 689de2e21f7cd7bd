"""`check`: each kind of defect is named, and nothing else."""

from pathlib import Path

import pytest

from polypcount.corpus import Boxes, Corpus, Findings, FrameFiles, Polyp, Video, check
from polypcount.errors import CheckFailed, DataError
from polypcount.simulate import simulate_timelines

SIZE = {"width": 100, "height": 100, "fps": 25.0}
IN = [10.0, 10.0, 20.0, 20.0]
Rows = list[tuple[str, str, str | None, int | None, int]]


def told(findings: Findings) -> Rows:
    return [(f.severity, f.kind, f.video, f.frame, f.count) for f in findings]


def corpus_of(*rows: tuple[int, list[float], int], polyps: int = 2) -> Corpus:
    """One video of 100 frames; rows are (frame, box, polyp)."""
    frame, xyxy, polyp = zip(*rows, strict=True)
    names = tuple(Polyp(f"p{k}", "a") for k in range(polyps))
    return Corpus((Video("a", 100, **SIZE),), Boxes([0] * len(rows), frame, xyxy, polyp=polyp), names)  # type: ignore[arg-type]


def test_a_clean_corpus_has_no_findings() -> None:
    findings = check(simulate_timelines(4, seed=1, like="study"))
    assert told(findings) == []
    findings.raise_if_bad()


def test_boxes_outside_the_image() -> None:
    corpus = corpus_of(
        (3, IN, 0), (4, [100, 0, 110, 9], 0), (5, [-9, 0, 0, 9], 1), (6, [90, 90, 101, 99], 0), (7, [0, 0, 100, 100], 0)
    )
    assert told(check(corpus)) == [
        ("error", "box outside image", "a", 4, 2),
        ("warning", "box outside image", "a", 6, 1),
    ]
    unknown_size = Corpus((Video("a", 100),), corpus.boxes, corpus.polyps)
    assert [f.frame for f in check(unknown_size)] == [5], "only a box left of 0 is outside an image of any size"


def test_duplicate_boxes_and_two_boxes_of_a_polyp() -> None:
    other = [30.0, 30.0, 40.0, 40.0]
    assert told(check(corpus_of((3, IN, 0), (3, other, 1), (4, IN, 0), (5, IN, 1)))) == []
    assert told(check(corpus_of((3, IN, 0), (3, IN, 1)))) == [("warning", "duplicate boxes", "a", 3, 1)]
    assert told(check(corpus_of((3, other, 1), (8, IN, 0), (8, other, 0), (9, IN, 0), (9, other, 0)))) == [
        ("warning", "polyp twice in a frame", "a", 8, 2)
    ]
    assert told(check(corpus_of((3, IN, -1), (3, other, -1), polyps=0))) == [], "boxes of nobody are not one polyp's"


def test_empty_videos_and_polyps_without_boxes() -> None:
    corpus = Corpus((Video("none", 0), Video("bare", 9)), polyps=(Polyp("p"),))
    assert told(check(corpus)) == [
        ("error", "empty video", "none", None, 1),
        ("note", "empty video", "bare", None, 1),
        ("note", "polyp without boxes", None, None, 1),
    ]


@pytest.mark.parametrize(
    ("fps", "plausible"), [(None, True), (5, True), (29.97, True), (120, True), (1, False), (1000, False)]
)
def test_implausible_fps(fps: float | None, plausible: bool) -> None:
    corpus = Corpus((Video("a", 9, fps=fps),), Boxes([0], [0], [IN]))
    assert told(check(corpus)) == ([] if plausible else [("warning", "implausible fps", "a", None, 1)])


def test_a_polyp_in_two_videos() -> None:
    videos = (Video("a", 9), Video("b", 9))
    seen_twice = Corpus(videos, Boxes([0, 1], [3, 4], [IN, IN], polyp=[0, 0]), (Polyp("p"),))
    assert told(check(seen_twice)) == [("error", "polyp in two videos", "a", 3, 2)]
    named_elsewhere = Corpus(videos, Boxes([0, 1], [3, 4], [IN, IN], polyp=[0, -1]), (Polyp("p", "b"),))
    assert told(check(named_elsewhere)) == [("error", "polyp in two videos", "a", 3, 2)]


def images(folder: Path, *names: str) -> str:
    folder.mkdir()
    for name in names:
        (folder / name).write_bytes(b"")
    return str(folder)


def test_missing_sources(tmp_path: Path) -> None:
    gone = Corpus((Video("a", 9, source=str(tmp_path / "gone.mp4")),), Boxes([0], [0], [IN]))
    assert told(check(gone)) == [("error", "missing source", "a", None, 1)]
    folder = images(tmp_path / "f", "v_0.jpg", "v_1.jpg", "notes.txt")
    short = Corpus((Video("a", 3, source=folder),), Boxes([0], [0], [IN]))
    assert told(check(short)) == [("error", "missing source", "a", None, 1)]
    whole = Corpus((Video("a", 2, source=folder),), Boxes([0], [0], [IN]))
    assert told(check(whole)) == []


def test_gaps_in_frame_numbers(tmp_path: Path) -> None:
    folder = images(tmp_path / "f", "v_7.jpg", "v_8.0.jpg", "v_12.jpg")
    numbered = Corpus((Video("a", 3, source=folder),), Boxes([0], [0], [IN]))
    assert told(check(numbered)) == [("warning", "gap in frame numbers", "a", 9, 3)]
    listed = Corpus(
        (Video("a", 6, source=folder),),
        Boxes([0, 0], [0, 4], [IN, IN]),
        files=FrameFiles([0] * 4, [0, 1, 2, 5], ["v_7.jpg", "v_8.0.jpg", "v_12.jpg", "v_13.jpg"]),
    )
    assert told(check(listed)) == [
        ("error", "missing source", "a", 4, 1),
        ("error", "missing source", "a", 5, 1),
        ("warning", "gap in frame numbers", "a", 3, 2),
    ]


def test_splits_within_a_corpus(tmp_path: Path) -> None:
    file = tmp_path / "v.mp4"
    file.write_bytes(b"")
    videos = (Video("a", 9, source=str(file), split="train"), Video("b", 9, source=str(file), split="val"))
    boxes = Boxes([0, 1], [0, 0], [IN, IN])
    assert told(check(Corpus(videos, boxes))) == [("error", "video in two splits", "a", None, 2)]
    unsplit = (Video("a", 9, source=str(file)), Video("b", 9, source=str(file), split="val"))
    assert told(check(Corpus(unsplit, boxes))) == []
    polyp = Corpus(
        (Video("a", 9, split="train"), Video("b", 9, split="val")),
        Boxes([0, 1], [0, 0], [IN, IN], polyp=[0, 0]),
        (Polyp("p"),),
    )
    assert ("error", "polyp in two splits", "a", None, 2) in told(check(polyp))


def test_one_folder_of_stills_shared_by_videos_is_no_shared_video(tmp_path: Path) -> None:
    folder = images(tmp_path / "f", "1.png", "2.png")
    videos = (Video("a", 1, source=folder, split="train"), Video("b", 1, source=folder, split="val"))
    boxes = Boxes([0, 1], [0, 0], [IN, IN])
    assert told(check(Corpus(videos, boxes, files=FrameFiles([0, 1], [0, 0], ["1.png", "2.png"])))) == []
    same = Corpus(videos, boxes, files=FrameFiles([0, 1], [0, 0], ["1.png", "1.png"]))
    assert told(check(same)) == [("error", "video in two splits", "a", None, 2)]


def test_the_same_files_by_other_names(tmp_path: Path) -> None:
    folder = images(tmp_path / "f", "0.png", "1.png")
    (tmp_path / "link").symlink_to(folder)
    boxes = Boxes([0, 1], [0, 0], [IN, IN])

    def kinds(one: Video, two: Video, files: FrameFiles) -> set[str]:
        return {finding.kind for finding in check(Corpus((one, two), boxes, files=files))}

    a, b = Video("a", 2, source=folder, split="train"), Video("b", 2, source=str(tmp_path / "link"), split="val")
    assert "video in two splits" in kinds(a, b, FrameFiles.empty())
    assert "video in two splits" in kinds(a, b, FrameFiles([0], [0], ["0.png"])), "one lists files, the other has all"
    assert "video in two splits" in kinds(a, b, FrameFiles([0, 1], [0, 0], ["0.png", "./0.png"]))
    assert "video in two splits" not in kinds(a, b, FrameFiles([0, 1], [0, 0], ["0.png", "1.png"]))


def test_numbers_of_any_size_in_file_names(tmp_path: Path) -> None:
    folder = images(tmp_path / "f", "1.png", "20240101123456.png", "99999999999999999999999.png")
    corpus = Corpus((Video("a", 3, source=folder),), Boxes([0], [0], [IN]))
    assert told(check(corpus)) == [("warning", "gap in frame numbers", "a", 2, 99999999999999999999999 - 3)]
    listed = Corpus((Video("a", 2**31 - 1),), Boxes([0], [7], [IN]), files=FrameFiles([0], [7], ["x.png"]))
    assert told(check(listed)) == [("warning", "gap in frame numbers", "a", 0, 2**31 - 2)]


def test_corpora_as_splits() -> None:
    train, val = simulate_timelines(3, seed=1, like="study"), simulate_timelines(2, seed=2, like="study")
    assert told(check(train, val)) == []
    findings = check(train, train.select(videos=[train.videos[1].id]), names=["train", "val"])
    shared = train.videos[1].id
    polyps = [polyp.id for polyp in train.polyps if polyp.video == shared]
    assert told(findings) == [("error", "polyp in two splits", shared, None, 2)] * len(polyps) + [
        ("error", "video in two splits", shared, None, 2)
    ]
    assert f"{shared} in train, {shared} in val" in findings.items[-1].message
    twice = check(train, train, names=["same", "same"])
    assert sum(finding.kind == "video in two splits" for finding in twice) == 3
    with pytest.raises(DataError, match="there are 2 corpora, but 1 names"):
        check(train, val, names=["train"])


def test_findings_on_several_corpora_say_which_and_leaks_within_each_are_found() -> None:
    leaky = Corpus(
        (Video("a", 9, split="train"), Video("b", 9, split="val")),
        Boxes([0, 1], [0, 0], [IN, IN], polyp=[0, 0]),
        (Polyp("p"),),
    )
    findings = check(leaky, simulate_timelines(1, seed=1, like="study"), names=["x", "y"])
    assert {(f.kind, f.corpus) for f in findings} == {("polyp in two videos", "x"), ("polyp in two splits", "x")}


def test_simulated_parts_of_one_seed_are_no_leak() -> None:
    parts = [simulate_timelines(3, seed=0, like=part) for part in ("train", "study")]
    assert told(check(*parts)) == []


def test_polyps_of_unknown_datasets_are_the_same_only_in_the_same_video() -> None:
    def corpus(video: str) -> Corpus:
        return Corpus((Video(video, 9),), Boxes([0], [0], [IN], polyp=[0]), (Polyp("1", video),))

    assert told(check(corpus("a"), corpus("b"))) == []
    assert {f.kind for f in check(corpus("a"), corpus("a"))} == {"video in two splits", "polyp in two splits"}


def test_errors_can_be_raised() -> None:
    with pytest.raises(CheckFailed, match="video none: the video has no frames"):
        check(Corpus((Video("none", 0),))).raise_if_bad()
    check(Corpus((Video("bare", 1),))).raise_if_bad()
