"""Samplers: what they promise of every batch, on simulated procedures."""

from itertools import pairwise

import numpy as np
import pytest

from polypcount.corpus import Boxes, Corpus, Tracklets
from polypcount.errors import DataError
from polypcount.simulate import TimelineSettings, simulate_timelines
from polypcount.tracking import fragments, link_tracklets
from polypcount.training.batches import Batch
from polypcount.training.other_views import other_views
from polypcount.training.recipe import NeighbourSettings, PolypViewSettings, SegmentSettings
from polypcount.training.recipe_file import load_recipe
from polypcount.training.samplers import NeighbouringFrames, PolypViews, Sampler, TrackletSegments, new_sampler


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return simulate_timelines(6, seed=3, like="study")


@pytest.fixture(scope="module")
def tracklets(corpus: Corpus) -> Tracklets:
    return link_tracklets(corpus.boxes)


@pytest.fixture(params=["frames", "segments", "views", "strict views"])
def sampler(request: pytest.FixtureRequest, corpus: Corpus, tracklets: Tracklets) -> Sampler:
    if request.param == "frames":
        return NeighbouringFrames(corpus.boxes, NeighbourSettings(samples=32), seed=5, batches=9)
    if request.param == "segments":
        return TrackletSegments(corpus.boxes, tracklets, SegmentSettings(samples=8), seed=5, batches=6)
    settings = PolypViewSettings(polyps=3, views=6, strict=request.param == "strict views")
    return PolypViews(corpus.boxes, tracklets, settings)


def same(a: Batch, b: Batch) -> bool:
    return len(a) == len(b) and all(
        np.array_equal(x, y)
        for x, y in zip((*a.rows, a.polyp, a.sample, a.position), (*b.rows, b.polyp, b.sample, b.position), strict=True)
    )


def test_views_are_of_their_polyp_and_begin_at_their_position(sampler: Sampler, corpus: Corpus) -> None:
    boxes = corpus.boxes
    seen = 0
    for batch in sampler.batches(0):
        for rows, polyp, position in zip(batch.rows, batch.polyp.tolist(), batch.position.tolist(), strict=True):
            assert (boxes.polyp[rows] == polyp).all()
            assert (np.diff(boxes.frame[rows]) > 0).all()
            life = boxes.frame[boxes.polyp == polyp]
            assert position == pytest.approx((boxes.frame[rows[0]] - life.min()) / max(life.max() - life.min(), 1))
            assert np.isin(rows, sampler.rows).all()
            seen += 1
    assert seen > 50


def test_an_epoch_is_the_same_again_and_another_one_differs(sampler: Sampler) -> None:
    first, again, other = (list(sampler.batches(epoch)) for epoch in (3, 3, 4))
    assert len(first) == len(again)
    assert all(map(same, first, again))
    assert not all(map(same, first, other))


def test_the_shares_of_processes_make_up_the_batch(sampler: Sampler) -> None:
    sizes = {len(batch) for batch in sampler.batches(0)}
    assert len(sizes) == 1, "all batches are whole"
    batch = next(iter(sampler.batches(0)))
    assert same(batch.share(0, 1), batch)
    shares = [batch.share(rank, 2) for rank in range(2)]
    assert np.array_equal(np.concatenate([share.polyp for share in shares]), batch.polyp), "in the order of the batch"
    assert sum(map(len, shares)) == len(batch)
    with pytest.raises(DataError, match="cannot be shared equally by 7 processes"):
        batch.share(0, 7)
    firsts = sorted(
        (int(rows[0]), int(polyp)) for share in shares for rows, polyp in zip(share.rows, share.polyp, strict=True)
    )
    assert firsts == sorted((int(rows[0]), int(polyp)) for rows, polyp in zip(batch.rows, batch.polyp, strict=True))


def test_neighbouring_frames_are_two_and_near(corpus: Corpus) -> None:
    sampler = NeighbouringFrames(corpus.boxes, NeighbourSettings(samples=64, spread=5), seed=1)
    boxes = corpus.boxes
    steps: list[int] = []
    firsts: list[int] = []
    for batch in sampler.batches(0):
        assert all(len(rows) == 1 for rows in batch.rows)
        firsts += [int(rows[0]) for rows in batch.rows[::2]]
        for a, b in zip(batch.rows[::2], batch.rows[1::2], strict=True):
            if len(steps) < 200:
                of_polyp = np.flatnonzero(boxes.polyp == boxes.polyp[a[0]])
                by_time = of_polyp[np.argsort(boxes.frame[of_polyp], kind="stable")].tolist()
                steps.append(by_time.index(b[0]) - by_time.index(a[0]))
    assert 0 not in steps
    assert 3 < np.std(steps) < 7
    assert len(set(firsts)) == len(firsts), "no box is a first frame twice"
    assert len(firsts) == len(boxes) // 128 * 64, "an epoch shows as many frames as there are boxes"


