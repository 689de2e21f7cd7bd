"""Embeddings that somebody else wrote: the documented columns are enough, and what is wrong is told in one line."""

import io
import resource
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polypcount.corpus import Embeddings, Polyp, Video
from polypcount.corpus.embeddings import formats
from polypcount.errors import FileError

FORMATS = pytest.mark.parametrize("suffix", [".parquet", ".npz"])

COLUMNS: dict[str, Any] = {
    "video": ["x", "y", "x", "x"],
    "start_frame": [0, 5, 20, 60],
    "stop_frame": [30, 55, 50, 61],
    "frame_count": [100, 60, 100, 100],
    "vector": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]],
}
MORE: dict[str, Any] = {"polyp": ["x_1", "y_1", None, "x_1"], "box_count": [30, 7, 29, 1], "fps": [25, None, 25, 25]}


def by_hand(path: Path, **columns: Any) -> Path:
    """Write columns as they are; None leaves one out. Lists are made what anybody's pipeline would make of them."""
    columns = {name: values for name, values in columns.items() if values is not None}
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        arrays = {name: _as_array(name, values) for name, values in columns.items() if name != "vector"}
        np.savez(path, vectors=np.array(columns["vector"]), **arrays)
    return path


def _as_array(name: str, values: Any) -> Any:
    if name in ("video", "polyp"):
        return np.array([value or "" for value in values])
    return np.array([np.nan if value is None else value for value in values])


@FORMATS
def test_the_documented_columns_are_enough(suffix: str, tmp_path: Path) -> None:
    loaded = Embeddings.load(by_hand(tmp_path / f"mine{suffix}", **COLUMNS))
    assert loaded.videos == (Video("x", 100), Video("y", 60))
    assert loaded.polyps == ()
    assert loaded.video.tolist() == [0, 0, 0, 1]
    assert loaded.start_frame.tolist() == [0, 20, 60, 5]
    assert loaded.box_count.tolist() == [30, 30, 1, 50]
    assert loaded.polyp.tolist() == [-1] * 4
    assert loaded.vectors.tolist() == [[1, 2], [5, 6], [7, 8], [3, 4]]
    assert loaded.vectors.dtype == np.float32
    assert loaded.together.tolist() == [[0, 1]]
    assert loaded.encoder == ""
    assert loaded.provenance.sources == (str(tmp_path / f"mine{suffix}"),)


@FORMATS
def test_the_optional_columns_are_taken(suffix: str, tmp_path: Path) -> None:
    loaded = Embeddings.load(by_hand(tmp_path / f"mine{suffix}", **COLUMNS, **MORE))
    assert loaded.videos == (Video("x", 100, 25.0), Video("y", 60))
    assert loaded.polyps == (Polyp("x_1", "x"), Polyp("y_1", "y"))
    assert loaded.polyp.tolist() == [0, -1, 0, 1]
    assert loaded.box_count.tolist() == [30, 29, 1, 7]


def test_pairs_in_an_npz_stand_for_those_of_spans(tmp_path: Path) -> None:
    made = by_hand(tmp_path / "mine.npz", **COLUMNS, together=np.empty((0, 2), np.int64))
    assert Embeddings.load(made).together.tolist() == []
    made = by_hand(tmp_path / "mine.npz", **COLUMNS, together=[[2, 0]])
    assert Embeddings.load(made).together.tolist() == [[0, 1]]


KINDS = {
    "float": pa.list_(pa.float32()),
    "double": pa.list_(pa.float64()),
    "half": pa.list_(pa.float16()),
    "whole": pa.list_(pa.int8()),
    "large list": pa.large_list(pa.float64()),
    "fixed size": pa.list_(pa.float64(), 2),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows_per_group", [2, 100])
def test_vectors_of_any_list_type(kind: str, rows_per_group: int, tmp_path: Path) -> None:
    values = [[np.float16(x) for x in row] if kind == "half" else row for row in COLUMNS["vector"]]
    table = pa.table({**COLUMNS, "vector": pa.array(values, KINDS[kind])})
    pq.write_table(table, tmp_path / "mine.parquet", row_group_size=rows_per_group)
    assert Embeddings.load(tmp_path / "mine.parquet").vectors.tolist() == [[1, 2], [5, 6], [7, 8], [3, 4]]


def test_tensors_dictionaries_and_large_texts(tmp_path: Path) -> None:
    storage = pa.array(COLUMNS["vector"], pa.list_(pa.float32(), 2))
    columns = {
        **COLUMNS,
        "vector": pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [2]), storage),
        "video": pa.DictionaryArray.from_arrays([2, 1, 2, 2], ["unused", "y", "x"]),
        "polyp": pa.array(["b", None, "", "a"], pa.large_string()),
        "extra": [object.__name__] * 4,
    }
    pq.write_table(pa.table(columns), tmp_path / "mine.parquet", row_group_size=3)
    loaded = Embeddings.load(tmp_path / "mine.parquet")
    assert [video.id for video in loaded.videos] == ["x", "y"]
    assert [polyp.id for polyp in loaded.polyps] == ["b", "a"]
    assert loaded.polyp.tolist() == [0, -1, 1, -1]
    assert loaded.vectors.tolist() == [[1, 2], [5, 6], [7, 8], [3, 4]]


