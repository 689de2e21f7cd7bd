"""The bands of an operating point, against plain counting of misses; and false alarms of a detector."""

import dataclasses

import numpy as np
import pytest

from polypcount.clustering import GroupingInput, OperatingPoint
from polypcount.corpus import Embeddings, Provenance, Video
from polypcount.counting.bands import SECONDS, fit_bands
from polypcount.counting.counted_videos import CountedVideo, counted_videos
from polypcount.counting.decide import ends, seen_groups, within
from polypcount.errors import DataError
from tests.evaluation.embedded import embedded

VALUES = tuple(np.linspace(0.02, 0.98, 25).round(3).tolist())
POINT = OperatingPoint(
    method="agglomerative",
    parameters={"threshold": 0.7},
    cannot_link=True,
    varied="threshold",
    values=(0.7,),
    level=0.9,
    selected_on="a test",
)


def recordings(count: int, tracklets: range, *, tracked: bool = False, seed: int = 0) -> list[CountedVideo]:
    """Recordings with polyps that are hard to tell apart; of tracked ones, some tracklets are false alarms."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        n = int(rng.integers(tracklets.start, tracklets.stop))
        truth = np.sort(rng.integers(0, max(1, n // 2), n))
        vectors = rng.normal(size=(n, 4))[truth] + 0.6 * rng.normal(size=(n, 4))
        alarms = rng.uniform(size=n) < (0.3 if tracked else 0)
        truth[alarms] = n + np.arange(alarms.sum())
        known = len(np.unique(truth[~alarms]))
        seconds = np.where(alarms, 1.2, rng.uniform(1, 30, n))
        grouping = GroupingInput.of(vectors, np.arange(n), duration=100)
        video = Video(f"v{number}", 3000, 25.0)
        start = np.arange(n, dtype=np.int32)

        made.append(
            CountedVideo(video, grouping, start, start + 1, truth.astype(np.int32), known, known, seconds, tracked)
        )
    return made


def missed(point: OperatingPoint, videos: list[CountedVideo]) -> tuple[int, int]:
    """How many recordings have more polyps than the upper end, and fewer than the lower end."""
    above = below = 0
    for video in videos:
        band = point.band(len(video.truth), tracked=video.tracked)
        assert band is not None
        low, high = ends(point, band, video.tracklets, video.seconds)
        above, below = above + (video.polyps > high), below + (video.polyps < low)
    return above, below


def test_misses_are_few_enough_at_both_ends_of_every_band_and_no_narrower_value_is() -> None:
    few, many = recordings(60, range(1, 3)), recordings(60, range(9, 16), seed=1)
    bands = fit_bands(POINT, [*few, *many], VALUES, 0.9)
    point = POINT.model_copy(update={"bands": bands})
    assert [(band.tracked, band.procedures) for band in bands] == [(False, 60), (False, 60)]
    for videos in (few, many):
        for end in missed(point, videos):
            assert (end + 1) / 61 <= 0.06
    # The next narrower value of either end has too many misses, or is no narrower.
    counts = np.array([[len(np.unique(row)) for row in POINT.labels_at(v.tracklets, VALUES)] for v in many])
    polyps, wide = np.array([video.polyps for video in many]), bands[1]
    for value in [value for value in VALUES if value < wide.high]:
        column = counts[:, VALUES.index(value)]
        assert (column < polyps).sum() + 1 > 0.06 * 61 or column.sum() >= counts[:, VALUES.index(wide.high)].sum()
    for value in [value for value in VALUES if value > wide.low]:
        column = counts[:, VALUES.index(value)]
        assert (column > polyps).sum() + 1 > 0.06 * 61 or column.sum() <= counts[:, VALUES.index(wide.low)].sum()


def test_coverage_holds_on_other_recordings_of_the_same_kind() -> None:
    bands = fit_bands(POINT, recordings(200, range(2, 12)), VALUES, 0.9)
    point = POINT.model_copy(update={"bands": bands})
    others = recordings(400, range(2, 12), seed=7)
    assert sum(missed(point, others)) / 400 < 0.16, "0.12 at most, and two and a half standard errors"


def test_small_bands_are_joined_and_an_impossible_limit_has_the_fewest_misses() -> None:
    videos = recordings(12, range(1, 3)) + recordings(12, range(9, 16), seed=1)
    (band,) = fit_bands(POINT, videos, VALUES, 0.9)
    assert band.procedures == 24
    point = POINT.model_copy(update={"bands": (band,)})
    assert missed(point, videos) == (0, 0), "one miss would be 2 / 25, more than 0.06"


def test_false_alarms_lower_only_the_lower_end() -> None:
    videos = recordings(80, range(3, 9), tracked=True)
    (band,) = fit_bands(POINT, videos, VALUES, 0.9)
    assert band.tracked
    assert band.seconds in SECONDS[1:], "alarms last for 1.2 seconds"
    assert band.low <= 0.7 <= band.high, "the point's own value lies between"
    without = band.model_copy(update={"seconds": 0.0})
    for video in videos:
        low, high = ends(POINT, band, video.tracklets, video.seconds)
        all_groups, same_high = ends(POINT, without, video.tracklets, video.seconds)
        assert (low <= all_groups, high) == (True, same_high)
    assert any(
        ends(POINT, band, v.tracklets, v.seconds) != ends(POINT, without, v.tracklets, v.seconds) for v in videos
    )
    assert seen_groups(np.array([0, 0, 5], np.int32), np.array([1.0, 1.0, 1.5]), 2.0) == 1
    assert seen_groups(np.array([], np.int32), np.array([]), 2.0) == 0


def test_an_interval_holds_the_count_and_stays_in_the_range_of_the_user() -> None:
    assert within((2, 5), 3, None) == (2, 5)
    assert within((2, 5), 7, None) == (2, 7)
    assert within((2, 5), 1, None) == (1, 5)
    assert within((2, 5), 4, (3, 4)) == (3, 4)
    assert within((0, 0), 2, (2, None)) == (2, 2)


def test_tracklets_without_a_polyp_are_false_alarms_of_a_detector_and_else_refused() -> None:
    vectors = embedded([[2, 3], [4]], seed=1)
    polyp = vectors.polyp.copy()
    polyp[[0, 6, 7]] = -1
    made = Provenance.now("count", parameters={"tracker": {"confidence": 0.5}})
    one, other = counted_videos(dataclasses.replace(vectors, polyp=polyp, provenance=made))
    assert (one.polyps, other.polyps) == (2, 1)
    assert len(np.unique(one.truth)) == 3
    assert len(np.unique(other.truth)) == 3, "two alarms and a polyp"
    assert one.tracked
    assert one.seconds.tolist() == [60 / 25] * 5
    with pytest.raises(DataError, match="tracklets have no polyp"):
        counted_videos(dataclasses.replace(vectors, polyp=polyp))


def test_a_recording_without_a_counted_tracklet_is_left_out() -> None:
    vectors = embedded([[2]], seed=1)
    short = Embeddings(
        vectors.videos,
        vectors.polyps,
        vectors.video,
        vectors.start_frame,
        vectors.stop_frame,
        [3, 3],
        vectors.polyp,
        vectors.vectors,
    )
    assert counted_videos(short) == []
