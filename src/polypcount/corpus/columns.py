"""Columns of a table: numpy arrays, converted once, checked row by row, and read-only from then on."""

from dataclasses import fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.errors import DataError

Int32Column = NDArray[np.int32]
Float32Column = NDArray[np.float32]
TextColumn = NDArray[np.object_]


class Columns:
    """Mixin for a frozen dataclass whose fields are columns of equal length, one row per thing."""

    def __len__(self) -> int:
        columns = self.columns()
        return len(next(iter(columns.values())))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        theirs = other.columns()
        return all(np.array_equal(column, theirs[name]) for name, column in self.columns().items())

    __hash__ = None  # type: ignore[assignment]

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns by name, in the order in which the class declares them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def take(self, rows: NDArray[Any]) -> Self:
        """The same table with only these rows (indices or a boolean mask), in this order."""
        return type(self)(**{name: column[rows] for name, column in self.columns().items()})

    def _set(self, **columns: NDArray[Any]) -> None:
        """Fill a frozen instance, from its `__init__`, after seeing that the columns are equally long."""
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise DataError(f"{type(self).__name__}: columns must be equally long, found rows: {told}")
        for name, column in columns.items():
            column.flags.writeable = False
            object.__setattr__(self, name, column)


def int_column(table: str, name: str, values: ArrayLike, *, minimum: int = 0, maximum: int = 2**31 - 1) -> Int32Column:
    """Whole numbers as int32[n] from `minimum` to `maximum`. Fractions, NaN and overflow are errors, not roundings."""
    given = _flat(table, name, values)
    if given.dtype == np.int32:
        column: Int32Column = given.copy()
    else:
        if given.size and given.dtype.kind not in "iufb":
            raise DataError(f"{table}: column {name} must hold whole numbers, found {given.dtype}")
        limits = np.iinfo(np.int32)
        with np.errstate(invalid="ignore"):
            whole = np.asarray(given == np.trunc(given), bool) if given.size else np.ones(0, bool)
            fits = np.asarray((given >= limits.min) & (given <= limits.max), bool) if given.size else whole
        refuse_rows(table, ~whole, lambda row: f"{name} must be a whole number, found {given[row]}")
        refuse_rows(table, ~fits, lambda row: f"{name} must be below 2^31 in size, found {given[row]}")
        column = given.astype(np.int32)
    refuse_rows(table, column < minimum, lambda row: f"{name} must be at least {minimum}, found {column[row]}")
    refuse_rows(table, column > maximum, lambda row: f"{name} must be at most {maximum}, found {column[row]}")
    return column


def float_column(table: str, name: str, values: ArrayLike) -> Float32Column:
    """Finite numbers as float32[n]."""
    return _finite(table, name, _flat(table, name, values))


def box_column(table: str, values: ArrayLike) -> Float32Column:
    """Boxes as float32[n, 4]: x1, y1, x2, y2 in pixels, finite, with x1 < x2 and y1 < y2."""
    given = _as_array(table, "xyxy", values)
    if given.size == 0:
        given = given.reshape(0, 4)
    if given.ndim != 2 or given.shape[1] != 4:
        raise DataError(f"{table}: xyxy must have the shape [n, 4], found {list(given.shape)}")
    column = _finite(table, "xyxy", given)
    for axis, low, high in (("x", column[:, 0], column[:, 2]), ("y", column[:, 1], column[:, 3])):
        if (flat := high <= low).any():
            row = int(np.argmax(flat))
            found = f"found {axis}1 {low[row]:g} and {axis}2 {high[row]:g}"
            refuse_rows(table, flat, lambda _: f"{axis}2 must be greater than {axis}1, {found}")  # noqa: B023
    return column


def text_column(table: str, name: str, values: ArrayLike) -> TextColumn:
    """Non-empty strings as object[n]."""
    column = np.array(_flat(table, name, values), dtype=object)
    bad = np.fromiter((not isinstance(value, str) or not value for value in column), bool, len(column))
    refuse_rows(table, bad, lambda row: f"{name} must be a non-empty text, found {column[row]!r}")
    return column


def refuse_rows(table: str, bad: NDArray[np.bool_], describe: Any) -> None:
    """Raise a `DataError` that names the first bad row and says how many more there are."""
    if bad.any():
        row = int(np.argmax(bad))
        others = int(bad.sum()) - 1
        more = f" (and {others} more {'row' if others == 1 else 'rows'} like it)" if others else ""
        raise DataError(f"{table} row {row}: {describe(row)}{more}")


def _flat(table: str, name: str, values: ArrayLike) -> NDArray[Any]:
    given = _as_array(table, name, values)
    if given.ndim != 1:
        raise DataError(f"{table}: column {name} must have one dimension, found the shape {list(given.shape)}")
    return given


def _as_array(table: str, name: str, values: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        raise DataError(f"{table}: the rows of {name} must be equally long") from None


def _finite(table: str, name: str, given: NDArray[Any]) -> Float32Column:
    if given.size and given.dtype.kind not in "iufb":
        raise DataError(f"{table}: column {name} must hold numbers, found {given.dtype}")
    with np.errstate(over="ignore"):
        column: Float32Column = np.array(given, dtype=np.float32)
    finite = np.isfinite(column)
    bad = np.asarray(~finite.all(axis=tuple(range(1, finite.ndim))))
    refuse_rows(table, bad, lambda row: f"{name} must be finite, found {given[row]}")
    return column