def test_segments_are_disjoint_and_follow_each_other(corpus: Corpus, tracklets: Tracklets) -> None:
    settings = SegmentSettings(samples=8)
    strides = []
    for batch in TrackletSegments(corpus.boxes, tracklets, settings, batches=25).batches(0):
        for a, b in zip(batch.rows[::2], batch.rows[1::2], strict=True):
            assert len(a) == len(b) == 8
            assert tracklets.label[a[0]] == tracklets.label[b[0]], "both of one tracklet"
            assert corpus.boxes.frame[a[-1]] < corpus.boxes.frame[b[0]]
            order = tracklets.rows(int(tracklets.label[a[0]])).tolist()
            steps = {order.index(y) - order.index(x) for x, y in pairwise(a.tolist())}
            assert len(steps) == 1
            strides.append(steps.pop())
    assert set(strides) == {1, 2, 3, 4}
    assert strides.count(4) > strides.count(1), "drawn with a weight of itself"


def test_the_curriculum_moves_to_two_tracklets(corpus: Corpus, tracklets: Tracklets) -> None:
    settings = SegmentSettings(samples=8, one_tracklet=0.8, one_tracklet_end=0.4, over=0.1)
    published = [0.72, 0.64, 0.56, 0.48, 0.4, 0.4, 0.4]
    assert [round(settings.chance((epoch + 1) / 50), 3) for epoch in range(7)] == published
    sampler = TrackletSegments(corpus.boxes, tracklets, settings, batches=50, epochs=70)
    shares = []
    for epoch in (0, 7):
        one = [
            tracklets.label[a[0]] == tracklets.label[b[0]]
            for batch in sampler.batches(epoch)
            for a, b in zip(batch.rows[::2], batch.rows[1::2], strict=True)
        ]
        shares.append(np.mean(one))
    assert shares[0] > shares[1] + 0.15


def test_polyp_views_fill_every_batch(corpus: Corpus, tracklets: Tracklets) -> None:
    pieces = fragments(tracklets)
    per_polyp = np.bincount(tracklets.polyp[pieces.tracklet])
    for strict in (False, True):
        settings = PolypViewSettings(polyps=3, views=6, strict=strict)
        used: list[int] = []
        for batch in PolypViews(corpus.boxes, tracklets, settings).batches(0):
            polyps, counts = np.unique(batch.polyp, return_counts=True)
            assert counts.tolist() == [6, 6, 6]
            assert all(len(rows) == 8 for rows in batch.rows)
            if strict:
                assert (per_polyp[polyps] >= 6).all()
            used += [int(rows[0]) for rows in batch.rows]
            assert not repeated(batch)
        if strict:
            assert len(set(used)) == len(used), "no fragment twice in an epoch"
        else:
            assert len(set(used)) > 0.6 * len(pieces)


def repeated(batch: Batch) -> int:
    """Views that show the same frames as another one of the batch."""
    return len(batch) - len({tuple(rows.tolist()) for rows in batch.rows})


def test_an_epoch_of_realistic_lengths_has_no_identical_views() -> None:
    # Short clips, as in LDPolypVideo: most polyps have far fewer than 14 fragments.
    clips = simulate_timelines(30, seed=4, like="study", settings=TimelineSettings(minutes=1))
    tracklets, settings = link_tracklets(clips.boxes), PolypViewSettings()
    sampler = PolypViews(clips.boxes, tracklets, settings)
    pieces = fragments(tracklets)
    per_polyp = np.bincount(tracklets.polyp[pieces.tracklet])
    few = np.flatnonzero((per_polyp > 0) & (per_polyp < 14))
    batches = list(sampler.batches(0))
    topped_up = sum(np.isin(batch.polyp, few).sum() for batch in batches)
    assert topped_up > 500, "the test needs polyps with few fragments"
    assert sum(map(repeated, batches)) == 0


