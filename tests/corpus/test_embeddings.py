"""Embeddings in memory: what they refuse, how they order themselves, what parts of them keep."""

import dataclasses
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polypcount.corpus import Boxes, Corpus, Embeddings, Polyp, Provenance, Tracklets, Video, tracklets_together
from polypcount.corpus.together import overlapping
from polypcount.errors import DataError
from polypcount.simulate import simulate_timelines
from polypcount.tracking import link_tracklets

VIDEOS = (Video("a", 100, 25.0), Video("b", 50))
POLYPS = (Polyp("a_1", "a", 4.5), Polyp("a_2", "a"), Polyp("b_1", "b", site="rectum"))


def some(**changed: object) -> Embeddings:
    """Four tracklets: three of video a, of which the first two are together in a frame, and one of video b."""
    values: dict[str, object] = {
        "videos": VIDEOS,
        "polyps": POLYPS,
        "video": [0, 0, 0, 1],
        "start_frame": [0, 5, 40, 3],
        "stop_frame": [10, 30, 80, 50],
        "box_count": [10, 20, 40, 12],
        "polyp": [0, 1, -1, 2],
        "vectors": [[1.0, 0.0], [0.0, 1.0], [2.0, 2.0], [3.0, 4.0]],
        "together": [[0, 1]],
        "encoder": "sha256:e",
    }
    return Embeddings(**{**values, **changed})  # type: ignore[arg-type]


def test_columns_are_of_the_documented_types_and_read_only() -> None:
    embeddings = some()
    for name in ("video", "start_frame", "stop_frame", "box_count", "polyp", "together"):
        assert getattr(embeddings, name).dtype == np.int32
        assert not getattr(embeddings, name).flags.writeable
    assert embeddings.vectors.dtype == np.float32
    assert len(embeddings) == 4
    with pytest.raises(ValueError, match="read-only"):
        embeddings.vectors[0] = 7


def test_the_caller_keeps_arrays_of_his_own() -> None:
    mine = np.ones((4, 2), np.float32)
    embeddings = some(vectors=mine)
    mine[0] = 9
    assert embeddings.vectors.max() == 1


@settings(max_examples=12)
@given(st.permutations(range(4)))
def test_the_order_of_rows_does_not_matter(order: list[int]) -> None:
    base = some()
    columns = {name: getattr(base, name)[order] for name in ("video", "start_frame", "stop_frame", "box_count")}
    place = np.argsort(order)
    shuffled = some(
        **columns, polyp=base.polyp[order], vectors=base.vectors[order], together=place[base.together][:, ::-1]
    )
    assert shuffled == dataclasses.replace(base, provenance=shuffled.provenance)
    assert shuffled.content_hash == base.content_hash


def test_equal_tracklets_keep_the_order_given() -> None:
    twins = some(video=[1, 0, 0, 0], start_frame=[0] * 4, stop_frame=[9] * 4, polyp=[-1] * 4, together=[[3, 2], [1, 2]])
    assert twins.vectors.tolist() == [[0, 1], [2, 2], [3, 4], [1, 0]]
    assert twins.together.tolist() == [[0, 1], [1, 2]]


def test_no_tracklet_at_all_is_fine() -> None:
    none = Embeddings((), (), [], [], [], [], [], [])
    assert (len(none), none.vectors.shape, none.together.shape) == (0, (0, 0), (0, 2))
    assert some().select(videos=[]).vectors.shape == (0, 2)


