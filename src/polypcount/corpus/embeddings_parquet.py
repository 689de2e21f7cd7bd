"""Embeddings as one Parquet file: a row per tracklet, and a description in the metadata of the schema."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from polypcount.corpus.columns import refuse_rows
from polypcount.corpus.embeddings import Embeddings
from polypcount.corpus.embeddings_columns import (
    LARGEST_BYTES,
    LARGEST_DESCRIPTION,
    MOST_ROWS,
    OPTIONAL,
    REQUIRED,
    FileColumns,
    Texts,
)
from polypcount.errors import DataError

METADATA_KEY = b"polypcount"
_TEXTS = ("video", "polyp")
_TABLE = "embeddings"
_ROWS_AT_ONCE = 1 << 14


def write_parquet(embeddings: Embeddings, description: str, path: Path) -> None:
    """Write the file; not yet whole until this returns."""
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
    fields = [pa.field(name, column.type, nullable=name in ("polyp", "fps")) for name, column in columns.items()]
    schema = pa.schema(fields, metadata={METADATA_KEY: description.encode()})
    pq.write_table(pa.table(columns, schema=schema), path, compression="zstd", use_dictionary=list(_TEXTS))


def read_parquet(path: Path) -> FileColumns:
    """Read the columns, whoever wrote them; anything unfit is a `DataError`."""
    try:
        with pq.ParquetFile(path) as file:
            found = _refuse_unfit(file)
        # Texts as numbers of a dictionary: a long text that a small file repeats a million times is kept once.
        texts = [name for name in _TEXTS if name in found.names and not pa.types.is_null(found.field(name).type)]
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            table = _read_bounded(file, [name for name in (*REQUIRED, *OPTIONAL, "vector") if name in found.names])
        return _columns(table, _description(found))
    except (OSError, pa.ArrowException, UnicodeError, MemoryError) as problem:
        raise DataError(f"the file is damaged or cut short: {problem or type(problem).__name__}") from problem


def _refuse_unfit(file: pq.ParquetFile) -> pa.Schema:
    """The schema, after seeing that the columns are there, of the right kinds, with not too many rows."""
    schema = file.schema_arrow
    for name in (*REQUIRED, *OPTIONAL, "vector"):
        if schema.names.count(name) > 1:
            raise DataError(f"there are {schema.names.count(name)} columns {name}, expected one")
        if name in schema.names:
            _refuse_kind(name, schema.field(name).type)
        elif name not in OPTIONAL:
            raise DataError(f"column {name} is missing; the file has {', '.join(schema.names[:12]) or 'no columns'}")
    if file.metadata.num_rows > MOST_ROWS:
        raise DataError(f"the file has {file.metadata.num_rows:,} rows, at most {MOST_ROWS:,} are read")
    return schema


def _read_bounded(file: pq.ParquetFile, names: list[str]) -> pa.Table:
    """The columns, read in pieces, so that a small file which unfolds to a huge table is noticed on the way.

    What the metadata says of a column's size is not asked: where that is damaged, pyarrow ends the whole process.
    """
    pieces, size = [], 0
    for piece in file.iter_batches(_ROWS_AT_ONCE, columns=names):
        pieces.append(piece)
        size += piece.nbytes
        if size > LARGEST_BYTES:
            raise DataError(f"the columns take more than {LARGEST_BYTES:,} bytes, which is more than is read")
    schema = pieces[0].schema if pieces else pa.schema([file.schema_arrow.field(name) for name in names])
    table = pa.Table.from_batches(pieces, schema)
    table.validate(full=True)  # a damaged page may give numbers beyond its dictionary, or texts that are none
    return table


def _refuse_kind(name: str, kind: pa.DataType) -> None:
    if name in _TEXTS:
        inner = kind.value_type if pa.types.is_dictionary(kind) else kind
        is_text = pa.types.is_string(inner) or pa.types.is_large_string(inner) or pa.types.is_string_view(inner)
        fits, expected = is_text or (name == "polyp" and pa.types.is_null(kind)), "text"
    elif name == "vector":
        inner = _storage(kind)
        is_list = pa.types.is_list(inner) or pa.types.is_large_list(inner) or pa.types.is_fixed_size_list(inner)
        fits, expected = is_list and _is_number(inner.value_type), "a list of float"
    elif name == "fps":
        fits, expected = _is_number(kind) or pa.types.is_null(kind), "numbers"
    else:
        fits, expected = _is_number(kind), "whole numbers"
    if not fits:
        raise DataError(f"column {name} must be {expected}, found {kind}; convert it before writing")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _storage(kind: pa.DataType) -> pa.DataType:
    """What a tensor column is kept as; other columns are their own."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _description(schema: pa.Schema) -> str | None:
    found: bytes | None = (schema.metadata or {}).get(METADATA_KEY)
    if found is not None and len(found) > LARGEST_DESCRIPTION:
        raise DataError(f"the polypcount metadata has {len(found):,} bytes, at most {LARGEST_DESCRIPTION:,} are read")
    return None if found is None else found.decode()


def _columns(table: pa.Table, description: str | None) -> FileColumns:
    def numbers(name: str) -> NDArray[Any]:
        column = table[name]
        refuse_rows(_TABLE, column.is_null().to_numpy(), lambda _: f"{name} has no value")
        found: NDArray[Any] = column.to_numpy()
        return found

    has = set(table.column_names)
    return FileColumns(
        video=_texts(table["video"]),
        polyp=_texts(table["polyp"]) if "polyp" in has else None,
        start_frame=numbers("start_frame"),
        stop_frame=numbers("stop_frame"),
        frame_count=numbers("frame_count"),
        box_count=numbers("box_count") if "box_count" in has else None,
        fps=table["fps"].cast(pa.float64()).to_numpy() if "fps" in has else None,
        vectors=_vectors(table["vector"]),
        together=None,
        description=description,
    )


def _texts(column: pa.ChunkedArray) -> Texts:
    code_of: dict[str, int] = {}
    codes = [np.empty(0, np.int64)]
    for chunk in column.chunks:
        if pa.types.is_null(chunk.type):
            codes.append(np.full(len(chunk), -1))
            continue
        encoded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        local = [code_of.setdefault(text or "", len(code_of)) for text in encoded.dictionary.to_pylist()]
        indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        codes.append(np.append(np.array(local, np.int64), -1)[indices])
    return Texts.encoded(list(code_of), np.concatenate(codes))


def _vectors(column: pa.ChunkedArray) -> NDArray[Any]:
    """The vectors as numbers[n, d]."""
    refuse_rows(_TABLE, column.is_null().to_numpy(), lambda _: "vector has no value")
    lists = column.combine_chunks()
    if isinstance(lists, pa.ExtensionArray):
        lists = lists.storage
    if pa.types.is_fixed_size_list(lists.type):
        size = lists.type.list_size
    else:
        lengths = np.diff(lists.offsets.to_numpy())
        size = int(lengths[0]) if len(lengths) else 0
        refuse_rows(
            _TABLE, lengths != size, lambda row: f"vector has {lengths[row]} numbers, expected {size} as in row 0"
        )
    values = lists.flatten()
    holes = values.is_null().to_numpy(zero_copy_only=False).reshape(len(lists), size)
    refuse_rows(
        _TABLE, np.asarray(holes.any(axis=1)), lambda row: f"vector has no value at {int(np.argmax(holes[row]))}"
    )
    found: NDArray[Any] = values.to_numpy(zero_copy_only=False).reshape(len(lists), size)
    return found