def test_other_views_by_hand() -> None:
    boxes = Boxes(np.zeros(9, int), np.arange(9), np.tile([0, 0, 5, 5], (9, 1)), polyp=np.zeros(9, int))
    settings = PolypViewSettings(polyps=1, views=2, length=2, stride=3, min_frames=1)
    tracklets = link_tracklets(boxes)
    assert [fragments(tracklets, 2, 3, 1).rows_of(0).tolist()] == [[0, 3]]
    others = other_views(tracklets, 0, settings)
    by_rank = {
        rank: sorted(map(tuple, others.rows[others.rank == rank].tolist())) for rank in np.unique(others.rank).tolist()
    }
    assert by_rank == {
        0: [(1, 4), (2, 5)],
        1: [(3, 6), (4, 7), (5, 8)],
        2: [(k, k + 2) for k in range(7)],
        3: [(k, k + 1) for k in range(8)],
    }
    drawn = [tuple(rows.tolist()) for rows in others.drawn(6, np.random.default_rng(0))]
    assert set(drawn[:2]) == set(by_rank[0])
    assert set(drawn[2:5]) == set(by_rank[1])
    assert drawn[5] in by_rank[2]
    single = other_views(tracklets, 0, PolypViewSettings(length=1, stride=2, min_frames=1))
    assert sorted(single.rows.ravel().tolist()) == [1, 3, 5, 7], "one frame has no stride"


def test_an_epoch_shows_about_as_many_frames_for_each_sampler(corpus: Corpus, tracklets: Tracklets) -> None:
    shown = {}
    for name in ("sfe", "mve", "temporal"):
        recipe = load_recipe(name)
        shown[name] = recipe.images * sum(1 for _ in new_sampler(recipe, corpus.boxes, tracklets).batches(0))
    boxes = len(corpus.boxes)
    assert 0.99 * boxes < shown["sfe"] <= boxes
    for name in ("mve", "temporal"):
        assert 0.6 * boxes / 4 < shown[name] < 1.1 * boxes / 4, name


def test_a_polyp_with_few_fragments_is_sampled_again(corpus: Corpus, tracklets: Tracklets) -> None:
    settings = PolypViewSettings(polyps=2, views=500)
    sampler = PolypViews(corpus.boxes, tracklets, settings)
    assert all(len(batch) == 1000 for batch in sampler.batches(0))
    assert "with fewer than 500 fragments" in sampler.use
    with pytest.raises(DataError, match=r"a batch takes 2 polyps .*1 of 12 .* too few fragments \(strict\)"):
        PolypViews(corpus.boxes, tracklets, PolypViewSettings(polyps=2, views=500, strict=True))


def test_use_is_told(corpus: Corpus, tracklets: Tracklets) -> None:
    polyps = len(np.unique(corpus.boxes.polyp))
    assert NeighbouringFrames(corpus.boxes).use.startswith(f"{polyps} of {polyps} polyps, {len(corpus.boxes)} of")
    assert f"of {len(tracklets)} tracklets" in TrackletSegments(corpus.boxes, tracklets).use
    assert f"of {len(fragments(tracklets))} fragments of 8 frames" in PolypViews(corpus.boxes, tracklets).use


def test_nothing_to_learn_from_is_one_line() -> None:
    boxes = Boxes([0], [0], [[0, 0, 1, 1]], polyp=[0])
    tracklets = link_tracklets(boxes)
    for make, message in (
        (lambda: NeighbouringFrames(boxes), "no pair of frames to learn from: 0 of 1 polyps"),
        (lambda: TrackletSegments(boxes, tracklets), "no tracklet to cut into two segments: 0 of 1 polyps"),
        (lambda: PolypViews(boxes, tracklets), "a batch takes 4 polyps .*there are 0 of 1 polyps"),
    ):
        with pytest.raises(DataError, match=message):
            make()


def test_frames_count_once_and_videos_stay_apart() -> None:
    # Polyp 0 twice in each frame of video 0, and, against the rules, in video 1 as well.
    video, frame = np.repeat([0, 1], [40, 20]), np.concatenate([np.arange(40) // 2, np.arange(20)])
    boxes = Boxes(video, frame, np.tile([0, 0, 1, 1], (60, 1)), polyp=np.zeros(60, int))
    for batch in NeighbouringFrames(boxes, NeighbourSettings(samples=40, spread=3)).batches(0):
        for a, b in zip(batch.rows[::2], batch.rows[1::2], strict=True):
            assert boxes.frame[a[0]] != boxes.frame[b[0]]
            assert boxes.video[a[0]] == boxes.video[b[0]]
