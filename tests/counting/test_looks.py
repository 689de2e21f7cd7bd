"""A detector that looks at every k-th frame, and the boxes in between."""

import numpy as np
import pytest

from polypcount.counting.looks import Looks, SettledFrame, look_step
from polypcount.errors import FileError
from polypcount.tracking import TrackRules
from polypcount.video import FrameView
from polypcount.video.frames import Image
from tests.counting.bright import SIDE, detector

FPS, STEP = 25.0, 2


class Broken:
    """The pixels of a damaged image."""

    def image(self) -> Image:
        raise FileError("damaged")

    def scaled(self, width: int, height: int) -> Image:
        raise FileError(f"damaged, {width} x {height}")


def view(bright: bool, left: int = 40) -> FrameView:
    image = np.zeros((128, 160, 3), np.uint8)
    if bright:
        image[40 : 40 + SIDE, left : left + SIDE] = 255
    return FrameView.of(image)


def settled(bright: set[int], frames: int, most_held: int, damaged: tuple[int, ...] = ()) -> list[SettledFrame]:
    """The final frames of a recording with a square in some frames, which moves by a pixel in each."""
    looks, found = Looks(detector(), FPS, TrackRules(), STEP), []
    for frame in range(frames):
        if frame in damaged:
            with pytest.raises(FileError):
                looks.update(frame, FrameView(160, 128, Broken()))
            continue
        found += looks.update(frame, view(frame in bright, 40 + frame))
        assert len(looks._held) <= most_held
    found += looks.finish()
    assert not looks._held
    assert not looks._lonely
    assert looks.figures.frames == frames - len(damaged)
    assert [one.frame for one in found] == [frame for frame in range(frames) if frame not in damaged]
    return found


def boxes_of(found: list[SettledFrame]) -> dict[int, list[int]]:
    """The frames of each track."""
    tracks: dict[int, list[int]] = {}
    for one in found:
        for track in one.track.tolist():
            tracks.setdefault(track, []).append(one.frame)
    return tracks


def test_a_gap_is_bridged_for_as_long_as_a_track_lives() -> None:
    # 12.5 looks a second: a track lives for 2 looks without a box, which is 0.2 seconds, rounded.
    for missed, spans in ((0, [(4, 20)]), (1, [(4, 22)]), (2, [(4, 24)]), (3, [(4, 10), (18, 26)])):
        again = 10 + 2 * (missed + 1)
        found = settled({*range(4, 11), *range(again, again + 9)}, 40, most_held=3 * STEP)
        tracks = boxes_of(found)
        assert list(tracks.values()) == [list(range(first, last + 1)) for first, last in spans]
        for one in found:
            assert one.lonely.sum() == 0
            for box, detected in zip(one.xyxy, one.detected.tolist(), strict=True):
                assert np.abs(box - [40 + one.frame, 40, 88 + one.frame, 88]).max() <= 1.01
                assert detected == (one.look >= 0 and not 10 < one.frame < again)


def test_a_box_that_stays_alone_is_marked() -> None:
    found = settled({10, 30, 32}, 40, most_held=3 * STEP + 1)
    assert [(one.frame, one.lonely.tolist()) for one in found if len(one.track)] == [
        (10, [True]),
        (30, [False]),
        (31, [False]),
        (32, [False]),
    ]
    (last,) = [one for one in settled({38}, 40, most_held=3) if len(one.track)]
    assert last.lonely.tolist() == [True]


def test_where_a_frame_cannot_be_read_the_next_one_is_looked_at() -> None:
    found = settled(set(range(30)), 30, most_held=3 * STEP, damaged=(0, 10, 20))
    looked = [one.frame for one in found if one.look >= 0]
    assert looked == [1, 2, 4, 6, 8, 11, 12, 14, 16, 18, 21, 22, 24, 26, 28]
    assert [one.look for one in found if one.look >= 0] == list(range(15))
    assert list(boxes_of(found)) == [0]


@pytest.mark.parametrize(
    ("fps", "frames", "step"),
    [
        (5.0, None, 1),
        (12.0, 900, 1),
        (25.0, 900, 2),
        (29.97, None, 3),
        (50.0, None, 5),
        (60.0, 900, 6),
        (None, None, 2),
        (60.0, 119, 1),
        (60.0, 120, 6),
        (None, 49, 1),
    ],
)
def test_it_looks_10_to_15_times_a_second(fps: float | None, frames: int | None, step: int) -> None:
    assert look_step(fps, frames) == step
