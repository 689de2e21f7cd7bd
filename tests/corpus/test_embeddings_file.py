"""Embeddings that polypcount saved: the same when loaded, a plain line when damaged."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polypcount.corpus import Embeddings, Polyp, Provenance, Video
from polypcount.corpus.together import overlapping
from polypcount.errors import FileError

NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)
FORMATS = pytest.mark.parametrize("suffix", [".parquet", ".npz"])
IN_FOLDER = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def embeddings_of_any_kind(draw: st.DrawFn) -> Embeddings:
    rates = st.none() | st.floats(0.1, 1000)
    ids = draw(st.lists(NAMES | st.just("nan"), unique=True, max_size=4))
    videos = [
        Video(name, draw(st.integers(1, 2**31 - 1)), draw(rates), 64, source=draw(st.none() | st.just("/v/a.mp4")))
        for name in ids
    ]
    polyps = [
        Polyp(name, draw(st.sampled_from(ids)), draw(rates), draw(st.just("") | NAMES))
        for name in draw(st.lists(NAMES | st.just("None"), unique=True, max_size=3 if ids else 0))
    ]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, size = (draw(st.integers(0, 6)) if videos else 0), draw(st.integers(1, 5))
    video = rng.integers(0, max(len(videos), 1), count)
    start = np.array([rng.integers(videos[row].frame_count) for row in video], np.int64)
    stop = np.array([rng.integers(first, videos[row].frame_count) + 1 for first, row in zip(start, video, strict=True)])
    of_video = [[-1, *(k for k, polyp in enumerate(polyps) if polyp.video == video.id)] for video in videos]
    pairs = overlapping(video.astype(np.int32), start.astype(np.int32), stop.astype(np.int32))
    return Embeddings(
        videos,
        polyps,
        video,
        start,
        stop,
        rng.integers(1, 99, count),
        [rng.choice(of_video[row]) for row in video],
        rng.normal(size=(count, size)).astype(np.float32) * rng.choice([1e-40, 0.0, -0.0, 1e30], (count, size)),
        pairs[rng.uniform(size=len(pairs)) < 0.5],
        draw(st.just("") | NAMES),
        Provenance.now("test", ("a",), {"x": [1, "y"]}, (Provenance.now("parent"),)),
    )


@FORMATS
@IN_FOLDER
@given(embeddings=embeddings_of_any_kind())
def test_what_is_saved_is_what_is_loaded(suffix: str, embeddings: Embeddings, tmp_path: Path) -> None:
    loaded = Embeddings.load(embeddings.save(tmp_path / f"e{suffix}"))
    assert loaded == embeddings
    assert loaded.vectors.tobytes() == embeddings.vectors.tobytes()
    assert loaded.content_hash == embeddings.content_hash
    assert [path.name for path in tmp_path.iterdir()] == [f"e{suffix}"]


def small() -> Embeddings:
    return Embeddings(
        (Video("x", 100, 25.0), Video("y", 60)),
        (Polyp("x_1", "x"), Polyp("x_2", "x"), Polyp("y_1", "y")),
        [0, 0, 1],
        [0, 20, 5],
        [30, 50, 55],
        [30, 29, 7],
        [0, -1, 2],
        [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
        [[0, 1]],
        "sha256:encoder",
    )


@FORMATS
def test_no_rows_and_no_dimensions(suffix: str, tmp_path: Path) -> None:
    empty = Embeddings((Video("x", 1),), (), [], [], [], [], [], [])
    assert Embeddings.load(empty.save(tmp_path / f"e{suffix}")) == empty


def test_anybody_can_read_the_columns(tmp_path: Path) -> None:
    table = pq.read_table(small().save(tmp_path / "new" / "e.PARQUET"))
    assert table.drop(["vector"]).to_pylist()[1] == {
        "video": "x",
        "start_frame": 20,
        "stop_frame": 50,
        "box_count": 29,
        "polyp": None,
        "frame_count": 100,
        "fps": 25.0,
    }
    assert table.schema.field("vector").type == pa.list_(pa.field("element", pa.float32(), nullable=False), 2)
    with np.load(small().save(tmp_path / "e.npz"), allow_pickle=False) as arrays:
        assert arrays["video"].tolist() == ["x", "x", "y"]
        assert arrays["polyp"].tolist() == ["x_1", "", "y_1"]
        assert arrays["vectors"].dtype == np.float32


def test_ours_without_its_metadata_is_read_as_made_by_hand(tmp_path: Path) -> None:
    path = small().save(tmp_path / "e.parquet")
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
    loaded = Embeddings.load(path)
    assert loaded.encoder == ""
    assert [polyp.id for polyp in loaded.polyps] == ["x_1", "y_1"]
    assert loaded.vectors.tolist() == small().vectors.tolist()


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the description of a saved file, leaving everything else."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        described = json.loads(table.schema.metadata[b"polypcount"])
        text = change(described)
        pq.write_table(table.replace_schema_metadata({"polypcount": _text(text, described)}), path)
    else:
        with np.load(path) as file:
            arrays = dict(file)
        described = json.loads(str(arrays["polypcount"]))
        text = change(described)
        np.savez(path, **{**arrays, "polypcount": np.array(_text(text, described))})


def _text(text: object, described: dict[str, Any]) -> str:
    return text if isinstance(text, str) else json.dumps(described)


def nested(described: dict[str, Any], depth: int) -> str:
    """The description with a provenance of so many generations, as text: it is too deep to be made by `json`."""
    cut = json.dumps({**Provenance.now("x").to_dict(), "parents": ["?"]})
    head, tail = cut.split('"?"')
    return json.dumps({**described, "provenance": "?"}).replace('"?"', head * depth + tail * depth)


DAMAGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "newer format": (lambda d: d.update(format_version=3), "format version 3.*upgrade"),
    "another format": (lambda d: d.update(format="coco"), "polypcount-embeddings"),
    "not JSON": (lambda _: "{", "the polypcount description is not valid JSON"),
    "no encoder": (lambda d: d.update(encoder=None), "encoder must be text"),
    "video with a key more": (lambda d: d["videos"][0].update(x=1), r"videos\[0\].x is unknown"),
    "video without length": (lambda d: d["videos"][0].pop("frame_count"), r"videos\[0\].frame_count is missing"),
    "video from nowhere": (lambda d: d["videos"][0].update(source=5), r"videos\[0\].source must be text"),
    "video beyond numbers": (lambda d: d["videos"][0].update(frame_count=10**400), r"videos\[0\].*frame_count"),
    "no rate": (lambda d: d["videos"][0].update(fps=-1), r"videos\[0\].*fps must be a positive number"),
    "endless provenance": (lambda d: nested(d, 3000), "recursion"),
    "another encoder": (lambda d: d.update(encoder="e"), "changed after saving: its content hash"),
    "another length": (lambda d: d["videos"][0].update(frame_count=99), "frame_count or fps of video x"),
    "video renamed": (lambda d: d["videos"][0].update(id="z"), "there is no video x|'x' is not in the description"),
    "polyp gone": (lambda d: d.update(polyps=[]), "changed after saving: 'x_1' is not in the description"),
}


@pytest.mark.parametrize(
    ("damage", "suffix"), [*((damage, ".parquet") for damage in DAMAGES), ("not JSON", ".npz"), ("no rate", ".npz")]
)
def test_a_damaged_description_gives_a_plain_error(damage: str, suffix: str, tmp_path: Path) -> None:
    path = small().save(tmp_path / f"e{suffix}")
    change, message = DAMAGES[damage]
    edit(path, change)
    with pytest.raises(FileError, match=message) as caught:
        Embeddings.load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("pairs", [[[0, 5]], [[0]], 5, [[0, 10**30]], []])
def test_damaged_pairs_in_the_description(pairs: object, tmp_path: Path) -> None:
    path = small().save(tmp_path / "e.parquet")
    edit(path, lambda described: described.update(together=pairs))
    with pytest.raises(FileError, match=r"the file was changed after saving: |description: together"):
        Embeddings.load(path)


def test_rows_changed_after_saving(tmp_path: Path) -> None:
    path = small().save(tmp_path / "e.parquet")
    table = pq.read_table(path)
    mend = "; to have it read as a file made by hand, write it without its polypcount metadata"
    for changed in (
        table.slice(0, 1),
        table.drop(["box_count"]),
        table.set_column(1, "start_frame", pa.array([1, 20, 5], pa.int32())),
        table.set_column(6, "fps", pa.array([50.0, 50.0, None])),
    ):
        pq.write_table(changed, path)
        with pytest.raises(FileError, match=f"the file was changed after saving: .*{mend}"):
            Embeddings.load(path)


@FORMATS
def test_a_description_too_large(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = small().save(tmp_path / f"e{suffix}")
    for module in ("formats", "file"):
        monkeypatch.setattr(f"polypcount.corpus.embeddings.{module}.LARGEST_DESCRIPTION", 100)
    with pytest.raises(FileError, match="at most 100"):
        Embeddings.load(path)
    before = path.read_bytes()
    with pytest.raises(FileError, match=r"could not be saved: videos, polyps and pairs .* at most 100 are kept"):
        small().save(path)
    assert path.read_bytes() == before


@FORMATS
def test_cut_short_anywhere(suffix: str, tmp_path: Path) -> None:
    whole = small().save(tmp_path / f"e{suffix}").read_bytes()
    for length in range(0, len(whole), 101):
        (tmp_path / f"cut{suffix}").write_bytes(whole[:length])
        with pytest.raises(FileError, match=r"is empty|is neither|damaged or cut short|cannot be read"):
            Embeddings.load(tmp_path / f"cut{suffix}")


@FORMATS
def test_a_flipped_byte_is_noticed_or_does_no_harm(suffix: str, tmp_path: Path) -> None:
    saved = small()
    whole = saved.save(tmp_path / f"e{suffix}").read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(120):
        damaged = bytearray(whole)
        damaged[rng.integers(len(damaged))] ^= int(rng.integers(1, 256))
        (tmp_path / f"bad{suffix}").write_bytes(damaged)
        try:
            loaded = Embeddings.load(tmp_path / f"bad{suffix}")
        except FileError:
            continue
        assert loaded.vectors.tobytes() == saved.vectors.tobytes()


def test_what_is_no_such_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"nowhere.parquet does not exist; give a"):
        Embeddings.load(tmp_path / "nowhere.parquet")
    with pytest.raises(FileError, match="is a folder or a device"):
        Embeddings.load(tmp_path)
    (tmp_path / "e.parquet").write_bytes(b"")
    with pytest.raises(FileError, match=r"e\.parquet is empty"):
        Embeddings.load(tmp_path / "e.parquet")
    (tmp_path / "e.npz").write_text("video,start_frame\n")
    with pytest.raises(FileError, match=r"is neither Parquet nor \.npz"):
        Embeddings.load(tmp_path / "e.npz")
    with pytest.raises(FileError, match=r"saved as \.parquet or \.npz, found \.csv"):
        small().save(tmp_path / "e.csv")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(FileError, match="is a folder; embeddings are saved to a file"):
        small().save(tmp_path / "folder.npz")


def test_ids_that_a_format_cannot_keep(tmp_path: Path) -> None:
    def named(name: str) -> Embeddings:
        return Embeddings((Video(name, 9),), (), [0], [0], [9], [9], [-1], [[1.0]])

    odd = named("x\x00")
    assert Embeddings.load(odd.save(tmp_path / "e.parquet")) == odd
    with pytest.raises(FileError, match=r"ends with a null character, which \.npz cannot keep; save as \.parquet"):
        odd.save(tmp_path / "e.npz")
    for suffix in (".parquet", ".npz"):
        with pytest.raises(FileError, match="could not be saved"):
            named("\ud800").save(tmp_path / f"new{suffix}")
        assert not (tmp_path / f"new{suffix}").exists()


@FORMATS
def test_a_failing_save_leaves_the_old_file(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = small().save(tmp_path / f"e{suffix}")
    before = path.read_bytes()

    def no_space(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for owner, name in ((pq, "write_table"), (np, "savez_compressed"), (os, "fsync"), (Path, "replace")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, no_space)
            if name in ("write_table", "savez_compressed") and (name == "write_table") != (suffix == ".parquet"):
                continue
            with pytest.raises(FileError, match="could not be saved: No space left on device"):
                small().long_enough(10).save(path)
        assert path.read_bytes() == before
        assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