def test_polyps_all_unknown(tmp_path: Path) -> None:
    made = by_hand(tmp_path / "mine.parquet", **COLUMNS, polyp=[None] * 4, fps=[None] * 4)
    assert Embeddings.load(made).polyps == ()


# None leaves a column out.
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no video": ({"video": None}, "video.*; the file has .*start_frame"),
    "a video without a name": ({"video": ["x", "y", "", "x"]}, "row 2: video must be a non-empty text, found none"),
    "a name that is none": ({"video": ["x", "y", "nan", "x"]}, "row 2: video 'nan' is a missing value; name the video"),
    "a polyp that is none": ({"polyp": ["a", "None", "b", "b"]}, "row 1: polyp 'None' is a missing value; write \"\""),
    "lengths that differ": (
        {"frame_count": [100, 60, 99, 100]},
        "row 2: frame_count must be the same in all rows of video x",
    ),
    "rates that differ": ({"fps": [25.0, 25.0, 30.0, 25.0]}, "row 2: fps must be the same in all rows of video x"),
    "no rate": ({"fps": [-1.0] * 4}, "video x: fps must be a positive number or None, found -1.0"),
    "one polyp in two videos": (
        {"polyp": ["a", "a", "b", "b"]},
        "row 1: polyp 'a' is in videos x and y; give each polyp its own name, such as x_a",
    ),
    "beyond the end": (
        {"frame_count": [60, 60, 60, 60]},
        "row 3: stop_frame 61 is beyond video x",
    ),
    "backwards": ({"stop_frame": [30, 5, 50, 61]}, "row 1: stop_frame must be after start_frame"),
    "below 0": ({"start_frame": [0, -5, 20, 60]}, "row 1: start_frame must be at least 0, found -5"),
    "a part of a frame": ({"start_frame": [0, 5.5, 20, 60]}, "row 1: start_frame must be a whole number, found 5.5"),
    "no boxes": ({"box_count": [1, 0, 1, 1]}, "row 1: box_count must be at least 1, found 0"),
    "not a number": (
        {"vector": [[1.0, 2.0], [3.0, np.nan], [5.0, 6.0], [7.0, 8.0]]},
        "row 1: vectors must be finite, found nan",
    ),
    "too large": ({"vector": [[1.0, 2.0], [3.0, 1e200], [5.0, 6.0], [7.0, 8.0]]}, "row 1: vectors must be finite"),
    "of no length": ({"vector": [np.empty(0)] * 4}, r"shape \[n, d\] with d at least 1, found \[4, 0\]"),
    "numbers as names": ({"video": pa.array([1, 2, 1, 1]).to_numpy()}, "video must be text, found"),
    "frames as text": ({"start_frame": ["0", "5", "20", "60"]}, "start_frame must (be|hold) .*numbers, found"),
    "rates as text": ({"fps": ["25"] * 4}, "fps must (be|hold) numbers, found"),
}


@FORMATS
@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_by_hand_is_told_in_one_line(case: str, suffix: str, tmp_path: Path) -> None:
    changed, message = BAD[case]
    if suffix == ".npz" and case == "numbers as names":
        numbers: dict[str, Any] = dict.fromkeys(COLUMNS, np.arange(2))
        np.savez(tmp_path / "mine.npz", vectors=np.ones((2, 2)), **numbers)
    else:
        by_hand(tmp_path / f"mine{suffix}", **{**COLUMNS, **changed})
    with pytest.raises(FileError, match=message) as caught:
        Embeddings.load(tmp_path / f"mine{suffix}")
    assert str(caught.value).startswith(str(tmp_path / f"mine{suffix}"))
    assert "\n" not in str(caught.value)


