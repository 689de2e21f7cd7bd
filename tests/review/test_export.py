"""What an export writes: a count, boxes and a corpus that our own readers take, with what was decided."""

import json
from pathlib import Path

import numpy as np
import pytest

import polypcount as pc
from polypcount.corpus import Corpus, Video
from polypcount.errors import FileError
from polypcount.importers import read_boxes
from polypcount.report import read_count, write_report
from polypcount.review import Review
from polypcount.review import decisions as d
from polypcount.review.export import FORMATS, export
from polypcount.review.log import Stale
from tests.review.disks import fill, make_read_only, small_disk
from tests.review.results import COUNTED, NAME, SET_ASIDE, copy_of_result, recording, report

HOSTILE = '<b>flat & pale</b>, "far" left'


@pytest.fixture
def review(result: Path) -> Review:
    """t5 is merged into polyp 1, polyp 3 goes, a0 is a polyp of its own, and one is added by hand before all others."""
    opened = Review(result)
    for decision in (
        d.Merge(kind="merge", polyp=4, other=1),
        d.NotAPolyp(kind="not a polyp", items=["t4"]),
        d.Move(kind="move", items=["a0"], polyp=None),
        d.Add(kind="add", frame=2, box=(30, 40, 60, 70)),
        d.Describe(
            kind="describe", polyp=4, name=HOSTILE, site="caecum", size_mm=3.5, histology="adenoma", note="two\nlines"
        ),
    ):
        opened.decide(decision, opened.moment.version, "Ada")
    return opened


def test_the_corrected_count(review: Review) -> None:
    before = read_count(review.folder)
    folder, files = export(review, review.moment, FORMATS, "Dr. Ada <Lovelace>")
    assert folder == review.folder / "corrected"
    assert {"report/count.json", "report/report.html", "report/polyps.csv", "corpus/corpus.json"} < set(files)
    count = read_count(folder / "report")
    assert (count["count"], review.moment.count) == (4, 4)
    spans = [
        [(row["start_frame"], row["stop_frame"]) for row in count["tracklets"] if row["polyp"] == n]
        for n in range(1, 5)
    ]
    assert (
        spans
        == [
            [(2, 3)],  # by hand, and seen first
            [(5, 45), (80, 120), (260, 300)],
            [(60, 100), (140, 180)],
            [SET_ASIDE[:2]],
        ]
    )
    assert (count["interval"]["low"], count["interval"]["high"]) == review.moment.interval
    assert count["remarks"][0].startswith("Corrected in a review by Ada, Dr. Ada <Lovelace> on 20")
    assert count["remarks"][0].endswith(", with 5 decisions.")
    assert count["remarks"][1] == f"Polyp 2: {HOSTILE}, caecum, 3.5 mm, adenoma, two\nlines."
    parameters = count["provenance"]["parameters"]
    assert (parameters["reviewed_by"], parameters["count_before"], parameters["method"]) == (
        "Ada, Dr. Ada <Lovelace>",
        4,
        "review",
    )
    page = (folder / "report" / "report.html").read_text()
    assert "Dr. Ada &lt;Lovelace&gt;" in page
    assert "<b>flat" not in page
    assert str(recording()) not in page + (folder / "report" / "count.json").read_text()
    assert read_count(review.folder) == before


