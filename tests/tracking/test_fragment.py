"""Fragments and positions of boxes, against plain calculations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polypcount.corpus import Boxes, Tracklets
from polypcount.errors import DataError
from polypcount.simulate import simulate_timelines
from polypcount.tracking import box_positions, fragments


def tracklets_of(lengths: list[int], seed: int = 0) -> tuple[Tracklets, Boxes]:
    """Tracklets of these lengths, one polyp each, a hundred frames apart, their rows in a mixed order."""
    frame = np.concatenate([[], *(1000 * k + np.arange(n) for k, n in enumerate(lengths))]).astype(int)
    label = np.repeat(np.arange(len(lengths)), lengths)
    mixed = np.random.default_rng(seed).permutation(len(frame))
    boxes = Boxes(np.zeros(len(frame)), frame[mixed], np.tile([0, 0, 9, 9], (len(frame), 1)), polyp=label[mixed])
    return Tracklets.gather(boxes, label[mixed]), boxes


def plain_fragments(
    lengths: list[int], length: int | None, stride: int, min_frames: int, drop_last: bool
) -> list[tuple[int, list[int]]]:
    """(tracklet, frames) of each fragment."""
    result = []
    for k, count in enumerate(lengths):
        if count >= min_frames:
            frames = [1000 * k + n for n in range(count)][::stride]
            size = length or len(frames)
            blocks = [frames[n : n + size] for n in range(0, len(frames), size)]
            result += [(k, block) for block in blocks if len(block) == size or not drop_last]
    return result


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 80), max_size=6),
    length=st.none() | st.integers(1, 10),
    stride=st.integers(1, 6),
    min_frames=st.integers(0, 40),
    drop_last=st.booleans(),
)
def test_fragments_equal_the_plain_calculation(
    lengths: list[int], length: int | None, stride: int, min_frames: int, drop_last: bool
) -> None:
    tracklets, boxes = tracklets_of(lengths, seed=len(lengths))
    cut = fragments(tracklets, length, stride, min_frames, drop_last)
    found = [(int(cut.tracklet[k]), boxes.frame[cut.rows_of(k)].tolist()) for k in range(len(cut))]
    assert found == plain_fragments(lengths, length, stride, min_frames, drop_last)


def test_the_defaults_are_the_papers() -> None:
    tracklets, boxes = tracklets_of([29, 30, 64, 70])
    cut = fragments(tracklets)
    # 29 boxes are too few; 30 give 8 of every fourth; 64 give 16, two fragments; 70 give 18, two and a dropped tail.
    assert cut.tracklet.tolist() == [1, 2, 2, 3, 3]
    assert boxes.frame[cut.rows_of(0)].tolist() == [1000 + 4 * k for k in range(8)]
    assert boxes.frame[cut.rows_of(2)].tolist() == [2032 + 4 * k for k in range(8)]


@pytest.mark.parametrize("options", [{"length": 0}, {"stride": 0}, {"min_frames": -1}])
def test_senseless_settings_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(DataError, match="must be at least 1"):
        fragments(tracklets_of([40])[0], **options)  # type: ignore[arg-type]


def test_positions_in_the_polyp() -> None:
    # Polyp 0 lives in frames 10 .. 110 (a lone box at each end), polyp 1 has one frame, and a track has no polyp.
    boxes = Boxes(
        [0] * 6, [10, 50, 51, 110, 30, 5], [[0, 0, 9, 9]] * 6, polyp=[0, 0, 0, 0, 1, -1], track=[-1] * 5 + [3]
    )
    positions = box_positions(boxes)
    assert positions[:5].tolist() == [0, 0.4, 0.41, 1, 0]
    assert np.isnan(positions[5])
    assert len(box_positions(Boxes.empty())) == 0
    two_videos = Boxes([0, 0, 1, 1], [0, 10, 20, 40], [[0, 0, 9, 9]] * 4, polyp=[0] * 4)
    assert box_positions(two_videos).tolist() == [0, 1, 0, 1], "videos are kept apart"


def test_positions_in_the_polyp_equal_the_plain_calculation() -> None:
    boxes = simulate_timelines(2, seed=5, like="study").boxes
    positions = box_positions(boxes)
    for row in range(0, len(boxes), 97):
        frames = boxes.frame[boxes.polyp == boxes.polyp[row]].astype(int)
        assert positions[row] == (boxes.frame[row] - frames.min()) / (frames.max() - frames.min())