PARQUET: dict[str, tuple[dict[str, Any], str]] = {
    "ragged": (
        {"vector": [[1.0, 2.0], [3.0], [5.0, 6.0], [7.0, 8.0]]},
        "row 1: vector has 1 numbers, others have 2",
    ),
    "no vector in a row": ({"vector": [[1.0, 2.0], None, [5.0, 6.0], [7.0, 8.0]]}, "row 1: vector has 0 numbers"),
    "a hole": (
        {"vector": [[1.0, 2.0], [3.0, None], [5.0, 6.0], [7.0, 8.0]]},
        "row 1: vector has a number without a value",
    ),
    "no lists": ({"vector": [1.0, 2.0, 3.0, 4.0]}, "vector must be a list of numbers, found double"),
    "lists of text": ({"vector": [["a"]] * 4}, "vector must be a list of numbers, found list<"),
    "called as in npz": (
        {"vector": None, "vectors": COLUMNS["vector"]},
        "column vector, found 0; the file has .*vectors",
    ),
    "no frame in a row": ({"start_frame": [0, None, 20, 60]}, "row 1: start_frame has no value"),
    "no name in a row": ({"video": ["x", None, "x", "x"]}, "row 1: video must be a non-empty text, found none"),
    "all names missing": ({"video": pa.nulls(4)}, "video must be text, found null"),
    "polyps as numbers": ({"polyp": [1, 2, 3, 4]}, "polyp must be text, found int64"),
    "structs": ({"video": [{"id": "x"}] * 4}, "video must be text, found struct"),
}


@pytest.mark.parametrize("case", PARQUET)
def test_what_is_wrong_in_parquet_alone(case: str, tmp_path: Path) -> None:
    changed, message = PARQUET[case]
    with pytest.raises(FileError, match=message):
        Embeddings.load(by_hand(tmp_path / "mine.parquet", **{**COLUMNS, **changed}))


def test_columns_of_the_same_name(tmp_path: Path) -> None:
    table = pa.table(COLUMNS)
    pq.write_table(table.append_column("video", table["video"]), tmp_path / "mine.parquet")
    with pytest.raises(FileError, match="one column video, found 2"):
        Embeddings.load(tmp_path / "mine.parquet")


@FORMATS
def test_a_file_without_rows(suffix: str, tmp_path: Path) -> None:
    kinds = {"video": pa.string(), "vector": pa.list_(pa.float32())}
    if suffix == ".parquet":
        table = pa.table({name: pa.array([], kinds.get(name, pa.int32())) for name in COLUMNS})
        pq.write_table(table, tmp_path / "mine.parquet")
    else:
        none = np.empty(0, np.int32)
        arrays: dict[str, Any] = dict.fromkeys(("start_frame", "stop_frame", "frame_count"), none)
        np.savez(tmp_path / "mine.npz", video=np.empty(0, "U1"), vectors=np.empty((0, 3)), **arrays)
    with pytest.raises(FileError, match="the file has no rows; there must be one for each tracklet"):
        Embeddings.load(tmp_path / f"mine{suffix}")


def npy(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asanyarray(array), **options)
    return buffer.getvalue()


def header(shape: tuple[int, ...], descr: str = "<f4") -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": descr, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


