"""What is claimed about a count, and what is not."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polypcount as pc
from polypcount.clustering import OperatingPoint, Scope
from polypcount.corpus import Boxes, Video
from polypcount.counting import CountReport, CountSettings, operating_point
from polypcount.counting.known_pairs import KnownPairs
from polypcount.counting.part import part_of
from polypcount.counting.scope import why_no_interval
from polypcount.encoder import load_encoder
from polypcount.errors import DataError
from tests.counting.recordings import (
    FPS,
    FRAMES,
    HEIGHT,
    WIDTH,
    boxes,
    corpus,
    encoder_for_any_recording,
    frame_at,
    recording,
    write_images,
    write_in,
)


def silent(source: Any, boxes: Any = None, **settings: Any) -> CountReport:
    """Count without pictures, with an interval however short the recording is."""
    return pc.count(
        source, boxes, encoder=encoder_for_any_recording(), settings=CountSettings(pictures=False, **settings)
    )


def test_a_short_recording_has_no_interval_and_says_so() -> None:
    report = pc.count(recording(), boxes(tracks=True), settings=CountSettings(pictures=False))
    assert report.count == 3
    assert report.interval is None
    assert "20 s to 40 minutes with 1 to 90 tracklets" in report.no_interval
    assert report.no_interval.endswith("This one lasts 8.8 s.")
    counter = pc.Counter(settings=CountSettings(fps=FPS, pictures=False))
    for frame in range(40):
        counter.update(frame, frame_at(20), [[20, 20, 68, 68]], track=[1])
    assert "lasts 1.6 s" in counter.finish().no_interval


POINT = operating_point(load_encoder()).model_copy(update={"scope": Scope(tracklets=(1, 58), seconds=(300.0, 720.0))})


@pytest.mark.parametrize(
    ("seconds", "tracklets", "short_share", "differences"),
    [
        (300.0, 1, 0.0, []),
        (720.4, 58, 0.33, []),
        (299.0, 5, 0.0, ["lasts 4.98 minutes"]),
        (1800.0, 5, 0.0, ["lasts 30 minutes"]),
        (400.0, 59, 0.0, ["has 59 tracklets"]),
        (None, 5, 0.0, ["no known frame rate"]),
        (400.0, 5, 0.4, ["has 40% of its boxes in tracklets that are too short"]),
        (30.0, 90, 0.5, ["lasts 30 s", "has 90 tracklets", "has 50%"]),
    ],
)
def test_what_differs_from_the_recordings_of_the_interval(
    seconds: float | None, tracklets: int, short_share: float, differences: list[str]
) -> None:
    told = why_no_interval(POINT, seconds, tracklets, short_share)
    assert bool(told) == bool(differences)
    assert all(difference in told for difference in differences)


def test_a_point_that_does_not_say_what_it_was_made_on_claims_nothing() -> None:
    unknown = POINT.model_copy(update={"scope": None})
    assert "do not say which recordings" in why_no_interval(unknown, 400.0, 5, 0.0)
    anything: OperatingPoint = POINT.model_copy(update={"scope": Scope(tracklets=(3, 3), seconds=None)})
    assert why_no_interval(anything, None, 3, 0.0) == ""
    assert "recordings with 3 tracklets" in why_no_interval(anything, None, 4, 0.0)


def test_without_a_frame_rate_there_is_no_interval(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "images", range(60))
    own = boxes(tracks=True, only=slice(0, 1))
    assert "no known frame rate" in silent(folder, own).no_interval
    assert silent(folder, own, fps=25).interval is not None


def test_much_that_is_left_out_is_said_and_takes_the_interval() -> None:
    report = silent(recording(), boxes(tracks=True, only=slice(3, 5)), min_frames=30)
    assert report.interval is not None
    assert any("1 of 2 tracklets, with 20% of the boxes" in remark for remark in report.remarks)
    table = boxes(tracks=True)
    cut = table.take(np.flatnonzero((table.track == 0) | (table.frame % 20 < 12)))
    much = silent(recording(), cut, min_frames=30)
    assert much.remarks[0].startswith("Much was left out: ")
    assert much.interval is None
    assert "too short to be counted" in much.no_interval


def test_scores_that_begin_no_track_are_told_not_counted_as_nothing() -> None:
    table = boxes()
    low = Boxes(table.video, table.frame, table.xyxy, np.linspace(0.02, 0.4, len(table)))
    report = silent(recording(), low)
    assert (report.count, report.interval) == (0, None)
    assert "None of the 170 boxes has the score of 0.5" in report.no_interval
    assert "0.02 to 0.4, half of them below 0.21" in report.no_interval
    none_long = silent(recording(), boxes(tracks=True), min_frames=100)
    assert (none_long.count, none_long.interval) == (0, None)
    assert "100 boxes are needed, and the longest of 5 has 40" in none_long.no_interval


def joined_by_force(**settings: Any) -> CountReport:
    return silent(recording(), corpus(polyps=True), max_polyps=2, **settings)


def test_polyps_that_the_boxes_name_are_told_beside_the_count() -> None:
    report = joined_by_force()
    assert (report.count, report.named_polyps) == (2, 3)
    assert any("The boxes name 3 polyps; by appearance and time, 2 were counted." in each for each in report.remarks)
    assert silent(recording(), boxes(tracks=True)).named_polyps == 0
    short = silent(recording(), corpus(polyps=True), min_frames=30)
    assert any("1 of them have only tracklets that are too short" in remark for remark in short.remarks)


def test_polyps_that_the_boxes_name_can_be_kept() -> None:
    # With thresholds that join nothing, or everything that may be joined, the named polyps stay as they are.
    for varied in (0.001, 0.999):
        point = operating_point(encoder_for_any_recording())
        parameters = {**point.parameters, point.varied: varied}
        with pytest.MonkeyPatch.context() as patch:
            strict = point.model_copy(update={"parameters": parameters, "values": (varied,)})
            module = import_module("polypcount.counting.count")
            patch.setattr(module, "operating_point", lambda *_, strict=strict: strict)
            report = silent(recording(), corpus(polyps=True), keep_polyps=True)
        assert [one.polyp for one in report.tracklets] == [1, 2, 1, 2, 3]
        assert report.interval is None
        assert "those that came with the boxes" in report.no_interval
        assert report.provenance.parameters["keep_polyps"] is True
        assert not report.pairs
    with pytest.raises(DataError, match="name no polyps"):
        silent(recording(), boxes(tracks=True), keep_polyps=True)


def test_unknown_tracklets_are_grouped_around_the_kept_polyps() -> None:
    table = boxes(polyps=True, tracks=True)
    polyp = np.where(table.track == 2, -1, table.polyp)
    report = silent(
        recording(), Boxes(table.video, table.frame, table.xyxy, polyp=polyp, track=table.track), keep_polyps=True
    )
    assert [one.polyp for one in report.tracklets] == [1, 2, 1, 2, 3]


def test_known_polyps_as_pairs() -> None:
    pairs = KnownPairs.of_polyps([2, -1, 0, 2, 0, 2], np.array([[0, 1], [2, 3]]))
    assert pairs.one_polyp.tolist() == [[2, 4], [0, 3], [3, 5]]
    assert pairs.two_polyps.tolist() == [[2, 0]]
    with pytest.raises(DataError, match="tracklets 1 and 4 have boxes in one frame"):
        KnownPairs.of_polyps([2, -1, 0, 2], np.array([[0, 3]]))
    nothing = KnownPairs.of_polyps([-1, -1], np.empty((0, 2), np.int64))
    assert len(nothing.one_polyp) == len(nothing.two_polyps) == 0


@pytest.mark.parametrize(
    ("start", "stop", "part"),
    [
        (None, None, (0, 1000)),
        (10, 20, (10, 20)),
        ("10", "20", (10, 20)),
        ("0:04", "8s", (100, 200)),
        ("0:00:04.02", "9:00", (101, 1000)),
        (None, "1:00:00", (0, 1000)),
        ("0.04s", None, (1, 1000)),
    ],
)
def test_the_part_of_a_recording(start: Any, stop: Any, part: tuple[int, int]) -> None:
    assert part_of(Video("a", 1000, 25.0), start, stop) == range(*part)


def test_the_part_of_a_recording_with_a_variable_frame_rate() -> None:
    times = np.array([0, 0.1, 0.2, 1.2, 2.2, 3.0])
    assert part_of(Video("a", 5, 2.0), "0.2s", "0:02", times) == range(2, 4)
    assert part_of(Video("a", 5, 2.0), "0:01", None, times) == range(3, 5)


@pytest.mark.parametrize(
    ("start", "stop", "fps", "told"),
    [
        ("1.5", None, 25.0, "start must be a frame number, or a time"),
        ("-3", None, 25.0, "start must be"),
        (None, "soon", 25.0, "stop must be"),
        (20, 20, 25.0, "holds no frame"),
        (1000, None, 25.0, "holds no frame; the recording has 1000"),
        ("0:10", None, None, "frame rate is not known"),
    ],
)
def test_a_part_that_is_none(start: Any, stop: Any, fps: float | None, told: str) -> None:
    with pytest.raises(DataError, match=told):
        part_of(Video("a", 1000, fps), start, stop)


def test_a_part_is_counted_as_if_it_were_the_recording() -> None:
    table = boxes(tracks=True)
    report = silent(recording(), table, start=60, stop="5.2s")
    assert [(one.start_frame, one.stop_frame, one.polyp) for one in report.tracklets] == [(60, 100, 1), (80, 120, 2)]
    assert report.part == range(60, 130)
    assert report.provenance.parameters["min_frames"] == 3  # a thirtieth of 70 frames


def test_boxes_of_another_size_are_scaled(tmp_path: Path) -> None:
    table = boxes(tracks=True)
    for format in ("csv", "coco"):
        half = Boxes(table.video, table.frame, table.xyxy / 2, track=table.track)
        place = write_in(format, tmp_path / format, half, size=(WIDTH // 2, HEIGHT // 2))
        report = silent(recording(), place, size=(WIDTH // 2, HEIGHT // 2))
        assert report.boxes is not None
        assert np.allclose(report.boxes.xyxy, table.xyxy)
        with pytest.raises(DataError, match="size"):
            silent(recording(), place, size=(FRAMES, FRAMES)) if format == "coco" else silent(
                recording(), table, size=(1, 1)
            )


def test_the_numbers_of_a_box_can_be_told(tmp_path: Path) -> None:
    rows = "".join(f"{frame},20,20,48,48\n" for frame in range(40))
    (tmp_path / "boxes.csv").write_text("frame,x1,y1,x2,y2\n" + rows)
    report = silent(recording(), tmp_path / "boxes.csv", box="xywh")
    assert report.boxes is not None
    assert report.boxes.xyxy[0].tolist() == [20, 20, 68, 68]


def test_a_frame_rate_that_is_not_used_is_said() -> None:
    report = silent(recording(), boxes(tracks=True), fps=30)
    assert report.video.fps == FPS
    assert any("frame rate of its own, 25, so the given one, 30, was not used" in remark for remark in report.remarks)


def test_a_report_shows_itself_in_one_line() -> None:
    report = silent(recording(), boxes(tracks=True))
    assert repr(report).startswith(f"<CountReport of {report.video.id}: count 3, interval ")
    assert len(repr(report)) < 120


def test_boxes_in_no_track_are_only_mentioned_where_there_are_some() -> None:
    report = silent(recording(), boxes(tracks=False))
    assert "The boxes came without tracks and were tracked." in report.remarks
