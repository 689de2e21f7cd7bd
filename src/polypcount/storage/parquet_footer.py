"""The footer of a Parquet file, as far as sizes need it.

pyarrow reads footers, too, but a damaged one makes its functions for column chunks end the whole process: an exception
of C++ reaches Python where none is expected. Here it is decoded by the rules of Thrift's compact protocol.
"""

import io
from pathlib import Path
from typing import Any

from polypcount.errors import DataError

_ROW_GROUPS, _CHUNKS, _CHUNK_METADATA, _VALUES = 4, 1, 3, 5  # field numbers of the Parquet format


def values_of_chunks(path: Path) -> list[list[int]]:
    """How many values each column has in each row group, by the footer: a list of columns for each row group.

    Raises:
        DataError: The footer is damaged.
    """
    try:
        with path.open("rb") as file:
            file.seek(-8, io.SEEK_END)
            length = int.from_bytes(file.read(4), "little")
            file.seek(-8 - length, io.SEEK_END)
            footer = _Compact(file.read(length)).struct()
        groups = footer.get(_ROW_GROUPS, [])
        return [[int(chunk[_CHUNK_METADATA][_VALUES]) for chunk in group[_CHUNKS]] for group in groups]
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        raise DataError("its footer is damaged") from None


class _Compact:
    """Values in Thrift's compact protocol. Each takes at least a byte, so no claim can be larger than the footer."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self) -> dict[int, Any]:
        """The fields of a struct by number."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._whole()
            kind = head & 15
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (1, 2, 3):  # a truth value in a list, or a byte
            return self._byte()
        if kind in (4, 5, 6):
            return self._whole()
        if kind in (7, 8, 13):  # a fraction, bytes, a UUID: not needed
            size = {7: 8, 13: 16}.get(kind) or self._unsigned()
            self._at += size
            if self._at > len(self._data):
                raise ValueError("a value ends after the footer")
            return None
        if kind in (9, 10):
            head = self._byte()
            return [self._value(head & 15) for _ in range(self._unsigned() if head >> 4 == 15 else head >> 4)]
        if kind == 11:
            pairs = self._unsigned()
            kinds = self._byte() if pairs else 0
            return [(self._value(kinds >> 4), self._value(kinds & 15)) for _ in range(pairs)]
        if kind == 12:
            return self.struct()
        raise ValueError(f"unknown kind {kind}")

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def _whole(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)
