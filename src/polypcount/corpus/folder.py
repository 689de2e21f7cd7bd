"""A corpus on disk: a versioned folder with Parquet tables.

    corpus.json                 format, format version, content hash, counts, provenance, name of the tables folder
    tables-1a2b3c4d/            videos.parquet  polyps.parquet  boxes.parquet  files.parquet

`storage.VersionedFolder` describes how it is replaced.
"""

import dataclasses
import os
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from polypcount.corpus.boxes import Boxes, FrameFiles
from polypcount.corpus.corpus import Corpus
from polypcount.corpus.provenance import Provenance
from polypcount.corpus.records import Polyp, Video
from polypcount.errors import DataError, FileError, first_line
from polypcount.storage import Manifest, VersionedFolder, is_unfinished
from polypcount.storage.parquet import BROKEN_PARQUET, parquet_schema, read_columns, without_codes


class CorpusManifest(Manifest):
    """The content of `corpus.json`."""

    FORMAT: ClassVar[str] = "polypcount-corpus"
    KIND: ClassVar[str] = "the description of a corpus"

    content_hash: str
    tables: str
    counts: dict[str, int]
    provenance: Provenance


_FOLDER = VersionedFolder("corpus", CorpusManifest, "corpus.json", "tables")
is_corpus = _FOLDER.holds


def _schema(required: dict[str, pa.DataType], optional: dict[str, pa.DataType] | None = None) -> pa.Schema:
    columns = [pa.field(name, kind, nullable=False) for name, kind in required.items()]
    return pa.schema(columns + [pa.field(name, kind) for name, kind in (optional or {}).items()])


_TEXT, _INT, _SINGLE, _DOUBLE = pa.string(), pa.int32(), pa.float32(), pa.float64()
_SIDES = ("x1", "y1", "x2", "y2")
_SCHEMAS = {
    "videos": _schema(
        {"id": _TEXT, "frame_count": _INT, "dataset": _TEXT, "centre": _TEXT, "split": _TEXT},
        {"fps": _DOUBLE, "width": _INT, "height": _INT, "source": _TEXT},
    ),
    "polyps": _schema({"id": _TEXT, "site": _TEXT, "histology": _TEXT}, {"video": _TEXT, "size_mm": _DOUBLE}),
    "boxes": _schema(
        {"video": _INT, "frame": _INT, **dict.fromkeys(_SIDES, _SINGLE), "score": _SINGLE, "polyp": _INT, "track": _INT}
    ),
    "files": _schema({"video": _INT, "frame": _INT, "name": _TEXT}),
}


def save(corpus: Corpus, folder: Path) -> Path:
    """Write the corpus and return the folder. A folder that holds something else is refused and left alone."""
    refuse_unsuitable(folder, corpus)
    try:
        tables = _tables(corpus, os.path.abspath(folder))
    except (UnicodeError, pa.ArrowException) as problem:
        raise FileError(f"{folder}: the corpus could not be saved: {first_line(problem)}") from problem

    def fill(part: Path) -> None:
        for name, table in tables.items():
            pq.write_table(table, part / f"{name}.parquet", compression="zstd")

    values = {
        "content_hash": corpus.content_hash,
        "counts": {"videos": len(corpus.videos), "boxes": len(corpus.boxes), "polyps": len(corpus.polyps)},
        "provenance": corpus.provenance.to_dict(),
    }
    _FOLDER.write(folder, fill, values)
    return folder


def refuse_unsuitable(folder: Path, corpus: Corpus | None = None) -> None:
    """Raise `FileError` if a corpus must not be saved there: on a file, or among files that are not part of it.

    A folder is suitable if it is new, empty, holds a corpus that this version can read, or holds a video of `corpus`.
    """
    _FOLDER.refuse_unsuitable(folder)
    names = [entry.name for entry in folder.iterdir()] if folder.exists() and not is_corpus(folder) else []
    if any(not _FOLDER.is_part(name) and not is_unfinished(name) for name in names):
        home = os.path.abspath(folder)
        sources = [video.source for video in corpus.videos if video.source] if corpus else []
        if not any(Path(source).is_relative_to(home) for source in sources):
            raise FileError(f"{folder} is not empty and not a corpus; choose a new folder")