BAD: dict[str, tuple[dict[str, object], str]] = {
    "same video twice": ({"videos": (VIDEOS[0], VIDEOS[0])}, "video ids must differ; more than once there is a"),
    "polyp of no video": ({"polyps": (Polyp("p"),)}, "polyp p: in embeddings each polyp must name its video"),
    "polyp of another video": ({"polyps": (Polyp("p", "z"),)}, "polyp p: there is no video z"),
    "unknown video": ({"video": [0, 0, 0, 2]}, r"embeddings row 3: video 2 is unknown, there are 2 \(from 0\)"),
    "unknown polyp": ({"polyp": [0, 3, -1, 2]}, "row 1: polyp 3 is unknown, there are 3"),
    "polyp elsewhere": (
        {"polyp": [0, 2, -1, 2]},
        "row 1: polyp b_1 is of video b",
    ),
    "no frames": (
        {"stop_frame": [10, 5, 80, 50]},
        "row 1: stop_frame must be after start_frame",
    ),
    "beyond the end": (
        {"stop_frame": [10, 30, 101, 50]},
        "row 2: stop_frame 101 is beyond video a of 100 frames",
    ),
    "no boxes": ({"box_count": [10, 0, 1, 1]}, "row 1: box_count must be at least 1, found 0"),
    "part of a frame": ({"start_frame": [0, 5.5, 40, 3]}, "row 1: start_frame must be a whole number, found 5.5"),
    "not finite": (
        {"vectors": [[1, 0], [0, 1], [2, np.nan], [np.inf, 4]]},
        r"row 2: vectors must be finite, found nan \(and 1 more",
    ),
    "too large": ({"vectors": [[1, 0], [0, 1], [1e300, 0], [3, 4]]}, "row 2: vectors must be finite, found 1e"),
    "ragged": ({"vectors": [[1, 0], [0], [1, 2], [3, 4]]}, "the rows of vectors must be equally long"),
    "no dimensions": ({"vectors": np.ones((4, 0))}, r"shape \[n, d\] with d at least 1, found \[4, 0\]"),
    "flat": ({"vectors": np.ones(4)}, r"shape \[n, d\] with d at least 1, found \[4\]"),
    "text": ({"vectors": [["x", "y"]] * 4}, "vectors must hold numbers, found <U1"),
    "too few": ({"vectors": np.ones((3, 2))}, "columns must be equally long, found rows: video 4, .* vectors 3"),
    "encoder": ({"encoder": None}, "the encoder's fingerprint must be a text, found None"),
    "with itself": ({"together": [[1, 1]]}, "together row 0: tracklet 1 is paired with itself"),
    "of two videos": ({"together": [[0, 1], [0, 3]]}, r"together row 1: tracklets \[0, 3\] have no frame in common"),
    "apart": ({"together": [[0, 2]]}, r"together row 0: tracklets \[0, 2\] have no frame in common"),
    "unknown partner": ({"together": [[0, 4]]}, r"together row 0: of \[0, 4\], tracklets are 0 to 3"),
    "not pairs": ({"together": [[0, 1, 2]]}, r"together must be whole numbers \[m, 2\], found int64 \[1, 3\]"),
    "ragged pairs": ({"together": [[0, 1], [2]]}, "together: the rows of pairs must be equally long"),
    "pairs of parts": ({"together": [[0.0, 1.0]]}, "together must be whole numbers"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_makes_no_sense_is_refused_in_one_line(case: str) -> None:
    changed, message = BAD[case]
    with pytest.raises(DataError, match=message) as caught:
        some(**changed)
    assert "\n" not in str(caught.value)


def test_selected_videos_keep_their_polyps_and_pairs() -> None:
    base = some(polyps=(*POLYPS, Polyp("b_2", "b")))
    only_b = base.select(videos="b")
    assert [video.id for video in only_b.videos] == ["b"]
    assert [polyp.id for polyp in only_b.polyps] == ["b_1", "b_2"]
    assert (only_b.video.tolist(), only_b.polyp.tolist(), only_b.together.tolist()) == ([0], [0], [])
    assert base.select(videos=["a"]).together.tolist() == [[0, 1]]
    assert only_b.provenance.made_by == "select"
    assert only_b.provenance.parents == (base.provenance,)
    assert only_b.encoder == "sha256:e"
    with pytest.raises(DataError, match="no video z; it has a, b"):
        base.select(videos=["a", "z"])


def test_short_and_unlabelled_tracklets_go_and_polyps_stay() -> None:
    base = some(together=[[0, 1]])
    long = base.long_enough(12)
    assert long.box_count.tolist() == [20, 40, 12]
    assert long.together.tolist() == []
    assert long.polyps == base.polyps
    assert long.provenance.parameters == {"min_frames": 12}
    assert base.long_enough(0).content_hash == base.content_hash
    assert base.labelled().polyp.tolist() == [0, 1, 2]
    assert base.labelled().together.tolist() == [[0, 1]]
    with pytest.raises(DataError, match="min_frames must be at least 0, found -1"):
        base.long_enough(-1)


def test_rows_of_a_video_are_a_slice() -> None:
    assert [some().of_video(row) for row in (0, 1, 2)] == [slice(0, 3), slice(3, 4), slice(4, 4)]


def test_the_hash_is_of_content_and_not_of_place_or_time() -> None:
    base = some()
    moved = (dataclasses.replace(VIDEOS[0], source="/else/where.mp4"), VIDEOS[1])
    assert some(videos=moved, provenance=Provenance.now("else", ("x",))).content_hash == base.content_hash
    changes: list[dict[str, object]] = [
        {"encoder": ""},
        {"together": []},
        {"vectors": base.vectors * 2},
        {"vectors": np.hstack([base.vectors, base.vectors])},
        {"polyp": [0, 0, -1, 2]},
        {"box_count": [10, 20, 41, 12]},
        {"polyps": (*POLYPS, Polyp("a_3", "a"))},
        {"videos": (VIDEOS[0], Video("b", 51))},
    ]
    hashes = {some(**change).content_hash for change in changes} | {base.content_hash}
    assert len(hashes) == len(changes) + 1
    assert base.content_hash.startswith("sha256:")


def test_equality_is_of_everything() -> None:
    base = some()
    assert base == dataclasses.replace(base)
    assert base != dataclasses.replace(base, provenance=Provenance.now("else"))
    assert base != "base"


def test_gathered_from_a_corpus() -> None:
    corpus = simulate_timelines(procedures=4, seed=7, like="study")
    tracklets = link_tracklets(corpus.boxes)
    vectors = np.arange(len(tracklets) * 3, dtype=np.float64).reshape(-1, 3)
    embeddings = Embeddings.gather(corpus, tracklets, vectors, encoder="e")
    assert (embeddings.videos, embeddings.polyps) == (corpus.videos, corpus.polyps)
    order = np.lexsort((tracklets.stop_frame, tracklets.start_frame, tracklets.video))
    assert np.array_equal(embeddings.vectors, vectors[order].astype(np.float32))
    for name in ("video", "start_frame", "stop_frame", "box_count", "polyp"):
        assert np.array_equal(getattr(embeddings, name), getattr(tracklets, name)[order])
    seen = {(a, b) for a, b in np.argsort(order)[tracklets_together(corpus.boxes, tracklets)].tolist()}
    assert {tuple(sorted(pair)) for pair in seen} == {tuple(pair) for pair in embeddings.together.tolist()}
    assert seen
    assert embeddings.provenance.parameters["corpus"] == corpus.content_hash


def box_corpus(polyps: tuple[Polyp, ...], video: list[int], polyp: list[int]) -> Corpus:
    rows = len(video)
    boxes = Boxes(video, list(range(rows)), [[0, 0, 9, 9]] * rows, polyp=polyp)
    return Corpus(VIDEOS, boxes, polyps)


def test_a_polyp_that_names_no_video_gets_that_of_its_boxes() -> None:
    corpus = box_corpus((Polyp("lost"), Polyp("p"), Polyp("q", "a")), [1, 1], [1, 1])
    embeddings = Embeddings.gather(corpus, link_tracklets(corpus.boxes), [[1.0]])
    assert embeddings.polyps == (Polyp("p", "b"), Polyp("q", "a"))
    assert embeddings.polyp.tolist() == [0]
    corpus = box_corpus((Polyp("p"),), [0, 1], [0, 0])
    with pytest.raises(DataError, match="polyp p has boxes in videos a and b; give each video a polyp of its own"):
        Embeddings.gather(corpus, link_tracklets(corpus.boxes), [[1.0], [2.0]])


def test_tracklets_of_another_corpus_are_refused() -> None:
    corpus = box_corpus(POLYPS, [0, 0], [0, 0])
    other = Tracklets.gather(Boxes([0, 0], [7, 8], [[0, 0, 9, 9]] * 2), [0, 0])
    with pytest.raises(DataError, match="the tracklets are not of this corpus"):
        Embeddings.gather(corpus, other, [[1.0]])
    with pytest.raises(DataError, match=r"2 boxes.* 0 boxes"):
        tracklets_together(Boxes.empty(), other)


ROWS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(-1, 6)), max_size=40)


