"""The crop store: the crops of many boxes in one memory-mapped file, found by box row.

The file is Arrow IPC, uncompressed, with one record batch for each part of the work (see `store_build.py`) and two
columns: `box`, the box row in the corpus, rising; `jpeg`, the crop. The metadata of its schema holds `polypcount`, a
JSON text with the format, the crop rule, the key of the whole store, and the key and length of each batch.
"""

import json
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from polypcount.errors import DataError, FileError, first_line
from polypcount.storage import Schema, check
from polypcount.video.crop import CropRule, resize
from polypcount.video.frames import Image

FILE_NAME = "crops.arrow"
METADATA = b"polypcount"
SCHEMA = pa.schema([pa.field("box", pa.int64(), nullable=False), pa.field("jpeg", pa.large_binary(), nullable=False)])


class StoreDescription(Schema):
    """What the metadata of a store says.

    Attributes:
        rule: How the crops were cut.
        key: Key of everything that decides the content.
        parts: Key and number of crops of each record batch.
    """

    format: Literal["polypcount-crops"] = "polypcount-crops"
    version: Literal[1] = 1
    rule: CropRule
    key: str
    parts: tuple[tuple[str, int], ...]


class CropStore:
    """Crops by box row. Only the crops asked for are read from disk; any number of threads may read at once.

    The crops of a tracklet are `store.crops(tracklets.rows(k))`, where the store has all its boxes.

    Attributes:
        path: The file.
        rule: How the crops were cut.
        key: Key of everything that decides the content.
        parts: Key and number of crops of each record batch.
        rows: int64[n], box rows, rising.
    """

    def __init__(self, path: Path, table: pa.Table, description: StoreDescription) -> None:
        self.path = path
        self.rule, self.key, self.parts = description.rule, description.key, description.parts
        self.rows: NDArray[np.int64] = table.column("box").to_numpy()
        self.rows.flags.writeable = False
        self._chunks = table.column("jpeg").chunks
        self._starts = np.cumsum([0, *(len(chunk) for chunk in self._chunks)])
        if [len(chunk) for chunk in self._chunks] != [count for _, count in self.parts]:
            raise ValueError("its batches are not as long as its parts")
        if (np.diff(self.rows) <= 0).any():
            raise ValueError("its box rows do not rise")

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "CropStore":
        """Open a store, given its file or its folder."""
        file = Path(path) / FILE_NAME if Path(path).is_dir() else Path(path)
        if not file.is_file():
            raise FileError(f"{file} does not exist; a crop store was expected, build it first")
        try:
            table = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
            description = check(StoreDescription, json.loads(table.schema.metadata[METADATA]), "its description")
            if not table.schema.equals(SCHEMA):
                raise ValueError("its columns are others")
            table.validate(full=True)
            return cls(file, table, description)
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as problem:
            raise FileError(f"{file} is not a crop store ({first_line(problem)}); delete it and build again") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return (CropStore.open, (self.path,))

    def __len__(self) -> int:
        return len(self.rows)

    def has(self, rows: ArrayLike) -> NDArray[np.bool_]:
        """Whether each of these box rows has a crop here."""
        return np.isin(np.asarray(rows), self.rows)

    def crops(self, rows: ArrayLike, size: int | None = None) -> Image:
        """Crops of box rows, in the order of `rows`.

        Args:
            rows: Box rows in any order.
            size: Side in pixels that the crops are resized to; None for that of the rule.

        Returns:
            uint8[n, size, size, 3], RGB.
        """
        import simplejpeg  # type: ignore[import-untyped]

        stored, indices = self.rule.size, self._indices(rows)
        side = size or stored
        crops: Image = np.empty((len(indices), side, side, 3), np.uint8)
        for crop, index in zip(crops, indices.tolist(), strict=True):
            data = self._jpeg(index)
            try:
                if simplejpeg.decode_jpeg_header(data)[:2] != (stored, stored):
                    raise ValueError("of another size")
                crop[:] = resize(simplejpeg.decode_jpeg(data, colorspace="RGB"), side, side)
            except ValueError as problem:
                raise FileError(
                    f"{self.path}: the crop of box row {self.rows[index]} is damaged ({first_line(problem)}); "
                    "delete it and build again"
                ) from None
        return crops

    def jpeg(self, row: int) -> bytes:
        """The crop of one box row as JPEG."""
        return bytes(self._jpeg(int(self._indices([row])[0])))

    def batches(self) -> dict[str, pa.Array]:
        """The crops of each part as JPEG, by the key of the part."""
        return {key: chunk for (key, _), chunk in zip(self.parts, self._chunks, strict=True)}

    def _indices(self, rows: ArrayLike) -> NDArray[np.int64]:
        """Where box rows are in `self.rows`."""
        asked = np.asarray(rows, np.int64).reshape(-1)
        indices = np.searchsorted(self.rows, asked)
        missing = asked[np.searchsorted(self.rows, asked, side="right") == indices]
        if len(missing):
            raise DataError(f"{self.path}: there is no crop of box row {missing[0]}; build the store with that row too")
        return indices

    def _jpeg(self, index: int) -> memoryview:
        chunk = int(np.searchsorted(self._starts, index, side="right")) - 1
        return memoryview(self._chunks[chunk][index - int(self._starts[chunk])].as_buffer()).cast("B")
