"""A recording that was counted once for all tests of a process; each test reviews a copy of the result."""

import functools
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import polypcount as pc
from polypcount.clustering import Band, Scope
from polypcount.corpus import Boxes
from polypcount.counting import CountSettings
from polypcount.counting.operating_points import POINTS_FILE, read_operating_points, write_operating_points
from polypcount.counting.result import CountReport, LookScores, SetAsideTracklet
from polypcount.encoder import Encoder, bundled_folder, load_encoder
from polypcount.report import write_report
from polypcount.video.write import write_video
from tests.counting import recordings
from tests.counting.recordings import FPS, SIDE, place
from tests.report.reports import picture

FRAMES, BORDER, NAME = 360, 12, "case-7"
# Of each tracklet: first frame, frame after the last, polyp, left and top of its box. t1 and t2 are seen together.
COUNTED: tuple[tuple[int, int, int, int, int], ...] = (
    (5, 45, 0, 20, 20),
    (60, 100, 1, 90, 60),
    (80, 120, 0, 15, 30),
    (140, 180, 1, 80, 50),
    (200, 240, 2, 60, 20),
    (260, 300, 0, 40, 40),
)
SHORT, SET_ASIDE = (310, 318, 2, 60, 20), (330, 342, 1, 80, 50)
TRACKLETS = (*COUNTED, SHORT, SET_ASIDE)


@functools.cache
def recording() -> Path:
    """An mp4 file of textured discs on a plain wall, with a black border on the left and on the right."""
    path = Path(tempfile.mkdtemp(prefix="polypcount-test-")) / f"{NAME}.mp4"
    write_video(path, [frame_at(frame) for frame in range(FRAMES)], FPS, quality=12)
    return path


def frame_at(frame: int) -> np.ndarray:
    """RGB uint8[128, 160, 3]. The border has a small bright text, which must not be shown."""
    image = recordings.frame_at(frame, TRACKLETS)
    image[:, :BORDER] = image[:, -BORDER:] = 0
    image[4:7, 1:9] = 220
    return image


def boxes() -> Boxes:
    """All boxes by frame, with the number of the tracklet."""
    rows = [
        (frame, *place(frame, start, x, y), number)
        for number, (start, stop, _, x, y) in enumerate(TRACKLETS)
        for frame in range(start, stop)
    ]
    frame, left, top, number = np.array(sorted(rows), np.int64).T
    sides = np.stack([left, top, left + SIDE, top + SIDE], axis=1).astype(np.float32)
    return Boxes(np.zeros(len(frame), np.int32), frame, sides, track=number)


@functools.cache
def doubtful_encoder() -> Encoder:
    """The bundled encoder with an operating point that takes polyp 0 for two, and doubts all else."""
    folder = Path(tempfile.mkdtemp(prefix="polypcount-test-"))
    for entry in bundled_folder().iterdir():
        if entry.name != POINTS_FILE:
            (folder / entry.name).symlink_to(entry)
    points = read_operating_points(bundled_folder())
    point = points.points[points.default]
    band = Band(tracked=False, tracklets=100, low=0.1, high=0.9, procedures=10)
    scope = Scope(tracklets=(1, 10_000), seconds=(0.0, 1e6))
    parameters = {**point.parameters, "threshold": 0.8}
    point = point.model_copy(update={"scope": scope, "bands": (band,), "parameters": parameters})
    write_operating_points(folder, {point.method: point}, point.method)
    return load_encoder(folder)


@functools.cache
def report() -> CountReport:
    """The count.

    Counted are t0 to t5, as polyps 1, 2, 1, 2, 3, 4; truly t5 is polyp 1 as well, so there are 3. a0 was set aside, s0
    is too short. t1 and t2 are seen together.
    """
    found = pc.count(recording(), boxes(), encoder=doubtful_encoder(), settings=CountSettings(min_frames=20))
    start, stop, _, x, y = SET_ASIDE
    best = (start + stop) // 2
    left, top = place(best, start, x, y)
    aside = SetAsideTracklet(
        start,
        stop,
        stop - start,
        0.25,
        LookScores(0.5, 0.6, 12),
        best,
        (float(left), float(top), float(left + SIDE), float(top + SIDE)),
        tuple(picture(frame, 3, width=40, height=40) for frame in (start, best, stop - 1)),
        picture(best, 3),
    )
    return replace(found, set_aside=(aside,))


@functools.cache
def counted() -> Path:
    """The folder of the count, see `report`; tests take a copy with `copy_of_result`."""
    return write_report(report(), Path(tempfile.mkdtemp(prefix="polypcount-test-")) / "result")


def copy_of_result(folder: Path) -> Path:
    """A copy of the counted folder, at a path that does not exist yet. The recording stays where it is."""
    shutil.copytree(counted(), folder)
    return folder
