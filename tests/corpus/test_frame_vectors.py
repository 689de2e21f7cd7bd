"""Vectors of frames beside those of tracklets: checked, kept in step with the tracklets, saved and hashed."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polypcount.corpus import Embeddings, FrameVectors, Polyp, Video
from polypcount.errors import DataError, FileError
from polypcount.simulate import simulate_timelines
from polypcount.tracking import link_tracklets

VIDEOS = (Video("a", 100, 25.0), Video("b", 50))
POLYPS = (Polyp("a_1", "a"), Polyp("b_1", "b"))
FORMATS = pytest.mark.parametrize("suffix", [".parquet", ".npz"])


def some(frames: FrameVectors | None = None, order: list[int] | None = None) -> Embeddings:
    """Three tracklets of video a and one of video b, given in any order."""
    rows = np.array(order or range(4))
    columns: dict[str, Any] = {
        "video": [0, 0, 0, 1],
        "start_frame": [0, 5, 40, 3],
        "stop_frame": [10, 30, 80, 50],
        "box_count": [10, 20, 40, 12],
        "polyp": [0, -1, 0, 1],
        "vectors": [[1.0, 0.0], [0.0, 1.0], [2.0, 2.0], [3.0, 4.0]],
    }
    return Embeddings(VIDEOS, POLYPS, **{k: np.array(v)[rows] for k, v in columns.items()}, frames=frames)


def of_frames(tracklet: list[int], frame: list[int], size: int = 3) -> FrameVectors:
    """Vectors whose numbers say which frame they are of."""
    return FrameVectors(
        tracklet, frame, np.array([[f, f + 0.5, -f] for f in frame], np.float32).reshape(-1, 3)[:, :size]
    )


FRAMES = of_frames([0, 0, 2, 3], [0, 9, 41, 3])


def numbers(frames: FrameVectors | None) -> list[tuple[int, int]]:
    """(tracklet, frame) of each row, after seeing that the vector is that of the frame."""
    assert frames is not None
    assert frames.vectors[:, 0].tolist() == frames.frame.tolist()
    return list(zip(frames.tracklet.tolist(), frames.frame.tolist(), strict=True))


def test_types_and_rows_of_a_tracklet() -> None:
    assert [str(column.dtype) for column in FRAMES.columns().values()] == ["int32", "int32", "float32"]
    assert not FRAMES.vectors.flags.writeable
    assert [FRAMES.of_tracklet(row) for row in range(4)] == [slice(0, 2), slice(2, 2), slice(2, 3), slice(3, 4)]
    assert FrameVectors([], [], np.empty((0, 7))) == FrameVectors([], [], [])
    assert some().frames is None


@pytest.mark.parametrize(
    ("tracklet", "frame", "vectors", "message"),
    [
        ([1, 0], [5, 1], np.ones((2, 2)), "frame vectors row 1: .*must rise"),
        ([0, 0], [5, 5], np.ones((2, 2)), "frame vectors row 1: .*must rise"),
        ([0], [-1], np.ones((1, 2)), "frame vectors row 0: frame must be at least 0"),
        ([0], [0], [[np.inf]], "frame vectors row 0: vectors must be finite"),
        ([0, 1], [0, 0], np.ones((1, 2)), "equally long"),
        ([0] * 33, range(33), np.ones((33, 1)), "tracklet 0 has 33 frames, at most 32"),
    ],
)
def test_what_is_refused(tracklet: Any, frame: Any, vectors: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        FrameVectors(tracklet, frame, vectors)


@pytest.mark.parametrize(
    ("tracklet", "frame", "message"), [(1, 4, "frame 4"), (1, 30, "frame 30"), (4, 5, "tracklet 4 is unknown")]
)
def test_frames_are_inside_the_spans_of_known_tracklets(tracklet: int, frame: int, message: str) -> None:
    with pytest.raises(DataError, match=f"frame vectors row 0: {message}"):
        some(of_frames([tracklet], [frame]))


def test_32_frames_of_a_tracklet_are_fine() -> None:
    assert len(some(of_frames([2] * 32, list(range(40, 72)))).frames or ()) == 32


@settings(max_examples=12)
@given(st.permutations(range(4)))
def test_they_are_put_in_order_with_the_tracklets(order: list[int]) -> None:
    place = np.argsort(order)
    rows = sorted((int(place[t]), f) for t, f in numbers(FRAMES))
    shuffled = some(of_frames([t for t, _ in rows], [f for _, f in rows]), order)
    assert numbers(shuffled.frames) == numbers(FRAMES)
    assert shuffled.content_hash == some(FRAMES).content_hash


def test_parts_keep_the_frames_of_their_tracklets() -> None:
    base = some(FRAMES)
    assert numbers(base.select(videos="b").frames) == [(0, 3)]
    assert numbers(base.select(videos="a").frames) == [(0, 0), (0, 9), (2, 41)]
    assert numbers(base.long_enough(20).frames) == [(1, 41)]
    assert numbers(base.labelled().frames) == [(0, 0), (0, 9), (1, 41), (2, 3)]
    assert some().long_enough(20).frames is None


def test_gathered_by_row_of_the_tracklets() -> None:
    corpus = simulate_timelines(2, seed=7, like="study")
    tracklets = link_tracklets(corpus.boxes)
    frames = of_frames(list(range(len(tracklets))), tracklets.start_frame.tolist())
    embeddings = Embeddings.gather(corpus, tracklets, np.ones((len(tracklets), 1)), frames=frames)
    assert numbers(embeddings.frames) == list(enumerate(embeddings.start_frame.tolist()))


def test_the_hash_and_equality_tell_frames() -> None:
    changed = of_frames([0, 0, 2, 3], [0, 8, 41, 3])
    different = [some(frames) for frames in (None, FrameVectors([], [], []), FRAMES, changed)]
    assert len({embeddings.content_hash for embeddings in different}) == 4
    base = some(FRAMES)
    assert base == dataclasses.replace(base)
    assert base != dataclasses.replace(base, frames=changed)


@FORMATS
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.sets(st.sampled_from([(t, f) for t, s in enumerate((0, 5, 40, 3)) for f in range(s, s + 5)])),
    size=st.integers(1, 3),
)
def test_what_is_saved_is_what_is_loaded(suffix: str, rows: set[tuple[int, int]], size: int, tmp_path: Path) -> None:
    frames = of_frames([t for t, _ in sorted(rows)], [f for _, f in sorted(rows)], size)
    saved = some(frames)
    assert Embeddings.load(saved.save(tmp_path / f"e{suffix}")) == saved


@FORMATS
def test_without_tracklets(suffix: str, tmp_path: Path) -> None:
    saved = some(FRAMES).select(videos=[])
    assert len(saved.frames or ()) == 0
    assert Embeddings.load(saved.save(tmp_path / f"e{suffix}")) == saved


def test_anybody_can_read_them(tmp_path: Path) -> None:
    table = pq.read_table(some(FRAMES).save(tmp_path / "e.parquet"))
    assert table["frame_numbers"].to_pylist() == [[0, 9], [], [41], [3]]
    assert table["frame_vectors"].to_pylist() == [[0, 0.5, 0, 9, 9.5, -9], [], [41, 41.5, -41], [3, 3.5, -3]]
    with np.load(some(FRAMES).save(tmp_path / "e.npz"), allow_pickle=False) as arrays:
        assert arrays["frame_tracklet"].tolist() == [0, 0, 2, 3]
        assert arrays["frame_number"].tolist() == [0, 9, 41, 3]
        assert arrays["frame_vectors"].shape == (4, 3)


def test_a_file_without_them_has_no_such_columns_and_the_first_version(tmp_path: Path) -> None:
    for frames, version in ((None, b'"format_version":1'), (FRAMES, b'"format_version":2')):
        schema = pq.read_schema(some(frames).save(tmp_path / "e.parquet"))
        assert ("frame_numbers" in schema.names) == (frames is not None)
        assert version in schema.metadata[b"polypcount"]


def by_hand(path: Path, frame_numbers: Any, frame_vectors: Any) -> Path:
    columns = {"video": ["a", "a"], "start_frame": [0, 5], "stop_frame": [9, 9], "frame_count": [9, 9]}
    lists = {"vector": [[1.0], [2.0]], "frame_numbers": frame_numbers, "frame_vectors": frame_vectors}
    pq.write_table(pa.table({**columns, **lists}), path)
    return path


def test_made_by_hand(tmp_path: Path) -> None:
    path = by_hand(tmp_path / "e.parquet", [[1, 3], None], pa.array([[1, 0, 3, 0], None], pa.large_list(pa.float64())))
    assert numbers(Embeddings.load(path).frames) == [(0, 1), (0, 3)]
    for lists, message in (
        (([[1, 3], [5]], [[1.0, 3.0, 2.0], [5.0]]), "row 0: frame_vectors has 3 numbers for 2 frames"),
        (([[1], [5]], [[1.0, None], [5.0, 5.0]]), "row 0: frame_vectors has a number without a value"),
        (([[1], [4]], [[1.0], [5.0]]), "frame 4 is outside tracklet 1"),
        (([["x"], ["y"]], [[1.0], [5.0]]), "frame_numbers must be a list of numbers"),
    ):
        with pytest.raises(FileError, match=message):
            Embeddings.load(by_hand(tmp_path / "e.parquet", *lists))


def test_frames_changed_after_saving(tmp_path: Path) -> None:
    path = some(FRAMES).save(tmp_path / "e.parquet")
    pq.write_table(pq.read_table(path).drop(["frame_vectors"]), path)
    with pytest.raises(FileError, match="changed after saving"):
        Embeddings.load(path)
