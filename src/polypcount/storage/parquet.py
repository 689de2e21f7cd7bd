"""Parquet tables from anywhere: a small file can unpack to a huge table, so sizes are checked before it is read."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from polypcount.errors import DataError
from polypcount.storage.parquet_footer import values_of_chunks

LARGEST_BYTES = 1 << 32
_SURELY_READ, _TIMES_PACKED = 1 << 26, 100
_ROWS_AT_ONCE = 1 << 12
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12, "BYTE_ARRAY": 4}
BROKEN_PARQUET = (OSError, pa.ArrowException, UnicodeError, MemoryError)


def most_bytes(path: Path) -> int:
    """How many bytes a packed file may unpack to: 64 MB and 100 times its size, at most 4 GB.

    Real vectors and boxes shrink to a half or a tenth. What shrinks more than a hundredfold is empty.
    """
    return min(_SURELY_READ + _TIMES_PACKED * path.stat().st_size, LARGEST_BYTES)


def refuse_unfolding(count: int, path: Path) -> None:
    """Raise `DataError` if so many bytes are more than a file may unpack to."""
    if count > (most := most_bytes(path)):
        raise DataError(f"it unpacks to {count:,} bytes or more; from a file of its size, at most {most:,} are read")


def parquet_schema(path: Path) -> pa.Schema:
    """The columns of a file; raises one of `BROKEN_PARQUET` if it is damaged."""
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        schema.names  # noqa: B018  # raises UnicodeError here, not somewhere later
        return schema


def read_columns(path: Path, names: Sequence[str], texts: Sequence[str], most_rows: int | None = None) -> pa.Table:
    """Read columns in pieces.

    Args:
        path: The file.
        names: The columns.
        texts: Those of them that are read as codes: a long text that a small file repeats a million times is kept once.
        most_rows: Most rows; None for no limit but that of the bytes.

    Raises:
        DataError: There are too many rows, or the columns take too many bytes.
    """
    with pq.ParquetFile(path, read_dictionary=list(texts)) as file:
        rows = file.metadata.num_rows
        if most_rows is not None and rows > most_rows:
            raise DataError(f"the file has {rows:,} rows, at most {most_rows:,} are read")
        refuse_unfolding(_claimed_bytes(file, names, values_of_chunks(path)), path)
        pieces, size = [], 0
        for piece in file.iter_batches(_ROWS_AT_ONCE, columns=list(names)):
            pieces.append(piece)
            size += piece.nbytes
            refuse_unfolding(size, path)
        schema = pieces[0].schema if pieces else pa.schema([file.schema_arrow.field(name) for name in names])
    table = pa.Table.from_batches(pieces, schema)
    table.validate(full=True)  # a damaged page may give codes beyond its dictionary, or texts that are not UTF-8
    return table


def without_codes(table: pa.Table, path: Path) -> pa.Table:
    """The table with texts in place of codes; `DataError` if they take too many bytes."""
    for number, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            chunks = table.column(number).chunks
            lengths = (pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0 for chunk in chunks)
            refuse_unfolding(sum(lengths), path)
            decoded = table.column(number).cast(field.type.value_type)
            table = table.set_column(number, field.with_type(field.type.value_type), decoded)
    return table


def _claimed_bytes(file: pq.ParquetFile, names: Sequence[str], values: list[list[int]]) -> int:
    """At least how many bytes the columns take, by the number of values of each column in each row group.

    The metadata also gives sizes, which are not used: if they are damaged, pyarrow ends the whole process.
    """
    claimed = 0
    for number in range(file.metadata.num_columns):
        leaf = file.schema.column(number)
        if leaf.path.split(".")[0] in names:
            width = _WIDTHS.get(leaf.physical_type, max(leaf.length, 1))
            claimed += width * sum(group[number] for group in values if number < len(group))
    return claimed