def load(folder: Path) -> Corpus:
    """Read a corpus, checking format, columns and content hash."""
    return _FOLDER.read(folder, _load)


def _load(described: CorpusManifest, part: Path) -> Corpus:
    folder = part.parent
    tables = {name: _read_table(part / f"{name}.parquet", schema) for name, schema in _SCHEMAS.items()}
    boxes, files = tables["boxes"], tables["files"]
    try:
        corpus = Corpus(
            videos=tuple(_video(row, folder) for row in tables["videos"].to_pylist()),
            boxes=Boxes(
                xyxy=np.column_stack([boxes[side].to_numpy() for side in _SIDES]),
                **{name: boxes[name].to_numpy() for name in ("video", "frame", "score", "polyp", "track")},
            ),
            polyps=tuple(Polyp(**row) for row in tables["polyps"].to_pylist()),
            files=FrameFiles(*(files[name].to_numpy() for name in ("video", "frame", "name"))),
            provenance=described.provenance,
        )
    except (DataError, UnicodeError, pa.ArrowException) as problem:
        raise FileError(f"{folder}: {first_line(problem)}") from problem
    if corpus.content_hash != described.content_hash:
        raise FileError(f"{folder}: the tables were changed after saving: their content hash is not the recorded one")
    return corpus


def _tables(corpus: Corpus, home: str) -> dict[str, pa.Table]:
    """The tables of a corpus that is saved in the folder `home`."""
    videos = [dataclasses.asdict(video) for video in corpus.videos]
    for row in videos:
        # A source inside the folder is saved relative to it, so that the folder can be moved with its videos.
        if row["source"] and Path(row["source"]).is_relative_to(home):
            row["source"] = os.path.relpath(row["source"], home)
    boxes = corpus.boxes.columns()
    boxes |= dict(zip(_SIDES, boxes["xyxy"].T, strict=True))
    return {
        "videos": pa.Table.from_pylist(videos, schema=_SCHEMAS["videos"]),
        "polyps": pa.Table.from_pylist([dataclasses.asdict(p) for p in corpus.polyps], schema=_SCHEMAS["polyps"]),
        "boxes": pa.table({name: boxes[name] for name in _SCHEMAS["boxes"].names}, schema=_SCHEMAS["boxes"]),
        "files": pa.table(corpus.files.columns(), schema=_SCHEMAS["files"]),
    }


def _video(row: dict[str, Any], folder: Path) -> Video:
    source = row["source"]
    return Video(**{**row, "source": None if source is None else os.path.join(folder, source)})


def _read_table(path: Path, schema: pa.Schema) -> pa.Table:
    try:
        if path.exists() and not path.is_file():  # reading a pipe would wait for ever
            raise FileError(f"{path} is not a file; copy the whole corpus again")
        found = parquet_schema(path)
        for column in schema:
            if column.name not in found.names:
                raise FileError(f"{path}: column {column.name} is missing")
            if (kind := found.field(column.name).type) != column.type:
                raise FileError(f"{path}: column {column.name} must be {column.type}, found {kind}")
        texts = [column.name for column in schema if pa.types.is_string(column.type)]
        table = without_codes(read_columns(path, schema.names, texts), path)
    except FileNotFoundError:
        raise FileError(f"{path} is missing: the corpus is not complete") from None
    except DataError as problem:
        raise FileError(f"{path}: {problem}") from None
    except BROKEN_PARQUET as problem:
        raise FileError(f"{path} is damaged or cut short: {first_line(problem)}") from problem
    for column in schema:
        if not column.nullable and table.column(column.name).null_count:
            raise FileError(f"{path}: column {column.name} has rows without a value")
    return table
