"""CSV tables: written for spreadsheets, and read from anywhere."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polypcount.errors import FileError
from polypcount.storage.files import read_text


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A CSV file with a header; a value that is undefined (None or NaN) is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([csv_cell(value) for value in row] for row in rows)
    return out.getvalue()


def csv_cell(value: Any) -> str:
    """A cell that no spreadsheet runs as a formula: text from other people's files may begin like one."""
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return ""
    text = str(value)
    if not isinstance(value, str) or text[:1] not in ("=", "+", "-", "@", "\t", "\r", "\n"):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def read_table(path: Path, required: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """Read a CSV file with a header.

    Args:
        path: The file.
        required: Columns that the header must name.

    Returns:
        Line number and values by column of each row. Space around a value is removed; a missing value is empty.

    Raises:
        FileError: The file cannot be read, is no CSV, or lacks a column.
    """
    try:
        reader = csv.DictReader(read_text(path).splitlines(), strict=True, restval="")
        header = [name.strip() for name in reader.fieldnames or []]
        reader.fieldnames = header
        rows = [(reader.line_num, {k: v.strip() for k, v in row.items() if k is not None}) for row in reader]
    except csv.Error as problem:
        raise FileError(f"{path}: not readable as CSV: {problem}") from None
    if missing := [name for name in required if name not in header]:
        raise FileError(f"{path}:1: the header lacks {', '.join(missing)}; found {', '.join(header) or 'nothing'}")
    return rows
