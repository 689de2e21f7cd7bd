"""The columns of an embeddings file, read from and written to Parquet or `.npz`; nothing is ever unpickled."""

import io
import math
import tokenize
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.lib import format as npy
from numpy.typing import NDArray

from polypcount.corpus.columns import refuse_rows
from polypcount.corpus.embeddings.embeddings import Embeddings
from polypcount.corpus.embeddings.frames import FrameVectors
from polypcount.errors import DataError
from polypcount.storage.parquet import BROKEN_PARQUET, parquet_schema, read_columns, refuse_unfolding

REQUIRED = ("video", "start_frame", "stop_frame", "frame_count")
OPTIONAL = ("polyp", "box_count", "fps")
DESCRIPTION = "polypcount"
MOST_ROWS = 1 << 24
LARGEST_DESCRIPTION = 1 << 25
_TEXTS = ("video", "polyp")
_FRAME_LISTS = ("frame_numbers", "frame_vectors")
_FRAME_ARRAYS = ("frame_tracklet", "frame_number", "frame_vectors")
_LARGEST_HEADER = 1 << 17
_LAST_CHARACTER = 0x10FFFF
_BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError)
_BROKEN_ARRAY = (ValueError, TypeError, SyntaxError, OverflowError, MemoryError, tokenize.TokenError, *_BROKEN_ZIP)


@dataclass(frozen=True)
class TextCodes:
    """A column of texts: row k has `names[codes[k]]`.

    Attributes:
        codes: int64[n]; -1 if the row has no text.
        names: Each once, in the order in which the rows first have them.
    """

    codes: NDArray[np.int64]
    names: tuple[str, ...]

    @classmethod
    def encoded(cls, names: list[str], codes: NDArray[np.int64]) -> "TextCodes":
        """From names in any order, some perhaps used by no row; an empty name counts as none."""
        present = np.array([*(bool(name) for name in names), False])[codes]
        used, first, which = np.unique(codes[present], return_index=True, return_inverse=True)
        order = np.argsort(first)
        ordered = np.full(len(codes), -1, np.int64)
        ordered[present] = np.argsort(order)[which]
        return cls(ordered, tuple(names[code] for code in used[order]))


@dataclass(frozen=True)
class FileColumns:
    """The columns of a file, one row per tracklet, not yet checked. None stands for what the file does not have.

    Attributes:
        video: Name of the video.
        polyp: Name of the polyp.
        start_frame: Numbers[n].
        stop_frame: Numbers[n].
        frame_count: Numbers[n], of the video.
        box_count: Numbers[n].
        fps: Float[n], of the video; NaN if it is unknown.
        vectors: Numbers[n, d].
        together: Numbers[m, 2].
        frames: By row of the file.
        description: JSON that polypcount wrote.
    """

    video: TextCodes
    polyp: TextCodes | None
    start_frame: NDArray[Any]
    stop_frame: NDArray[Any]
    frame_count: NDArray[Any]
    box_count: NDArray[Any] | None
    fps: NDArray[Any] | None
    vectors: NDArray[Any]
    together: NDArray[Any] | None
    frames: FrameVectors | None
    description: str | None


