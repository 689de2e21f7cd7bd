"""Recordings of which some frames cannot be read."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

import polypcount as pc
from polypcount.corpus import Boxes
from polypcount.counting import find_mask, open_recording
from polypcount.detection import load_detector
from polypcount.errors import DataError, FileError
from polypcount.report import write_annotated
from polypcount.video import open_source
from polypcount.video.frames import Image
from tests.detection.onnx_detectors import finder, with_square

FRAMES, BAD = 90, (0, 41, 89)


class Damaged:
    """A recording whose frames 0, 41 and 89 cannot be read, told as every source tells it: after the others."""

    frame_count, width, height, fps = FRAMES, 128, 96, 25.0

    def __init__(self, bad: tuple[int, ...] = BAD) -> None:
        self.bad = bad

    def frames(self, wanted: ArrayLike) -> Iterator[tuple[int, Image]]:
        for index in np.asarray(wanted).tolist():
            if index not in self.bad:
                yield index, with_square(128, 96, (30, 20, 80, 60) if 10 <= index < 60 else (0, 0, 0, 0))
        if set(self.bad) & set(np.asarray(wanted).tolist()):
            raise FileError("some frames cannot be read")


@pytest.fixture
def damaged(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A path that opens as such a recording."""

    def path(bad: tuple[int, ...] = BAD) -> Path:
        monkeypatch.setattr("polypcount.counting.recording.open_source", lambda _: Damaged(bad))
        return Path("v.mp4")

    return path


def test_a_detector_count_goes_on_and_says_so(damaged: Callable[..., Path], tmp_path: Path) -> None:
    detector = load_detector(finder(tmp_path / "detector.onnx", "yolo-classes", (128, 96)))
    report = pc.count(damaged(), detector=detector)
    # It looks at every second frame, of which the last with the square is 58, and at frame 1, since 0 cannot be read.
    assert [(one.start_frame, one.stop_frame, one.box_count) for one in report.tracklets] == [(10, 59, 48)]
    assert report.detector is not None
    assert report.detector.looks == 45
    assert any("3 of 90 frames could not be read" in remark for remark in report.remarks)
    assert report.provenance.parameters["min_frames"] == 3
    assert report.provenance.parameters["detector"]["file"] == "detector.onnx"
    assert report.seconds["detect"] > 0
    with pytest.raises(FileError):
        pc.count(damaged(tuple(range(FRAMES))), detector=detector)
    with pytest.raises(DataError, match="not both"):
        pc.count(damaged(), Boxes.empty(), detector=detector)


def test_the_view_is_found_on_what_can_be_read(damaged: Callable[..., Path]) -> None:
    mask = find_mask(open_recording(damaged()), pc.CountSettings())
    assert mask is not None
    assert mask.view is not None
    assert mask.view[40, 55]  # inside the square, the only bright part
    assert not mask.view[0, 0]
    assert find_mask(open_recording(damaged(tuple(range(FRAMES)))), pc.CountSettings()) is None


def test_an_annotated_video_repeats_the_frame_before(damaged: Callable[..., Path], tmp_path: Path) -> None:
    report = pc.count(damaged(), Boxes.empty())
    write_annotated(report, Damaged(), tmp_path / "a.mp4")
    shown = dict(open_source(tmp_path / "a.mp4").frames(np.arange(FRAMES)))
    assert len(shown) == FRAMES
    assert shown[0].max() < 30
    assert np.abs(shown[41].astype(int) - shown[40]).max() < 30
    assert shown[41].max() > 200
    with pytest.raises(FileError):
        write_annotated(report, Damaged(tuple(range(FRAMES))), tmp_path / "b.mp4")
