"""A corpus on disk: whole, or a plain error."""

import dataclasses
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
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
    (found,) = folder.glob("tables-*")
    return found


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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(corpus=corpora())
def test_what_is_saved_is_what_is_loaded(corpus: Corpus, tmp_path: Path) -> None:
    assert Corpus.load(corpus.save(tmp_path / "c")) == corpus


def test_a_corpus_as_large_as_real_colon_round_trips(tmp_path: Path) -> None:
    corpus = simulate_timelines(60, seed=3)
    assert len(corpus.boxes) > 351_000
    loaded = Corpus.load(corpus.save(tmp_path))
    assert loaded == corpus
    assert loaded.boxes.xyxy.tobytes() == corpus.boxes.xyxy.tobytes()


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


def test_old_leftovers_go_and_those_of_a_save_at_work_stay(tmp_path: Path) -> None:
    old, new = tmp_path / ".tables-00000000", tmp_path / ".tables-11111111"
    for folder in (old, new):
        folder.mkdir()
    shown = tmp_path / "tables-22222222"
    shown.mkdir()
    for folder, age in ((old, 7200), (shown, 120)):
        os.utime(folder, (time.time() - age,) * 2)
    Corpus((Video("a", 1),)).save(tmp_path)
    assert not old.exists()
    assert not shown.exists()
    assert new.exists()


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("dear")
    with pytest.raises(FileError, match="is not empty and not a corpus"):
        Corpus(()).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(FileError, match="is a file; a corpus is saved to a folder"):
        Corpus(()).save(tmp_path / "thesis.txt")


@pytest.mark.parametrize("text", ['{"my": "thesis"}', '{"format": "polypcount-corpus", "format_version": 99}', "{"])
def test_a_corpus_json_that_is_not_ours_is_left_alone(text: str, tmp_path: Path) -> None:
    (tmp_path / "corpus.json").write_text(text)
    with pytest.raises(FileError, match="it is not replaced, choose a new folder"):
        Corpus(()).save(tmp_path)
    assert (tmp_path / "corpus.json").read_text() == text


def test_many_saving_at_once_never_fail(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom polypcount.simulate import simulate_timelines\nc = simulate_timelines(1, int(sys.argv[2]))\n"
    )
    code += "for _ in range(25): c.save(sys.argv[1])"
    writers = [subprocess.Popen([sys.executable, "-c", code, tmp_path / "c", str(seed)]) for seed in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert Corpus.load(tmp_path / "c").videos


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


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


DAMAGES = {
    "newer format": (
        lambda f: edit_json(f, format_version=2),
        "format version 2, this polypcount reads up to 1: upgrade",
    ),
    "format version of another type": (lambda f: edit_json(f, format_version="1"), "must be a whole number from 1"),
    "another format": (lambda f: edit_json(f, format="coco"), "is not the description of a corpus"),
    "not JSON": (lambda f: (f / "corpus.json").write_text("{"), "is not valid JSON"),
    "deep JSON": (lambda f: (f / "corpus.json").write_text("[" * 100_000), "is not valid JSON"),
    "JSON of another kind": (lambda f: (f / "corpus.json").write_text("[1]"), "is not the description of a corpus"),
    "no provenance": (lambda f: edit_json(f, provenance={}), "provenance lacks a part: 'made_by'"),
    "tables elsewhere": (lambda f: edit_json(f, tables="../tables-00000000"), "tables must be a name such as"),
    "tables gone": (lambda f: shutil.rmtree(tables(f)), r"videos.parquet is missing: the corpus is not complete"),
    "cut short": (lambda f: truncate(tables(f) / "boxes.parquet"), r"boxes.parquet is damaged or cut short"),
    "empty file": (lambda f: (tables(f) / "polyps.parquet").write_bytes(b""), "polyps.parquet is damaged or cut short"),
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
        "utf-8",
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


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_gives_a_plain_error(damage: str, tmp_path: Path) -> None:
    simulate_timelines(1, seed=1, like="study").save(tmp_path)
    change, message = DAMAGES[damage]
    change(tmp_path)  # type: ignore[no-untyped-call]
    with pytest.raises(FileError, match=message) as caught:
        Corpus.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_what_is_no_corpus_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="nowhere does not exist"):
        Corpus.load(tmp_path / "nowhere")
    with pytest.raises(FileError, match=r"is not a corpus folder: it has no corpus\.json"):
        Corpus.load(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="is a file, not a corpus folder"):
        Corpus.load(tmp_path / "file")


SAVE_FOREVER = """
import sys
from polypcount.simulate import simulate_timelines
one, two = (simulate_timelines(20, seed=s) for s in (1, 2))
print("ready", flush=True)
while True:
    one.save(sys.argv[1])
    two.save(sys.argv[1])
"""

# Saves once, but kills itself just before the n-th call that changes the disk.
SAVE_AND_DIE = """
import os, pathlib, signal, sys
import pyarrow.parquet as pq
from polypcount.simulate import simulate_timelines
corpus, left = simulate_timelines(1, seed=2), int(sys.argv[2])
def deadly(function):
    def counted(*arguments, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return counted
pq.write_table = deadly(pq.write_table)
for owner, names in ((os, ["mkdir", "rename", "replace", "rmdir", "unlink", "fsync"]), (pathlib.Path, ["write_text"])):
    for name in names:
        setattr(owner, name, deadly(getattr(owner, name)))
corpus.save(sys.argv[1])
"""


def test_kill_9_at_any_time_leaves_one_corpus_whole(tmp_path: Path) -> None:
    whole = {simulate_timelines(20, seed=seed).content_hash for seed in (1, 2)}
    chance = random.Random(5)
    seen = set()
    simulate_timelines(20, seed=1).save(tmp_path / "c")
    for _ in range(12):
        process = subprocess.Popen([sys.executable, "-c", SAVE_FOREVER, tmp_path / "c"], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.uniform(0.05, 0.3))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        seen.add(Corpus.load(tmp_path / "c").content_hash)
    assert seen <= whole


def test_kill_9_before_each_step_leaves_one_corpus_whole(tmp_path: Path) -> None:
    old, new = simulate_timelines(1, seed=1), simulate_timelines(1, seed=2)
    outcomes = []
    for step in range(1, 60):
        folder = tmp_path / str(step)
        old.save(folder)
        process = subprocess.run([sys.executable, "-c", SAVE_AND_DIE, folder, str(step)])
        loaded = Corpus.load(folder).content_hash
        assert loaded in (old.content_hash, new.content_hash)
        outcomes.append(loaded == new.content_hash)
        new.save(folder)
        assert Corpus.load(folder) == new
        if process.returncode == 0:
            break
    # Every step was reached, and there is one moment before which it is the old one and after which the new.
    assert process.returncode == 0
    assert outcomes == sorted(outcomes)
    assert not outcomes[0]
    assert len(outcomes) > 10


def test_a_reader_never_meets_a_writer_halfway(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    whole = {simulate_timelines(20, seed=seed).content_hash for seed in (1, 2)}
    with subprocess.Popen([sys.executable, "-c", SAVE_FOREVER, folder], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while not (folder / "corpus.json").exists():
            time.sleep(0.01)
        seen = {Corpus.load(folder).content_hash for _ in range(25)}
        process.kill()
    assert seen <= whole


def test_equal_but_for_provenance_is_told_apart() -> None:
    corpus = Corpus((Video("a", 1),))
    assert dataclasses.replace(corpus, provenance=Provenance.now("else")) != corpus
