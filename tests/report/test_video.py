"""The annotated video, read back frame by frame."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus import Boxes, Video
from polypcount.errors import DataError
from polypcount.report import read_count, write_annotated, write_report
from polypcount.report.colours import NOT_COUNTED, mark_of, rgb
from polypcount.report.video import draw_boxes
from polypcount.video import FrameMask, open_source
from tests.report.reports import report_of

Image = NDArray[np.uint8]
GROUND = 60


class Grey:
    """A recording of dark grey frames, which notes what was asked of it."""

    def __init__(self, frame_count: int, width: int = 160, height: int = 120, fps: float | None = 25.0) -> None:
        self.frame_count, self.width, self.height, self.fps = frame_count, width, height, fps
        self.given = 0

    def frames(self, wanted: ArrayLike) -> Iterator[tuple[int, Image]]:
        for index in np.asarray(wanted).tolist():
            self.given += 1
            frame = np.full((self.height, self.width, 3), GROUND, np.uint8)
            frame.flags.writeable = False
            yield index, frame


def near(pixel: NDArray[np.uint8], colour: str | int, within: int = 45) -> bool:
    expected = np.array(rgb(colour) if isinstance(colour, str) else (colour,) * 3)
    return bool(np.abs(pixel.astype(int) - expected).max() <= within)


def read(path: Path) -> list[Image]:
    source = open_source(path)
    return [image for _, image in source.frames(np.arange(source.frame_count))]


def test_each_box_has_its_colour_in_its_frames(tmp_path: Path) -> None:
    report = report_of([1, 2], pictures=False)
    assert report.boxes is not None
    assert report.tracklet is not None
    boxes = Boxes(report.boxes.video, report.boxes.frame, np.tile([60, 50, 110, 90], (80, 1)))
    tracklet = report.tracklet.copy()
    tracklet[20:40] = -1
    report = report_of([1, 2], pictures=False, boxes=boxes, tracklet=tracklet)
    told: list[tuple[int, int]] = []
    path = write_annotated(
        report, Grey(700), tmp_path / "a.mp4", progress=lambda done, total: told.append((done, total))
    )
    assert path == tmp_path / "a.mp4"
    frames = read(path)
    assert len(frames) == report.video.frame_count == 580
    assert told == [(done, 580) for done in range(1, 581)]
    for frame, colour in ((110, mark_of(1).colour), (130, NOT_COUNTED), (250, mark_of(2).colour)):
        assert near(frames[frame][70, 57], colour, 60), frame
        assert near(frames[frame][70, 85], GROUND)
    for frame in (0, 99, 140, 239, 280):
        assert near(frames[frame][70, 58], GROUND)


def test_boxes_in_no_track_are_drawn_unless_a_detector_looked_at_some_frames_only(tmp_path: Path) -> None:
    table = Boxes([0, 0], [3, 5], [[60, 50, 110, 90]] * 2, track=[-1, 7])
    for detected, drawn in ((None, {3, 5}), (np.ones(2, bool), {5})):
        report = report_of([], boxes=table, tracklet=np.full(2, -1, np.int32), detected=detected)
        frames = read(write_annotated(report, Grey(300), tmp_path / "a.mp4"))
        assert {frame for frame in range(10) if near(frames[frame][70, 57], NOT_COUNTED, 60)} == drawn


def test_frames_of_odd_size_are_padded(tmp_path: Path) -> None:
    report = report_of([1], pictures=False, video=Video("a", 150, 25))
    frames = read(write_annotated(report, Grey(150, 161, 119), tmp_path / "a.mp4"))
    assert frames[0].shape == (120, 162, 3)
    assert near(frames[0][119, 161], GROUND)


def test_what_is_masked_is_black_and_boxes_are_drawn_over_it(tmp_path: Path) -> None:
    report = report_of([1], pictures=False, video=Video("a", 150, 25))
    frames = read(write_annotated(report, Grey(150), tmp_path / "a.mp4", mask=FrameMask(((0, 0, 80, 120),))))
    assert near(frames[0][60, 20], 0, 20)
    assert near(frames[0][60, 140], GROUND)
    assert not near(frames[120][24, 14], 0, 20)


def test_an_unknown_frame_rate_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    report = report_of([], pictures=False, video=Video("a", 5))
    write_annotated(report, Grey(5, fps=None), tmp_path / "a.mp4")
    assert open_source(tmp_path / "a.mp4").fps == 25
    assert "the frame rate of a is not known" in caplog.text
    write_annotated(report, Grey(5, fps=50), tmp_path / "a.mp4")
    assert open_source(tmp_path / "a.mp4").fps == 50


def test_frames_come_one_at_a_time(tmp_path: Path) -> None:
    report = report_of([1], pictures=False, video=Video("a", 150, 25))
    source, ahead = Grey(150), []
    write_annotated(report, source, tmp_path / "a.mp4", progress=lambda done, total: ahead.append(source.given - done))
    assert max(ahead) <= 1


def test_a_recording_that_is_too_short_or_a_count_without_boxes(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="440 frames, but this recording has 439"):
        write_annotated(report_of([1], pictures=False), Grey(439), tmp_path / "a.mp4")
    with pytest.raises(DataError, match="the boxes of this count were not kept"):
        write_annotated(report_of([1], boxes=None, tracklet=None), Grey(440), tmp_path / "a.mp4")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "box",
    [
        (40, 40, 80, 80),
        (0, 0, 160, 120),
        (0, 0, 20, 20),
        (140, 100, 160, 120),
        (-50, -50, 300, 300),
        (50, 50, 50, 50),
        (-3e30, 10, 3e30, 60),
    ],
)
@pytest.mark.parametrize("number", [0, 4, 60])
def test_a_number_is_readable_wherever_the_box_is(box: tuple[float, ...], number: int) -> None:
    ground = np.full((240, 320, 3), GROUND, np.uint8)
    drawn = draw_boxes(ground, 2 * np.array([box], np.float32), np.array([number], np.int32))
    assert drawn.shape == ground.shape
    assert (ground == GROUND).all()
    if number == 0:
        assert not (drawn == rgb(mark_of(1).colour)).all(axis=2).any()
        return
    look = mark_of(number)
    filled = (drawn == rgb(look.colour)).all(axis=2)
    rows, columns = np.nonzero(filled)
    label = max(
        ((row, column) for row, column in zip(rows, columns, strict=True) if row + 8 < 240 and column + 6 < 320),
        key=lambda place: filled[place[0] : place[0] + 8, place[1] : place[1] + 6].sum(),
    )
    around = drawn[max(0, label[0] - 12) : label[0] + 20, max(0, label[1] - 12) : label[1] + 20].astype(int)
    assert (np.abs(around - rgb(look.ink)).max(axis=2) < 100).sum() > 8


def test_the_inside_of_a_box_is_left_as_it_is() -> None:
    ground = np.full((120, 160, 3), GROUND, np.uint8)
    drawn = draw_boxes(ground, np.array([(60, 50, 110, 90)], np.float32), np.array([3], np.int32))
    assert (drawn[50:90, 60:110] == GROUND).all()
    assert not (drawn[49, 60:110] == GROUND).all(axis=1).any()


def test_a_report_lists_the_video_in_its_folder(tmp_path: Path) -> None:
    report = report_of([1, 2], pictures=False)
    folder = write_report(report, tmp_path / "report")
    before = read_count(folder)
    write_annotated(report, Grey(700), folder / "annotated.mp4")
    after = read_count(folder)
    assert after == {**before, "files": ["annotated.mp4", *before["files"]]}
    assert all((folder / name).exists() for name in after["files"])
    write_report(report, folder, force=True)
    assert read_count(folder) == before
    assert not (folder / "annotated.mp4").exists()
