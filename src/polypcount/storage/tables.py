"""CSV tables: written for spreadsheets, and read from anywhere."""

import csv
import io
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from polypcount.errors import FileError
from polypcount.storage.files import read_text

_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-](\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A CSV file with a header; a value that is undefined (None or NaN) is an empty cell."""
    lines: list[str] = []
    # With "\n" as the end of a line, a carriage return within a cell would not be quoted.
    writer = csv.writer(SimpleNamespace(write=lambda line: lines.append(line[:-2])), lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows([csv_cell(value) for value in row] for row in rows)
    return "\n".join([*lines, ""])


def csv_cell(value: Any) -> str:
    """A cell that no spreadsheet runs as a formula: text from other people's files may begin like one.

    Such text gets a quote in front. So does text that already has one in front of a formula, so that `csv_value` gives
    every text back.
    """
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return ""
    text = str(value)
    return f"'{text}" if isinstance(value, str) and _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def csv_value(cell: str) -> str:
    """The text that `csv_cell` has made a cell of."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def separator_of(text: str) -> str:
    """What separates the columns of a CSV text: a comma, or a semicolon or tab if its header has only these."""
    header = text.partition("\n")[0]
    return next((mark for mark in (",", ";", "\t") if mark in header), ",")


def read_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row of a CSV file, the header included; raises `FileError`."""
    return csv_rows(read_text(path), path)


def csv_rows(text: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row of a CSV text, the header included. path: Where it comes from.

    Raises:
        FileError: It is no CSV.
    """
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator_of(text), strict=True)
    try:
        for cells in reader:
            yield reader.line_num, cells
    except csv.Error as problem:
        raise FileError(f"{path}:{reader.line_num}: not readable as CSV: {problem}") from None


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
    rows = [row for row in read_rows(path) if row[1]]
    header = [name.strip() for name in rows[0][1]] if rows else []
    if missing := [name for name in required if name not in header]:
        raise FileError(f"{path}:1: the header lacks {', '.join(missing)}; found {', '.join(header) or 'nothing'}")
    return [
        (
            line,
            dict(
                itertools.zip_longest(header, (csv_value(cell.strip()) for cell in cells[: len(header)]), fillvalue="")
            ),
        )
        for line, cells in rows[1:]
    ]
