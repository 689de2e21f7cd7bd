"""Columns of a table: numpy arrays, converted once, checked row by row, and read-only from then on."""

from collections.abc import Callable, Mapping
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
        return len(next(iter(self.columns().values())))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        others = other.columns()
        return all(np.array_equal(column, others[name]) for name, column in self.columns().items())

    __hash__ = None  # type: ignore[assignment]

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns by name, in the order in which the class declares them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def take(self, rows: NDArray[Any]) -> Self:
        """The same table with only these rows (indices or a boolean mask), in this order."""
        return type(self)(**{name: column[rows] for name, column in self.columns().items()})

    def _set(self, **columns: NDArray[Any]) -> None:
        """Fill a frozen instance from its `__init__`."""
        refuse_unequal(type(self).__name__, columns)
        for name, column in columns.items():
            column.flags.writeable = False
            object.__setattr__(self, name, column)


def int_column(table: str, name: str, values: ArrayLike, *, minimum: int = 0, maximum: int = 2**31 - 1) -> Int32Column:
    """Whole numbers as int32[n] from `minimum` to `maximum`. Fractions, NaN and overflow are errors, not rounded."""
    array = _flat(table, name, values)
    if not array.size:
        return np.empty(0, np.int32)
    if array.dtype.kind not in "iufb":
        raise DataError(f"{table}: column {name} must hold whole numbers, found {array.dtype}")
    refuse_rows(table, array < minimum, lambda row: f"{name} must be at least {minimum}, found {array[row]}")
    refuse_rows(table, array > maximum, lambda row: f"{name} must be at most {maximum}, found {array[row]}")
    with np.errstate(invalid="ignore"):
        column: Int32Column = array.astype(np.int32)
    refuse_rows(table, column != array, lambda row: f"{name} must be a whole number, found {array[row]}")
    return column


def float_column(table: str, name: str, values: ArrayLike) -> Float32Column:
    """Finite numbers as float32[n]."""
    return _finite(table, name, _flat(table, name, values))


def vector_column(table: str, values: ArrayLike) -> Float32Column:
    """Vectors as float32[n, d]: finite, d is at least 1 where there are rows."""
    array = as_array(table, "vectors", values)
    if array.ndim < 2 and array.size == 0:
        array = np.empty((0, 0), np.float32)
    if array.ndim != 2 or (len(array) and not array.shape[1]):
        raise DataError(f"{table}: vectors must have the shape [n, d] with d at least 1, found {list(array.shape)}")
    return _finite(table, "vectors", array)


def box_column(table: str, values: ArrayLike) -> Float32Column:
    """Boxes as float32[n, 4]: x1, y1, x2, y2 in pixels, finite, with x1 < x2 and y1 < y2."""
    array = as_array(table, "xyxy", values)
    if array.size == 0:
        array = array.reshape(0, 4)
    if array.ndim != 2 or array.shape[1] != 4:
        raise DataError(f"{table}: xyxy must have the shape [n, 4], found {list(array.shape)}")
    column = _finite(table, "xyxy", array)
    for axis, low, high in (("x", 0, 2), ("y", 1, 3)):

        def describe(row: int, axis: str = axis, low: int = low, high: int = high) -> str:
            sides = f"{axis}1 {column[row, low]:g} and {axis}2 {column[row, high]:g}"
            return f"{axis}2 must be greater than {axis}1, found {sides}"

        refuse_rows(table, column[:, high] <= column[:, low], describe)
    return column


def text_column(table: str, name: str, values: ArrayLike) -> TextColumn:
    """Non-empty strings as object[n]."""
    column = np.array(_flat(table, name, values), dtype=object)
    bad = np.fromiter((not isinstance(value, str) or not value for value in column), bool, len(column))
    refuse_rows(table, bad, lambda row: f"{name} must be a non-empty text, found {column[row]!r}")
    return column


def refuse_rows(table: str, bad: NDArray[np.bool_], describe: Callable[[int], str]) -> None:
    """Raise a `DataError` that describes the first bad row and says how many more there are."""
    if bad.any():
        row = int(np.argmax(bad))
        others = int(bad.sum()) - 1
        more = f" (and {others} more {'row' if others == 1 else 'rows'} like it)" if others else ""
        raise DataError(f"{table} row {row}: {describe(row)}{more}")


def refuse_unknown(table: str, name: str, column: Int32Column, count: int) -> None:
    """Refuse rows that point beyond a list of `count` things."""
    refuse_rows(table, column >= count, lambda row: f"{name} {column[row]} is unknown, there are {count} (from 0)")


def refuse_unequal(table: str, columns: Mapping[str, NDArray[Any]]) -> None:
    """Refuse columns of different lengths."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        rows = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise DataError(f"{table}: columns must be equally long, found rows: {rows}")


def slice_of(column: Int32Column, value: int) -> slice:
    """Where a sorted column has this value."""
    # As int32, or numpy would convert the whole column for the comparison.
    start, stop = np.searchsorted(column, np.array([value, value + 1], np.int32))
    return slice(int(start), int(stop))


def _flat(table: str, name: str, values: ArrayLike) -> NDArray[Any]:
    array = as_array(table, name, values)
    if array.ndim != 1:
        raise DataError(f"{table}: column {name} must have one dimension, found the shape {list(array.shape)}")
    return array


def as_array(table: str, name: str, values: ArrayLike) -> NDArray[Any]:
    """Values as an array of any shape and type."""
    try:
        return np.asarray(values)
    except ValueError:
        raise DataError(f"{table}: the rows of {name} must be equally long") from None


def _finite(table: str, name: str, array: NDArray[Any]) -> Float32Column:
    if array.size and array.dtype.kind not in "iufb":
        raise DataError(f"{table}: column {name} must hold numbers, found {array.dtype}")
    with np.errstate(over="ignore"):
        column: Float32Column = np.array(array, dtype=np.float32)
    finite = np.isfinite(column)
    bad = np.asarray(~finite.all(axis=tuple(range(1, finite.ndim))))
    refuse_rows(table, bad, lambda row: f"{name} must be finite, found {np.extract(~finite[row], array[row])[0]}")
    return column
