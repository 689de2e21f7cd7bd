"""A corpus on disk: whole, or a plain error."""

import dataclasses
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polypcount.corpus import Boxes, Corpus, FrameFiles, Polyp, Provenance, Video
from polypcount.errors import FileError
from polypcount.simulate import simulate_timelines

NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)


def tables(folder: Path) -> Path:
    (path,) = folder.glob("tables-*")
    return path


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    ids = draw(st.lists(NAMES, unique=True, max_size=4))
    sources = st.none() | NAMES.map(lambda name: "/videos/" + name.replace("/", ""))
    positive = st.none() | st.floats(0.1, 1000)
    videos = [
        Video(name, draw(st.integers(1, 2**31 - 1)), draw(positive), 64, None, draw(sources), draw(NAMES), split="x")
        for name in ids
    ]
    owners = st.none() | st.sampled_from(ids) if ids else st.none()
    polyps = [
        Polyp(name, draw(owners), draw(positive), draw(st.just("") | NAMES))
        for name in draw(st.lists(NAMES, unique=True, max_size=3))
    ]
    count = draw(st.integers(0, 6)) if videos else 0
    seed = np.random.default_rng(draw(st.integers(0, 2**32)))
    video = seed.integers(0, max(len(videos), 1), count)
    frame = np.array([seed.integers(videos[v].frame_count) for v in video])
    corner = seed.normal(size=(count, 2)).astype(np.float32)
    boxes = Boxes(
        video,
        frame,
        np.hstack([corner, corner + 1]),
        seed.uniform(size=count),
        seed.integers(-1, len(polyps), count),
        seed.integers(-1, 9, count),
    )
    files = FrameFiles([0], [0], [draw(NAMES.filter(lambda n: n[0] not in "/." and ".." not in n))]) if videos else None
    provenance = Provenance.now("test", ("a",), {"x": [1, "y"]}, (Provenance.now("parent"),))
    return Corpus(tuple(videos), boxes, tuple(polyps), files or FrameFiles.empty(), provenance)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(corpus=corpora())
def test_what_is_saved_is_what_is_loaded(corpus: Corpus, tmp_path: Path) -> None:
    assert Corpus.load(corpus.save(tmp_path / "c")) == corpus


def test_the_description_says_what_made_it(tmp_path: Path) -> None:
    corpus = simulate_timelines(2, seed=3)
    described = json.loads((corpus.save(tmp_path) / "corpus.json").read_text())
    assert described["format_version"] == 1
    assert described["content_hash"] == corpus.content_hash
    assert described["counts"] == {"videos": 2, "boxes": len(corpus.boxes), "polyps": len(corpus.polyps)}
    assert described["provenance"]["made_by"] == "simulate"
    assert described["provenance"]["parameters"]["seed"] == 3
    assert described["provenance"]["package_version"]


