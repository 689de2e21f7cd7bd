"""Fragments and positions, against plain calculations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polypcount.corpus import Boxes, Tracklets, Video
from polypcount.errors import DataError
from polypcount.simulate import simulate_timelines
from polypcount.tracking import fragment_positions, fragments, link_tracklets, tracklet_positions


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


def test_positions_in_the_video() -> None:
    boxes = Boxes([0, 0, 1], [10, 11, 50], [[0, 0, 9, 9]] * 3, polyp=[0, 0, 1])
    tracklets = link_tracklets(boxes)
    videos = (Video("a", 100, fps=25), Video("b", 200))
    assert tracklet_positions(tracklets, videos).tolist() == [0.10, 0.25]
    assert tracklet_positions(tracklets, videos, "stop", "frames").tolist() == [12, 51]
    assert tracklet_positions(tracklets, videos, "centre", "frames").tolist() == [11, 50.5]
    assert tracklet_positions(tracklets, videos, "centre").tolist() == [0.11, 0.2525]
    seconds = tracklet_positions(tracklets, videos, "start", "seconds")
    assert seconds[0] == 0.4
    assert np.isnan(seconds[1]), "without fps nobody knows"
    assert len(tracklet_positions(link_tracklets(Boxes.empty()), videos)) == 0
    with pytest.raises(DataError, match="anchor must be one of"):
        tracklet_positions(tracklets, videos, "middle")  # type: ignore[arg-type]


def test_positions_in_the_polyp() -> None:
    # Polyp 0 lives in frames 10 .. 110 (a lone box at each end), polyp 1 has one frame, and a track has no polyp.
    frame = [10, 50, 51, 110, 30, 5]
    boxes = Boxes([0] * 6, frame, [[0, 0, 9, 9]] * 6, polyp=[0, 0, 0, 0, 1, -1], track=[-1] * 5 + [3])
    tracklets = link_tracklets(boxes)
    cut = fragments(tracklets, length=1, stride=1, min_frames=0)
    positions = fragment_positions(cut, tracklets, boxes)
    by_frame = dict(zip(boxes.frame[cut.rows].tolist(), positions.tolist(), strict=True))
    assert np.isnan(by_frame.pop(5))
    assert by_frame == {10: 0, 50: 0.4, 51: 0.41, 110: 1, 30: 0}
    none = fragments(link_tracklets(Boxes.empty()))
    assert len(fragment_positions(none, link_tracklets(Boxes.empty()), Boxes.empty())) == 0


def test_positions_in_the_polyp_keep_videos_apart() -> None:
    boxes = Boxes([0, 0, 1, 1], [0, 10, 20, 40], [[0, 0, 9, 9]] * 4, polyp=[0] * 4)
    tracklets = link_tracklets(boxes)
    cut = fragments(tracklets, length=1, stride=1, min_frames=0)
    assert fragment_positions(cut, tracklets, boxes).tolist() == [0, 1, 0, 1]
    with pytest.raises(DataError, match="tracklets are of 4 boxes, given are 0"):
        fragment_positions(cut, tracklets, Boxes.empty())
    with pytest.raises(DataError, match="tracklets are of 2 videos, given are 1"):
        tracklet_positions(tracklets, [Video("a", 50)])


def test_positions_in_the_polyp_equal_the_plain_calculation() -> None:
    corpus = simulate_timelines(4, seed=5, like="study")
    boxes, tracklets = corpus.boxes, link_tracklets(corpus.boxes)
    cut = fragments(tracklets)
    positions = fragment_positions(cut, tracklets, boxes)
    assert len(cut) > 100
    for k in range(0, len(cut), 7):
        mine = boxes.frame[boxes.polyp == tracklets.polyp[cut.tracklet[k]]].astype(int)
        start = int(boxes.frame[cut.rows_of(k)[0]])
        assert positions[k] == (start - mine.min()) / (mine.max() - mine.min())
    assert positions.min() >= 0
    assert positions.max() < 1
