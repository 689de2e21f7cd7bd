"""A corpus on disk: a folder with Parquet tables and `corpus.json`, which names the tables that count.

    corpus.json                 format, format version, content hash, counts, provenance, name of the tables folder
    tables-1a2b3c4d/            videos.parquet  polyps.parquet  boxes.parquet  files.parquet

Saving writes a new tables folder beside the old one and then renames one new `corpus.json` over the old. That
rename is the moment at which the new corpus is there: a process killed before it leaves the old corpus, after it
the new one.
"""

import contextlib
import dataclasses
import json
import os
import re
import secrets
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from polypcount.corpus.boxes import Boxes, FrameFiles
from polypcount.corpus.corpus import Corpus
from polypcount.corpus.provenance import Provenance
from polypcount.corpus.records import Polyp, Video
from polypcount.errors import DataError, FileError, first_line
from polypcount.whole import flush

FORMAT = "polypcount-corpus"
FORMAT_VERSION = 1
MANIFEST = "corpus.json"
_TABLES_NAME = re.compile(r"tables-[0-9a-f]{8}")
_LARGEST_MANIFEST_BYTES = 1 << 28
_WRITING_SECONDS, _FINISHING_SECONDS = 3600, 60


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
    """Write the corpus; returns the folder. A folder that holds something else is refused and left alone."""
    refuse_unsuitable(folder, corpus)
    manifest = folder / MANIFEST
    replaced = _tables_named_by(manifest)
    name = f"tables-{secrets.token_hex(4)}"
    unfinished = folder / f".{name}"
    try:
        unfinished.mkdir(parents=True)
        for table, content in _tables(corpus, folder).items():
            path = unfinished / f"{table}.parquet"
            pq.write_table(content, path, compression="zstd")
            flush(path)
        flush(unfinished)
        unfinished.rename(folder / name)
        draft = folder / name / MANIFEST
        draft.write_text(json.dumps(_describe(corpus, name), indent=2) + "\n", encoding="utf-8")
        flush(draft)
        draft.replace(manifest)
        flush(folder)
    except BaseException as problem:
        shutil.rmtree(unfinished, ignore_errors=True)
        if _tables_named_by(manifest) != name:
            shutil.rmtree(folder / name, ignore_errors=True)
        if isinstance(problem, (OSError, UnicodeError, pa.ArrowException)):
            raise FileError(f"{folder}: the corpus could not be saved: {first_line(problem)}") from problem
        raise
    _remove_leftovers(folder, current=name, replaced=replaced)
    return folder


def refuse_unsuitable(folder: Path, corpus: Corpus | None = None) -> None:
    """Raise `FileError` where a corpus must not be saved: on a file, or among files that have nothing to do with it.

    A folder is suitable if it is new, empty, holds a corpus that this version can read, or holds a video of `corpus`.
    """
    if folder.is_symlink() and not folder.exists():
        raise FileError(f"{folder} is a link to nowhere; choose a new folder")
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file; a corpus is saved to a folder")
    if (folder / MANIFEST).exists():
        try:
            _read_manifest(folder)
        except FileError as problem:
            raise FileError(f"{problem}; it is not replaced, choose a new folder") from None
    elif folder.exists() and any(
        not _TABLES_NAME.fullmatch(entry.name.removeprefix(".")) for entry in folder.iterdir()
    ):
        home = os.path.abspath(folder)
        if not any(video.source and Path(video.source).is_relative_to(home) for video in (corpus or Corpus(())).videos):
            raise FileError(f"{folder} is not empty and not a corpus; choose a new folder")


def load(folder: Path) -> Corpus:
    """Read a corpus, checking format, columns and content hash."""
    while True:
        described = _read_manifest(folder)
        try:
            return _load_tables(folder, described)
        except FileError:
            # Another process may have saved while we read, and removed the tables that we had been told of.
            if _tables_named_by(folder / MANIFEST) in (None, described["tables"]):
                raise


def _load_tables(folder: Path, described: dict[str, Any]) -> Corpus:
    tables = {name: _read_table(folder / described["tables"] / f"{name}.parquet", name) for name in _SCHEMAS}
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
            provenance=Provenance.from_dict(described["provenance"]),
        )
    except (DataError, UnicodeError, pa.ArrowException) as problem:
        raise FileError(f"{folder}: {first_line(problem)}") from problem
    if corpus.content_hash != described["content_hash"]:
        raise FileError(f"{folder}: the tables were changed after saving: their content hash is not the recorded one")
    return corpus


def is_corpus(folder: Path) -> bool:
    """Whether a corpus is kept there that this version can read; its tables may still be damaged."""
    return _tables_named_by(folder / MANIFEST) is not None