@settings(max_examples=40)
@given(ROWS)
def test_together_is_what_nested_loops_find(rows: list[tuple[int, int, int]]) -> None:
    # A label is of one video only: the label of the other video is another one.
    named = [(video, frame, -1 if label < 0 else label * 2 + video) for video, frame, label in rows]
    numbers = {label: number for number, label in enumerate(sorted({label for *_, label in named if label >= 0}))}
    boxes = Boxes([v for v, *_ in named], [f for _, f, _ in named], [[0, 0, 1, 1]] * len(named))
    labels = [numbers.get(label, -1) for *_, label in named]
    expected = {
        (min(labels[i], labels[j]), max(labels[i], labels[j]))
        for i, j in combinations(range(len(named)), 2)
        if named[i][:2] == named[j][:2] and labels[i] >= 0 and labels[j] >= 0 and labels[i] != labels[j]
    }
    pairs = tracklets_together(boxes, Tracklets.gather(boxes, labels))
    assert pairs.dtype == np.int32
    assert pairs.tolist() == [list(pair) for pair in sorted(expected)]


SPANS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(1, 20)), max_size=20)


@settings(max_examples=40)
@given(SPANS)
def test_overlapping_is_what_nested_loops_find(rows: list[tuple[int, int, int]]) -> None:
    video, start, length = (np.array([row[k] for row in rows], np.int32) for k in range(3))
    stop = start + length
    expected = [
        [i, j]
        for i, j in combinations(range(len(rows)), 2)
        if video[i] == video[j] and start[i] < stop[j] and start[j] < stop[i]
    ]
    assert overlapping(video, start, stop).tolist() == expected


def test_more_overlaps_than_can_be_held_are_refused() -> None:
    many = np.zeros(20_000, np.int32)
    with pytest.raises(DataError, match="199,990,000 pairs of tracklets overlap in time"):
        overlapping(many, many, many + np.int32(5))
