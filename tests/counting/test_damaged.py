"""Recordings of which some frames cannot be read."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from polypcount.corpus import Boxes, Video
from polypcount.counting import CountingPoint, Procedure, count_procedure, count_with_detector, load_detector, view_of
from polypcount.encoder import load_encoder
from polypcount.errors import FileError
from polypcount.report import write_annotated
from polypcount.video import open_source
from polypcount.video.frames import Image
from tests.counting.onnx_detectors import finder, with_square

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


def procedure(bad: tuple[int, ...] = BAD) -> Procedure:
    return Procedure(Damaged(bad), Video("v", FRAMES, 25.0, 128, 96), Boxes.empty(), ())


def test_a_detector_count_goes_on_and_says_so(tmp_path: Path) -> None:
    encoder = load_encoder(threads=1)
    detector = load_detector(finder(tmp_path / "detector.onnx", "yolo-classes", (128, 96)))
    report = count_with_detector(procedure(), detector, encoder, CountingPoint.of(encoder))
    assert [(one.start_frame, one.stop_frame) for one in report.tracklets] == [(10, 60)]
    assert "Of 90 frames 3 could not be read." in report.remarks
    assert report.provenance.parameters["min_frames"] == 3
    with pytest.raises(FileError):
        count_with_detector(procedure(tuple(range(FRAMES))), detector, encoder, CountingPoint.of(encoder))


def test_the_view_is_found_on_what_can_be_read() -> None:
    view_of(procedure())  # nothing is raised
    assert view_of(procedure(tuple(range(FRAMES)))) is None


def test_an_annotated_video_repeats_the_frame_before(tmp_path: Path) -> None:
    encoder = load_encoder(threads=1)
    report = count_procedure(procedure(), encoder, CountingPoint.of(encoder))
    write_annotated(report, Damaged(), tmp_path / "a.mp4")
    shown = dict(open_source(tmp_path / "a.mp4").frames(np.arange(FRAMES)))
    assert len(shown) == FRAMES
    assert shown[0].max() < 30
    assert np.abs(shown[41].astype(int) - shown[40]).max() < 30
    assert shown[41].max() > 200
    with pytest.raises(FileError):
        write_annotated(report, Damaged(tuple(range(FRAMES))), tmp_path / "b.mp4")