HUGE = 10**12
ARRAYS: dict[str, tuple[str, bytes, str]] = {
    "declared huge": (
        "vectors",
        header((HUGE, 128)),
        "vectors has 1,000,000,000,000 rows, at most 16,777,216 are read",
    ),
    "declared beyond 64 bits": ("vectors", header((10**30, 2)), "vectors has 1,0.* rows, at most"),
    "declared below 0": ("vectors", header((-1, -1)) + b"abcd", "vectors cannot be read"),
    "texts of no length": ("video", header((HUGE,), "<U0"), "video has 1,000,000,000,000 rows"),
    "objects": ("polyp", npy(np.array(["a", None], object), allow_pickle=True), "array polyp cannot be read: Object"),
    "ragged": (
        "vectors",
        npy(np.array([[1], [1, 2]], object), allow_pickle=True),
        "array vectors cannot be read: Object",
    ),
    "bytes as text": ("video", npy(np.array([b"x"] * 4)), "video must be text, found .S1 .*dtype=str"),
    "texts that are none": (
        "video",
        header((4,), "<U1") + b"\xff" * 16,
        "video holds numbers that stand for no character",
    ),
    "another length": (
        "video",
        npy(np.array(["x"] * 3)),
        r"video must have the shape \[4\], as vectors have rows, foun",
    ),
    "one vector": ("vectors", npy(np.ones(4)), r"vectors must have the shape \[n, d\]"),
    "a single number": ("vectors", npy(np.float32(1)), r"video must have the shape \[\]"),
    "complex": ("vectors", npy(np.ones((4, 2), complex)), "vectors must hold numbers, found complex128"),
    "records": ("vectors", npy(np.zeros((4, 1), [("a", "f4")])), "vectors must hold numbers, found"),
    "no array": ("vectors", b"hello", "vectors cannot be read: .*magic string"),
    "nothing": ("vectors", b"", "vectors cannot be read"),
    "another version": (
        "vectors",
        b"\x93NUMPY\x09\x00" + b" " * 80,
        r"vectors cannot be read: .*\(9, 0\)",
    ),
    "a long header": ("vectors", header((1,) * 20_000), "vectors cannot be read: Header info length"),
    "pairs of parts": ("together", npy(np.ones((1, 2))), r"together must be whole numbers \[m, 2\], found float64"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_what_is_wrong_in_npz_alone(case: str, tmp_path: Path) -> None:
    name, content, message = ARRAYS[case]
    arrays = {k: npy(_as_array(k, v)) for k, v in COLUMNS.items() if k != "vector"}
    arrays["vectors"] = npy(np.array(COLUMNS["vector"]))
    with zipfile.ZipFile(tmp_path / "mine.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, data in {**arrays, name: content}.items():
            archive.writestr(f"{entry}.npy", data)
    with pytest.raises(FileError, match=message) as caught:
        Embeddings.load(tmp_path / "mine.npz")
    assert "\n" not in str(caught.value)


def peak_memory() -> int:
    """Bytes of the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


UNFOLDING = r"it unpacks to [\d,]+ bytes or more; from a file of its size, at most [\d,]+ are read"


def test_a_small_npz_that_unfolds_is_not_unfolded(tmp_path: Path) -> None:
    path, others = tmp_path / "mine.npz", {name: npy(np.zeros(9)) for name in COLUMNS}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in others.items():
            archive.writestr(f"{name}.npy", data)
        with archive.open("vectors.npy", "w", force_zip64=True) as member:
            member.write(header((1 << 20, 128)))
            for _ in range(512):
                member.write(bytes(1 << 20))
    assert path.stat().st_size < 1 << 22
    before = peak_memory()
    with pytest.raises(FileError, match=UNFOLDING):
        Embeddings.load(path)
    assert peak_memory() - before < 1 << 26
    # Many arrays, none of them too large alone.
    lines = {name: np.zeros((1 << 18, 26), np.float32) for name in ("vectors", "frame_vectors", "frame_number")}
    np.savez_compressed(path, **{name: np.zeros(9) for name in COLUMNS}, **lines)  # type: ignore[arg-type]
    with pytest.raises(FileError, match=UNFOLDING):
        Embeddings.load(path)


def test_a_small_table_that_unfolds_is_not_unfolded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = np.zeros(1 << 23, np.float32)
    made = by_hand(tmp_path / "mine.parquet", **{**COLUMNS, "vector": [zeros] * 4})
    assert made.stat().st_size < 1 << 18
    del zeros
    before = peak_memory()
    with pytest.raises(FileError, match=UNFOLDING):
        Embeddings.load(made)
    assert peak_memory() - before < 1 << 26
    monkeypatch.setattr(formats, "MOST_ROWS", 3)
    with pytest.raises(FileError, match="the file has 4 rows, at most 3 are read"):
        Embeddings.load(made)


def test_a_column_name_that_is_no_text_is_an_error_of_the_file(tmp_path: Path) -> None:
    made = by_hand(tmp_path / "mine.parquet", **COLUMNS)
    content = made.read_bytes()
    assert b"frame_count" in content
    made.write_bytes(content.replace(b"frame_count", b"fra\xff\xfe_count"))
    with pytest.raises(FileError, match=r"mine\.parquet: .*damaged"):
        Embeddings.load(made)


def test_a_name_of_two_lines_is_told_in_one(tmp_path: Path) -> None:
    made = by_hand(tmp_path / "mine.parquet", **{**COLUMNS, "video": ["a\nb"] * 4, "frame_count": [2] * 4})
    with pytest.raises(FileError, match=r"row 0: .*video a b") as caught:
        Embeddings.load(made)
    assert "\n" not in str(caught.value)