def _describe(corpus: Corpus, tables: str) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "content_hash": corpus.content_hash,
        "tables": tables,
        "counts": {"videos": len(corpus.videos), "boxes": len(corpus.boxes), "polyps": len(corpus.polyps)},
        "provenance": corpus.provenance.to_dict(),
    }


def _tables(corpus: Corpus, folder: Path) -> dict[str, pa.Table]:
    videos = [dataclasses.asdict(video) for video in corpus.videos]
    for row in videos:
        row["source"] = _kept_source(row["source"], folder)
    box_columns = corpus.boxes.columns()
    for position, side in enumerate(_SIDES):
        box_columns[side] = box_columns["xyxy"][:, position]
    return {
        "videos": pa.Table.from_pylist(videos, schema=_SCHEMAS["videos"]),
        "polyps": pa.Table.from_pylist([dataclasses.asdict(p) for p in corpus.polyps], schema=_SCHEMAS["polyps"]),
        "boxes": pa.table({name: box_columns[name] for name in _SCHEMAS["boxes"].names}, schema=_SCHEMAS["boxes"]),
        "files": pa.table(corpus.files.columns(), schema=_SCHEMAS["files"]),
    }


def _kept_source(source: str | None, folder: Path) -> str | None:
    """A source inside the corpus folder is kept relative to it, so that the folder can be moved with its videos."""
    home = os.path.abspath(folder)
    return os.path.relpath(source, home) if source and Path(source).is_relative_to(home) else source


def _video(row: dict[str, Any], folder: Path) -> Video:
    source = row["source"]
    return Video(**{**row, "source": None if source is None else os.path.join(folder, source)})


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        if path.stat().st_size > _LARGEST_MANIFEST_BYTES:
            raise FileError(f"{path} is too large to be the description of a corpus")
        described = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        what = "does not exist"
        if folder.exists():
            what = (
                "is not a corpus folder: it has no corpus.json" if folder.is_dir() else "is a file, not a corpus folder"
            )
        raise FileError(f"{folder} {what}; give a folder that polypcount has written") from None
    except OSError as problem:
        raise FileError(f"{path} cannot be read: {first_line(problem)}") from problem
    except (ValueError, RecursionError) as problem:
        raise FileError(f"{path} is not valid JSON: {problem}") from problem
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise FileError(f'{path} is not the description of a corpus: "format" must be "{FORMAT}"')
    found = described.get("format_version")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise FileError(f"{path}: format_version must be a whole number from 1, found {found!r}")
    if found > FORMAT_VERSION:
        raise FileError(
            f"{path} has format version {found}, this polypcount reads up to {FORMAT_VERSION}: upgrade polypcount"
        )
    for key in ("content_hash", "tables"):
        if not isinstance(described.get(key), str):
            raise FileError(f"{path}: {key} must be a text, found {described.get(key)!r}")
    if not _TABLES_NAME.fullmatch(described["tables"]):
        raise FileError(f"{path}: tables must be a name such as tables-1a2b3c4d, found {described['tables']!r}")
    if "provenance" not in described:
        raise FileError(f"{path}: provenance is missing")
    return described


def _read_table(path: Path, name: str) -> pa.Table:
    expected = _SCHEMAS[name]
    try:
        with pq.ParquetFile(path) as file:
            found = file.schema_arrow
            for column in expected:
                if column.name not in found.names:
                    raise FileError(f"{path}: column {column.name} is missing")
                if found.field(column.name).type != column.type:
                    raise FileError(
                        f"{path}: column {column.name} must be {column.type}, found {found.field(column.name).type}"
                    )
            table = file.read(columns=expected.names)
    except FileNotFoundError:
        raise FileError(f"{path} is missing: the corpus is not complete") from None
    except (OSError, pa.ArrowException) as problem:
        raise FileError(f"{path} is damaged or cut short: {first_line(problem)}") from problem
    for column in expected:
        if not column.nullable and table.column(column.name).null_count:
            raise FileError(f"{path}: column {column.name} has rows without a value")
    return table


def _tables_named_by(manifest: Path) -> str | None:
    try:
        named = _read_manifest(manifest.parent)["tables"]
    except FileError:
        return None
    return str(named)


def _remove_leftovers(folder: Path, current: str, replaced: str | None) -> None:
    """Remove the tables just replaced, and what a killed save left; a save at work right now is left alone."""
    with contextlib.suppress(OSError):  # another save may be tidying up too
        for entry in folder.iterdir():
            name = entry.name.removeprefix(".")
            if not _TABLES_NAME.fullmatch(name) or name == current:
                continue
            # A save that is writing has a hidden folder; it shows the folder only for the moment before it is done.
            patience = _WRITING_SECONDS if entry.name.startswith(".") else _FINISHING_SECONDS
            if name == replaced or time.time() - entry.stat().st_mtime > patience:
                shutil.rmtree(entry, ignore_errors=True)