def test_the_corrected_corpus_can_be_trained_on(review: Review) -> None:
    folder, _ = export(review, review.moment)
    corpus = Corpus.load(folder / "corpus")
    pc.check(corpus).raise_if_bad()
    (video,) = corpus.videos
    assert (video.id, video.source, video.frame_count) == (NAME, str(recording()), 360)
    assert [polyp.id for polyp in corpus.polyps] == [f"{NAME}-{number}" for number in (1, 2, 3, 4)]
    assert (corpus.polyps[1].site, corpus.polyps[1].size_mm, corpus.polyps[1].histology) == ("caecum", 3.5, "adenoma")
    sizes = np.bincount(corpus.boxes.polyp).tolist()
    assert sizes == [1, 120, 80, SET_ASIDE[1] - SET_ASIDE[0]]
    tracklets = pc.link_tracklets(corpus.boxes, max_gap=1, min_iou=0.1)
    starts = {(int(start), int(polyp)) for start, polyp in zip(tracklets.start_frame, tracklets.polyp, strict=True)}
    assert {(COUNTED[0][0], 1), (COUNTED[2][0], 1), (COUNTED[5][0], 1), (COUNTED[1][0], 2)} < starts
    np.testing.assert_allclose(corpus.boxes.xyxy[0], (30, 40, 60, 70))


def test_boxes_for_other_programs(review: Review) -> None:
    folder, _ = export(review, review.moment, FORMATS)
    for format in FORMATS:
        (place,) = (folder / "report" / f"boxes-{format}").iterdir()
        back = read_boxes(place, format, width=160, height=128, ids="polyp" if format == "mot" else None)
        polyps = back.boxes.polyp[back.boxes.polyp >= 0]
        assert sorted(np.bincount(polyps)[np.bincount(polyps) > 0].tolist()) == [1, 12, 80, 120], format


def test_a_second_export_replaces_the_first(review: Review) -> None:
    export(review, review.moment, ("coco",))
    review.decide(d.Undo(kind="undo"), review.moment.version)
    review.decide(d.Undo(kind="undo"), review.moment.version)
    folder, files = export(review, review.moment)
    assert read_count(folder / "report")["count"] == 3
    assert not any("coco" in name for name in files)
    assert Review(review.folder).moment.version == 7
    empty = Review(review.folder)
    items = [item for item, polyp in empty.moment.state.polyp_of.items() if polyp]
    moment = empty.decide(d.NotAPolyp(kind="not a polyp", items=items), 7)
    export(empty, moment, FORMATS)
    assert read_count(folder / "report")["count"] == 0
    assert len(Corpus.load(folder / "corpus").boxes) == 0


def test_where_the_recording_lies_now(review: Review, tmp_path: Path) -> None:
    (tmp_path / "moved.mp4").symlink_to(recording())
    folder, _ = export(review, review.moment, recording=tmp_path / "moved.mp4")
    assert Corpus.load(folder / "corpus").videos[0].source == str(tmp_path / "moved.mp4")
    corpus = Corpus((Video("other", 360, 25.0, source="/nowhere"), Video(NAME, 360, 25.0, source=str(recording()))))
    corpus.save(tmp_path / "several")
    values = {"source": str(tmp_path / "several"), "video": NAME}
    (review.folder / "review" / "recording.json").write_text(json.dumps(values))
    folder, _ = export(review, review.moment)
    assert Corpus.load(folder / "corpus").videos[0].source == str(recording())
    (review.folder / "review" / "recording.json").unlink()  # as with a pseudonym
    folder, _ = export(review, review.moment, recording=tmp_path / "moved.mp4")
    assert Corpus.load(folder / "corpus").videos[0].source is None


def test_a_count_that_was_replaced_is_not_exported(review: Review) -> None:
    write_report(report(), review.folder, force=True)
    with pytest.raises(Stale, match="was counted again meanwhile"):
        export(review, review.moment)
    assert not (review.folder / "corrected").exists()


def test_a_disk_that_is_full_or_read_only(tmp_path: Path) -> None:
    """One plain line, and the earlier export stays."""
    with small_disk(tmp_path / "disk") as disk:
        review = Review(copy_of_result(disk / "result"))
        folder, files = export(review, review.moment)
        for spoil in (fill, make_read_only):
            spoil(disk)
            with pytest.raises(FileError) as problem:
                export(review, review.moment, FORMATS)
            assert "\n" not in str(problem.value)
            assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()) == files
            assert read_count(folder / "report")["count"] == 4
            assert not list(disk.rglob("*.unfinished"))
