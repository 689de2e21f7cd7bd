"""The timeline: where bars lie, which times are labelled, and how many polyps one drawing holds."""

import pytest

from polypcount.corpus import Video
from polypcount.report.timeline import timelines
from tests.report.reports import FPS, report_of, tracklet

SHORT = tracklet(0, 1, length=1, pictures=False)


def test_bars_lie_where_tracklets_are() -> None:
    report = report_of([1, 2, 1], pictures=False)
    (drawing,) = timelines(report)
    assert list(drawing.lanes) == [1, 2]
    for polyp in report.polyps:
        for bar, row in zip(drawing.lanes[polyp.number], polyp.tracklets, strict=True):
            one = report.tracklets[row]
            assert bar.left == pytest.approx(100 * one.start_frame / report.video.frame_count, abs=1e-3)
            assert bar.left + bar.width == pytest.approx(100 * one.stop_frame / report.video.frame_count, abs=2e-3)
    assert drawing.lanes[2][0].title == "Polyp 2, tracklet 2: 0:09.6 to 0:11.1"


@pytest.mark.parametrize("seconds", [0.04, 0.5, 1, 5.9, 6, 59, 600, 1500, 5000, 90_000, 10_000_000])
@pytest.mark.parametrize("fps", [FPS, None])
def test_at_most_six_round_times_within_the_recording(seconds: float, fps: float | None) -> None:
    frames = round(seconds * FPS)
    video = Video("a", frames, fps)
    (drawing,) = timelines(report_of([1], pictures=False, fps=fps, video=video, tracklets=(SHORT,)))
    places = [left for left, _ in drawing.ticks]
    assert 1 <= len(places) <= 6
    assert places[0] == 0
    assert places == sorted(set(places))
    assert places[-1] <= 100
    if frames >= 6 * FPS:
        assert len(places) >= 3


def test_times_are_told_as_minutes_or_as_frames() -> None:
    video = Video("a", 37_500, 25)
    (drawing,) = timelines(report_of([1], pictures=False, video=video))
    assert [label for _, label in drawing.ticks] == ["0:00", "5:00", "10:00", "15:00", "20:00", "25:00"]
    assert [left for left, _ in drawing.ticks] == [0, 20, 40, 60, 80, 100]
    (drawing,) = timelines(report_of([1], pictures=False, video=Video("a", 37_500)))
    assert [label for _, label in drawing.ticks] == ["0", "10,000", "20,000", "30,000"]
    assert drawing.unit == "frames"


@pytest.mark.parametrize(("polyps", "drawings"), [(0, 0), (1, 1), (24, 1), (25, 2), (60, 3)])
def test_a_drawing_holds_24_polyps(polyps: int, drawings: int) -> None:
    found = timelines(report_of(range(1, polyps + 1), pictures=False))
    assert len(found) == drawings
    assert [number for drawing in found for number in drawing.lanes] == list(range(1, polyps + 1))
    if drawings == 2:
        assert [one.title for one in found] == ["When polyps 1 to 24 were seen", "When polyp 25 was seen"]