def write_parquet(embeddings: Embeddings, description: str, path: Path) -> None:
    """Write a row per tracklet, and the description in the metadata of the schema."""
    videos = [embeddings.videos[row] for row in embeddings.video]
    length, size = embeddings.vectors.shape
    kind = pa.list_(pa.field("element", pa.float32(), nullable=False), size or -1)  # -1: a list of any length
    vectors = pa.array(embeddings.vectors.ravel())
    columns = {
        "video": pa.array([video.id for video in videos], pa.string()),
        "start_frame": pa.array(embeddings.start_frame),
        "stop_frame": pa.array(embeddings.stop_frame),
        "box_count": pa.array(embeddings.box_count),
        "polyp": pa.array([embeddings.polyps[row].id if row >= 0 else None for row in embeddings.polyp], pa.string()),
        "frame_count": pa.array([video.frame_count for video in videos], pa.int32()),
        "fps": pa.array([video.fps for video in videos], pa.float64()),
        "vector": pa.FixedSizeListArray.from_arrays(vectors, type=kind) if length else pa.array([], kind),
    }
    if (frames := embeddings.frames) is not None:
        offsets = np.searchsorted(frames.tracklet, np.arange(length + 1))
        for name, values in zip(_FRAME_LISTS, (frames.frame, frames.vectors), strict=True):
            starts = pa.array(offsets * (values.size // max(len(values), 1)), pa.int32())
            columns[name] = pa.ListArray.from_arrays(starts, pa.array(values.ravel()))
    nullable = ("polyp", "fps", *_FRAME_LISTS)
    fields = [pa.field(name, column.type, nullable=name in nullable) for name, column in columns.items()]
    schema = pa.schema(fields, metadata={DESCRIPTION: description.encode()})
    pq.write_table(pa.table(columns, schema=schema), path, compression="zstd", use_dictionary=list(_TEXTS))


def write_npz(embeddings: Embeddings, description: str, path: Path) -> None:
    """Write an array per column, and the description as an array of one text."""
    videos = [embeddings.videos[row] for row in embeddings.video]
    columns = {
        "video": _text_array([video.id for video in videos]),
        "start_frame": embeddings.start_frame,
        "stop_frame": embeddings.stop_frame,
        "box_count": embeddings.box_count,
        "polyp": _text_array([embeddings.polyps[row].id if row >= 0 else "" for row in embeddings.polyp]),
        "frame_count": np.array([video.frame_count for video in videos], np.int32),
        "fps": np.array([np.nan if video.fps is None else video.fps for video in videos], np.float64),
        "vectors": embeddings.vectors,
        "together": embeddings.together,
        DESCRIPTION: np.array(description),
    }
    if embeddings.frames is not None:
        columns |= zip(_FRAME_ARRAYS, embeddings.frames.columns().values(), strict=True)
    with path.open("wb") as file:
        np.savez_compressed(file, **columns)  # type: ignore[arg-type]


def _text_array(texts: list[str]) -> NDArray[np.str_]:
    array = np.array(texts, dtype=np.str_)
    for text in set(texts) - set(array.tolist()):
        raise DataError(f"the id {text!r} ends with a null character, which .npz cannot keep; save as .parquet")
    return array


def read_parquet(path: Path) -> FileColumns:
    """Read the columns, written by any program; raises `DataError` if they do not fit."""
    try:
        schema = parquet_schema(path)
        names = [name for name in (*REQUIRED, *OPTIONAL, "vector", *_FRAME_LISTS) if _fits(schema, name)]
        texts = [name for name in _TEXTS if name in names and not pa.types.is_null(schema.field(name).type)]
        table = read_columns(path, names, texts, MOST_ROWS)
        description = (schema.metadata or {}).get(DESCRIPTION.encode())
        return _columns(table, None if description is None else description.decode())
    except BROKEN_PARQUET as problem:
        raise DataError(f"the file is damaged or cut short: {problem or type(problem).__name__}") from problem


def _fits(schema: pa.Schema, name: str) -> bool:
    """Whether there is a column of this name; it must be of the right kind."""
    count = schema.names.count(name)
    if count > 1 or (count == 0 and name in (*REQUIRED, "vector")):
        raise DataError(f"there must be one column {name}, found {count}; the file has {', '.join(schema.names[:12])}")
    if count == 0:
        return False
    kind = schema.field(name).type
    inner = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    is_list = any(is_kind(inner) for is_kind in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list))
    if pa.types.is_dictionary(inner) or is_list:
        inner = inner.value_type
    is_number = pa.types.is_integer(inner) or pa.types.is_floating(inner)
    if name in _TEXTS:
        fits, expected = pa.types.is_string(inner) or pa.types.is_large_string(inner), "text"
    elif name in ("vector", *_FRAME_LISTS):
        fits, expected = is_list and is_number, "a list of numbers"
    else:
        fits, expected = is_number and not is_list, "numbers"
    if not fits and not (name in OPTIONAL and pa.types.is_null(kind)):
        raise DataError(f"column {name} must be {expected}, found {kind}; convert it before writing")
    return True


def _columns(table: pa.Table, description: str | None) -> FileColumns:
    def numbers(name: str) -> NDArray[Any]:
        refuse_rows("embeddings", table[name].is_null().to_numpy(), lambda _: f"{name} has no value")
        values: NDArray[Any] = table[name].to_numpy()
        return values

    columns = set(table.column_names)
    return FileColumns(
        video=_table_texts(table["video"]),
        polyp=_table_texts(table["polyp"]) if "polyp" in columns else None,
        start_frame=numbers("start_frame"),
        stop_frame=numbers("stop_frame"),
        frame_count=numbers("frame_count"),
        box_count=numbers("box_count") if "box_count" in columns else None,
        fps=table["fps"].cast(pa.float64()).to_numpy() if "fps" in columns else None,
        vectors=_table_vectors(table),
        together=None,
        frames=_table_frames(table) if columns.issuperset(_FRAME_LISTS) else None,
        description=description,
    )


def _table_texts(column: pa.ChunkedArray) -> TextCodes:
    code_of: dict[str, int] = {}
    codes = [np.empty(0, np.int64)]
    for chunk in column.cast(pa.string()).chunks if pa.types.is_null(column.type) else column.chunks:
        encoded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        local = [code_of.setdefault(text or "", len(code_of)) for text in encoded.dictionary.to_pylist()]
        indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        codes.append(np.append(np.array(local, np.int64), -1)[indices])
    return TextCodes.encoded(list(code_of), np.concatenate(codes))


def _table_lists(table: pa.Table, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """How many numbers each row has, int64[n], and the numbers of all rows."""
    lists = table[name].combine_chunks()
    if isinstance(lists, pa.ExtensionArray):
        lists = lists.storage
    values = lists.flatten()
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    holes = np.bincount(owners, values.is_null().to_numpy(zero_copy_only=False), len(lengths)) > 0
    refuse_rows("embeddings", holes, lambda _: f"{name} has a number without a value")
    return lengths, values.to_numpy(zero_copy_only=False)


def _table_vectors(table: pa.Table) -> NDArray[Any]:
    lengths, values = _table_lists(table, "vector")
    size = lengths.max() if len(lengths) else getattr(table["vector"].type, "list_size", 0)
    refuse_rows("embeddings", lengths != size, lambda row: f"vector has {lengths[row]} numbers, others have {size}")
    return values.reshape(len(lengths), size)


def _table_frames(table: pa.Table) -> FrameVectors:
    (counts, frame), (lengths, values) = (_table_lists(table, name) for name in _FRAME_LISTS)
    size = values.size // max(frame.size, 1)
    bad = lengths != counts * size
    refuse_rows("embeddings", bad, lambda row: f"frame_vectors has {lengths[row]} numbers for {counts[row]} frames")
    return FrameVectors(np.repeat(np.arange(len(counts)), counts), frame, values.reshape(frame.size, size))


def read_npz(path: Path) -> FileColumns:
    """Read the arrays, written by any program; raises `DataError` if they do not fit."""
    names = {*REQUIRED, *OPTIONAL, "vectors", "together", DESCRIPTION, *_FRAME_ARRAYS}
    try:
        with zipfile.ZipFile(path) as archive:
            entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
            for name in (*REQUIRED, "vectors"):
                if name not in entries:
                    raise DataError(f"array {name} is missing; the file has {', '.join([*entries][:12]) or 'none'}")
            entries = {name: entry for name, entry in entries.items() if name in names}
            refuse_unfolding(sum(_declared_bytes(archive, entry, name) for name, entry in entries.items()), path)
            arrays = {name: _read_array(archive, entry, name) for name, entry in entries.items()}
    except _BROKEN_ZIP as problem:
        raise DataError(f"the file is damaged or cut short: {problem or type(problem).__name__}") from problem
    rows = arrays["vectors"].shape[:1]
    for name, array in arrays.items():
        if name in (*REQUIRED, *OPTIONAL) and array.shape != rows:
            raise DataError(f"array {name} must have the shape {list(rows)}, as vectors have rows, {_found(array)}")
    if "fps" in arrays and arrays["fps"].dtype.kind not in "iuf":
        raise DataError(f"array fps must hold numbers, {_found(arrays['fps'])}")
    return FileColumns(
        video=_array_texts("video", arrays["video"]),
        polyp=_array_texts("polyp", arrays["polyp"]) if "polyp" in arrays else None,
        start_frame=arrays["start_frame"],
        stop_frame=arrays["stop_frame"],
        frame_count=arrays["frame_count"],
        box_count=arrays.get("box_count"),
        fps=arrays["fps"].astype(np.float64) if "fps" in arrays else None,
        vectors=arrays["vectors"],
        together=arrays.get("together"),
        frames=FrameVectors(*(arrays[name] for name in _FRAME_ARRAYS)) if arrays.keys() >= {*_FRAME_ARRAYS} else None,
        description=_array_description(arrays[DESCRIPTION]) if DESCRIPTION in arrays else None,
    )


def _declared_bytes(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> int:
    """The bytes of an array by its header and by the archive, whichever says more; nothing else of it is unpacked."""
    try:
        with archive.open(entry) as file:
            begin = io.BytesIO(file.read(_LARGEST_HEADER))
        version = npy.read_magic(begin)
        if version[0] not in (1, 2, 3):
            raise ValueError(f"its format has the version {version}")
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read_header(begin)
    except _BROKEN_ARRAY as problem:
        raise DataError(f"array {name} cannot be read: {problem or type(problem).__name__}") from problem
    if shape and shape[0] > MOST_ROWS:
        raise DataError(f"array {name} has {shape[0]:,} rows, at most {MOST_ROWS:,} are read")
    return max(math.prod(shape) * dtype.itemsize, entry.file_size)


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> NDArray[Any]:
    """Read one array; one that is not what its header says is a `DataError`."""
    try:
        with archive.open(entry) as file:
            return npy.read_array(file, allow_pickle=False)
    except _BROKEN_ARRAY as problem:
        raise DataError(f"array {name} cannot be read: {problem or type(problem).__name__}") from problem


def _array_texts(name: str, array: NDArray[Any]) -> TextCodes:
    _refuse_no_text(name, array)
    names, codes = np.unique(array, return_inverse=True)
    return TextCodes.encoded(names.tolist(), codes.astype(np.int64))


def _array_description(array: NDArray[Any]) -> str:
    _refuse_no_text(DESCRIPTION, array)
    if array.shape or array.dtype.itemsize > 4 * LARGEST_DESCRIPTION:
        raise DataError(f"array {DESCRIPTION} must be one text of at most {LARGEST_DESCRIPTION:,}, {_found(array)}")
    return str(array)


def _refuse_no_text(name: str, array: NDArray[Any]) -> None:
    if array.dtype.kind != "U":
        raise DataError(f"array {name} must be text, {_found(array)}; make it with dtype=str")
    # NumPy makes Python texts from any numbers. Numbers that are no character would crash Python later.
    numbers = np.frombuffer(array.tobytes(), np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    if (numbers > _LAST_CHARACTER).any():
        raise DataError(f"array {name} holds numbers that stand for no character: the file is damaged")


def _found(array: NDArray[Any]) -> str:
    return f"found {array.dtype} {list(array.shape)}"
