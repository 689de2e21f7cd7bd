"""The crop store: the crops of many boxes in one memory-mapped file, each to be had by its box row.

The file is Arrow IPC, uncompressed, with a record batch per piece of work (see `store_build.py`) and two columns:
`box`, the box's row in the corpus, rising; `jpeg`, the crop. Its schema's metadata holds `polypcount`, a JSON text
with the format, the crop rule, the key of the whole and the key and length of each batch.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from polypcount.errors import DataError, FileError, first_line
from polypcount.video.crop import CropRule, resize
from polypcount.video.frames import Image

FORMAT = "polypcount-crops"
FORMAT_VERSION = 1
FILE_NAME = "crops.arrow"
METADATA = b"polypcount"
SCHEMA = pa.schema([pa.field("box", pa.int64(), nullable=False), pa.field("jpeg", pa.large_binary(), nullable=False)])


class CropStore:
    """Crops by box row. Only the crops asked for are read from disk; any number of threads may ask at once.

    path: the file. rule: how the crops were cut. key: of all that went in. rows: int64[n], box rows, rising.
    So the crops of a tracklet are `store.crops(tracklets.rows(k))`, where the store has all its boxes.
    """

    def __init__(self, path: Path, table: pa.Table, described: dict[str, Any]) -> None:
        self.path = path
        self.rule = CropRule(**described["rule"])
        self.key = str(described["key"])
        self.parts: list[tuple[str, int]] = [(str(key), int(count)) for key, count in described["parts"]]
        self.rows: NDArray[np.int64] = table.column("box").to_numpy()
        self.rows.flags.writeable = False
        self._chunks = table.column("jpeg").chunks
        self._starts = np.cumsum([0, *(len(chunk) for chunk in self._chunks)])
        self._part_index = {key: index for index, (key, _) in enumerate(self.parts)}
        if [len(chunk) for chunk in self._chunks] != [count for _, count in self.parts]:
            raise ValueError("its batches are not as long as its parts")
        if (np.diff(self.rows) <= 0).any():
            raise ValueError("its box rows do not rise")

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "CropStore":
        """Open a store, by its file or its folder."""
        place = Path(path)
        file = place / FILE_NAME if place.is_dir() else place
        if not file.is_file():
            raise FileError(f"{file} does not exist; a crop store was expected, build it first")
        try:
            table = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
            described = json.loads(table.schema.metadata[METADATA])
            if described["format"] != FORMAT or described["version"] != FORMAT_VERSION:
                raise ValueError(f"it says {described['format']} {described['version']}")
            if not table.schema.equals(SCHEMA):
                raise ValueError("its columns are others")
            table.validate(full=True)
            return cls(file, table, described)
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, DataError) as problem:
            raise FileError(
                f"{file} is not a crop store of version {FORMAT_VERSION} ({first_line(problem)}); "
                "delete it and build again"
            ) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return (CropStore.open, (self.path,))

    def __len__(self) -> int:
        return len(self.rows)

    def has(self, rows: ArrayLike) -> NDArray[np.bool_]:
        """Mask of those of these box rows that have a crop here."""
        return np.isin(np.asarray(rows), self.rows)

    def crops(self, rows: ArrayLike, size: int | None = None) -> Image:
        """Crops of box rows in the order given, uint8[n, size, size, 3] RGB.

        size: side in pixels; that of the rule where not given, otherwise each crop is resized to it.
        """
        import simplejpeg  # type: ignore[import-untyped]

        stored = self.rule.size
        places = self._places(rows)
        side = stored if size is None else size
        crops: Image = np.empty((len(places), side, side, 3), np.uint8)
        for crop, place in zip(crops, places.tolist(), strict=True):
            data = self._jpeg(place)
            try:
                if simplejpeg.decode_jpeg_header(data)[:2] != (stored, stored):
                    raise ValueError("of another size")
                if side == stored:
                    simplejpeg.decode_jpeg(data, colorspace="RGB", buffer=crop)
                else:
                    crop[:] = resize(simplejpeg.decode_jpeg(data, colorspace="RGB"), side, side)
            except ValueError as problem:
                row = self.rows[place]
                raise FileError(
                    f"{self.path}: the crop of box row {row} is damaged ({first_line(problem)}); "
                    "delete it and build again"
                ) from None
        return crops

    def jpeg(self, row: int) -> bytes:
        """The crop of one box row as JPEG."""
        return bytes(self._jpeg(int(self._places([row])[0])))

    def batch_of(self, part: str) -> pa.Array | None:
        """Crops as JPEG of the part with this key, in rising order of rows; None where there is no such part."""
        index = self._part_index.get(part)
        return None if index is None else self._chunks[index]

    def _places(self, rows: ArrayLike) -> NDArray[np.int64]:
        wanted = np.asarray(rows, np.int64).reshape(-1)
        places = np.searchsorted(self.rows, wanted)
        found = self.rows[np.minimum(places, len(self.rows) - 1)] == wanted if len(self.rows) else wanted < wanted
        if not found.all():
            missing = wanted[np.argmin(found)]
            raise DataError(f"{self.path}: there is no crop of box row {missing}; build the store with that row too")
        return places

    def _jpeg(self, place: int) -> memoryview:
        chunk = int(np.searchsorted(self._starts, place, side="right")) - 1
        return memoryview(self._chunks[chunk][place - int(self._starts[chunk])].as_buffer()).cast("B")