def test_videos_inside_the_folder_move_with_it(tmp_path: Path) -> None:
    inside, outside = tmp_path / "old" / "a.mp4", tmp_path / "b.mp4"
    inside.parent.mkdir()
    inside.write_bytes(b"video")
    corpus = Corpus((Video("a", 1, source=str(inside)), Video("b", 1, source=str(outside))))
    corpus.save(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    loaded = Corpus.load(tmp_path / "new")
    assert [video.source for video in loaded.videos] == [str(tmp_path / "new" / "a.mp4"), str(outside)]


def test_a_second_save_replaces_the_first_and_leaves_nothing_over(tmp_path: Path) -> None:
    simulate_timelines(1, seed=1).save(tmp_path)
    later = simulate_timelines(1, seed=2)
    later.save(tmp_path)
    assert Corpus.load(tmp_path) == later
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.json", tables(tmp_path).name]


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("dear")
    with pytest.raises(FileError, match="is not empty"):
        Corpus(()).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(FileError, match=r"thesis\.txt is a file"):
        Corpus(()).save(tmp_path / "thesis.txt")


def test_a_failing_save_leaves_the_old_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = simulate_timelines(1, seed=1)
    corpus.save(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())

    def no_space(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", no_space)
    with pytest.raises(FileError, match="could not be saved: No space left on device"):
        simulate_timelines(1, seed=2).save(tmp_path)
    assert Corpus.load(tmp_path) == corpus
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def edit_json(folder: Path, **values: object) -> None:
    path = folder / "corpus.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def edit_table(folder: Path, name: str, change: object) -> None:
    path = tables(folder) / f"{name}.parquet"
    pq.write_table(change(pq.read_table(path)), path)  # type: ignore[operator]


def _broken_text(count: int) -> pa.Array:
    return pa.StringArray.from_buffers(
        count, pa.py_buffer(np.arange(count + 1, dtype=np.int32).tobytes()), pa.py_buffer(b"\xff" * count)
    )


def _same_video(videos: pa.Table, name: str, count: int) -> pa.Table:
    return videos.take(pa.array([0] * count)).set_column(0, videos.schema.field("id"), pa.array([name] * count))


def replace_bytes(path: Path, old: bytes, new: bytes) -> None:
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


DAMAGES = {
    "bad provenance": (lambda f: edit_json(f, provenance={}), r"corpus\.json: provenance.made_by is missing"),
    "tables gone": (lambda f: shutil.rmtree(tables(f)), r"videos\.parquet is missing"),
    "cut short": (lambda f: truncate(tables(f) / "boxes.parquet"), r"boxes\.parquet is damaged"),
    "no column": (
        lambda f: edit_table(f, "boxes", lambda t: t.drop(["score"])),
        "boxes.parquet: column score is missing",
    ),
    "column of another type": (
        lambda f: edit_table(f, "boxes", lambda t: t.set_column(1, "frame", t["frame"].cast(pa.int64()))),
        "column frame must be int32, found int64",
    ),
    "column with holes": (
        lambda f: edit_table(f, "videos", lambda t: t.set_column(1, "frame_count", pa.nulls(len(t), pa.int32()))),
        "videos.parquet: column frame_count has rows without a value",
    ),
    "text that is none": (
        lambda f: edit_table(f, "videos", lambda t: t.set_column(0, "id", _broken_text(len(t)))),
        "videos.parquet is damaged .*Invalid UTF8",
    ),
    "a column name that is no text": (
        lambda f: replace_bytes(tables(f) / "polyps.parquet", b"histology", b"hist\xff\xfelog"),
        r"polyps\.parquet is damaged",
    ),
    "rows without end": (
        lambda f: edit_table(f, "boxes", lambda t: t.take(pa.array(np.zeros(1 << 21, np.int32)))),
        r"boxes\.parquet: it unpacks to [\d,]+ bytes or more; from a file of its size, at most [\d,]+ are read",
    ),
    "a long text in every row": (
        lambda f: edit_table(f, "videos", lambda t: _same_video(t, "x" * (1 << 20), 100)),
        r"videos\.parquet: it unpacks to 104,857,600 bytes or more",
    ),
    "a value changed": (
        lambda f: edit_table(f, "boxes", lambda t: t.set_column(6, "score", pa.array([0.5] * len(t), pa.float32()))),
        "the tables were changed after saving",
    ),
    "a value out of range": (
        lambda f: edit_table(f, "boxes", lambda t: t.set_column(0, "video", pa.array([7] * len(t), pa.int32()))),
        "boxes row 0: video 7 is unknown",
    ),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate_timelines(1, seed=1, like="study").save(tmp_path_factory.mktemp("saved") / "c")


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_gives_a_plain_error(damage: str, saved: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(saved, tmp_path / "c"))
    change, message = DAMAGES[damage]
    change(folder)  # type: ignore[no-untyped-call]
    with pytest.raises(FileError, match=message) as caught:
        Corpus.load(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_text_that_no_table_can_keep(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="could not be saved"):
        Corpus((Video("case\udcff", 1),)).save(tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_equal_but_for_provenance_is_told_apart() -> None:
    corpus = Corpus((Video("a", 1),))
    assert dataclasses.replace(corpus, provenance=Provenance.now("else")) != corpus


def test_a_device_or_pipe_in_place_of_a_table_is_refused(tmp_path: Path) -> None:
    folder = Corpus((Video("a", 1),)).save(tmp_path / "c")
    (tables(folder) / "boxes.parquet").unlink()
    (tables(folder) / "boxes.parquet").symlink_to(os.devnull)  # a pipe would wait for ever
    with pytest.raises(FileError, match=r"boxes\.parquet is not a file"):
        Corpus.load(folder)
