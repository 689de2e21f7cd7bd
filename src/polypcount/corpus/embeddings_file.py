"""Embeddings on disk: one file, `.parquet` or `.npz`.

Either has a row per tracklet with the columns that `docs/bring-your-own-embeddings.md` tells of, so that other programs
can read and write it. What polypcount writes has a description besides, as JSON: in Parquet under the key "polypcount"
of the schema's metadata, in `.npz` as the array "polypcount". It has the format and its version, the content hash, the
encoder, videos, polyps, pairs seen together (in `.npz` an array) and provenance. A file without it was made by hand.
"""

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from polypcount.corpus.embeddings import Embeddings
from polypcount.corpus.embeddings_columns import LARGEST_DESCRIPTION, FileColumns, Texts, from_columns
from polypcount.corpus.embeddings_npz import read_npz, write_npz
from polypcount.corpus.embeddings_parquet import read_parquet, write_parquet
from polypcount.corpus.provenance import Provenance
from polypcount.corpus.records import Polyp, Video
from polypcount.errors import DataError, FileError
from polypcount.whole import whole_file

FORMAT = "polypcount-embeddings"
FORMAT_VERSION = 1
_WRITERS = {".parquet": write_parquet, ".npz": write_npz}
_READERS = {b"PAR1": read_parquet, b"PK\x03\x04": read_npz, b"PK\x05\x06": read_npz}
_LONGEST_LINE = 600


def save(embeddings: Embeddings, path: Path) -> Path:
    """Write the file; returns its path. What was there is replaced as a whole, or not at all."""
    if path.suffix.lower() not in _WRITERS:
        raise FileError(f"{path}: embeddings are saved as .parquet or .npz, found {path.suffix or 'no suffix'}")
    if path.is_dir():
        raise FileError(f"{path} is a folder; embeddings are saved to a file")
    try:
        description = _describe(embeddings, with_pairs=path.suffix.lower() == ".parquet")
        with whole_file(path) as unfinished:
            _WRITERS[path.suffix.lower()](embeddings, description, unfinished)
    except (OSError, UnicodeError, pa.ArrowException, DataError) as problem:
        raise FileError(f"{path}: the embeddings could not be saved: {_one_line(problem)}") from problem
    return path


def load(path: Path) -> Embeddings:
    """Read a file of ours, checked against its content hash, or one made by hand."""
    if path.exists() and not path.is_file():
        raise FileError(f"{path} is a folder or a device; embeddings are one file, .parquet or .npz")
    try:
        with path.open("rb") as file:
            begins = file.read(4)
    except FileNotFoundError:
        raise FileError(f"{path} does not exist; give a .parquet or .npz file of embeddings") from None
    except OSError as problem:
        raise FileError(f"{path} cannot be read: {_one_line(problem)}") from problem
    if not begins:
        raise FileError(f"{path} is empty; embeddings are a .parquet or .npz file")
    if begins not in _READERS:
        raise FileError(f"{path} is neither Parquet nor .npz, by its first bytes; write it as one of the two")
    try:
        columns = _READERS[begins](path)
        if columns.description is None:
            return from_columns(columns, Provenance.now("read embeddings", (os.path.abspath(path),)))
        return _as_described(columns, _read_description(columns.description))
    except DataError as problem:
        raise FileError(f"{path}: {_one_line(problem)}") from problem


def _describe(embeddings: Embeddings, with_pairs: bool) -> str:
    described = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "content_hash": embeddings.content_hash,
        "encoder": embeddings.encoder,
        "videos": [dataclasses.asdict(video) for video in embeddings.videos],
        "polyps": [dataclasses.asdict(polyp) for polyp in embeddings.polyps],
        "provenance": embeddings.provenance.to_dict(),
    }
    if with_pairs:
        described["together"] = embeddings.together.tolist()
    text = json.dumps(described, separators=(",", ":"))
    if len(text) > LARGEST_DESCRIPTION:
        raise DataError(
            f"videos, polyps and pairs seen together take {len(text):,} bytes, at most {LARGEST_DESCRIPTION:,} "
            f"are kept; save the videos in several files"
        )
    return text


def _read_description(text: str) -> dict[str, Any]:
    try:
        described = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise DataError(f"the polypcount description is not valid JSON: {problem}") from None
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise DataError(f'the polypcount description is not of embeddings: "format" must be "{FORMAT}"')
    version = described.get("format_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise DataError(f"format_version must be a whole number from 1, found {version!r}")
    if version > FORMAT_VERSION:
        raise DataError(f"format version {version}, this polypcount reads up to {FORMAT_VERSION}: upgrade polypcount")
    kinds = {"content_hash": str, "encoder": str, "videos": list, "polyps": list, "provenance": dict}
    for key, kind in kinds.items():
        if not isinstance(described.get(key), kind):
            raise DataError(
                f"the polypcount description: {key} must be a {kind.__name__}, found {described.get(key)!r}"
            )
    return described


def _as_described(columns: FileColumns, described: dict[str, Any]) -> Embeddings:
    try:
        videos = tuple(Video(**_texts_only(row, "source")) for row in described["videos"])
        polyps = tuple(Polyp(**_texts_only(row, "video")) for row in described["polyps"])
        provenance = Provenance.from_dict(described["provenance"])
    except (TypeError, ValueError, OverflowError, RecursionError) as problem:
        raise DataError(f"the polypcount description has a record of the wrong form: {problem}") from problem
    try:
        embeddings = _joined(columns, videos, polyps, described, provenance)
        if embeddings.content_hash != described["content_hash"]:
            raise DataError("its content hash is not the recorded one")
    except DataError as problem:
        raise DataError(
            f"the file was changed after saving: {problem}; to have it read as a file made by hand, "
            f"write it without its polypcount metadata"
        ) from problem
    return embeddings


def _joined(
    columns: FileColumns,
    videos: tuple[Video, ...],
    polyps: tuple[Polyp, ...],
    described: dict[str, Any],
    provenance: Provenance,
) -> Embeddings:
    for told, video in zip(columns.videos(), _rows_of(columns.video, videos), strict=True):
        if (told.frame_count, told.fps) != (videos[video].frame_count, videos[video].fps):
            raise DataError(f"frame_count or fps of video {told.id} is not the recorded one")
    if columns.box_count is None or columns.polyp is None:
        raise DataError("box_count or polyp is missing")
    start, stop = columns.spans()
    return Embeddings(
        videos=videos,
        polyps=polyps,
        video=_rows_of(columns.video, videos)[columns.video.codes],
        start_frame=start,
        stop_frame=stop,
        box_count=columns.box_count,
        polyp=np.append(_rows_of(columns.polyp, polyps), -1)[columns.polyp.codes],
        vectors=columns.vectors,
        together=columns.together if columns.together is not None else described.get("together", ()),
        encoder=described["encoder"],
        provenance=provenance,
    )


def _rows_of(texts: Texts, records: Sequence[Video | Polyp]) -> NDArray[np.int64]:
    """The row of each name among the records."""
    row_of = {record.id: row for row, record in enumerate(records)}
    for name in texts.names:
        if name not in row_of:
            raise DataError(f"{name!r} is not in the description")
    return np.array([row_of[name] for name in texts.names], np.int64)


def _texts_only(row: Any, name: str) -> dict[str, Any]:
    """The values of a record, after seeing that the one that its class takes on trust is a text or None."""
    if not isinstance(row, dict) or not isinstance(row.get(name), str | None):
        raise TypeError(f"{name} must be a text or null")
    return row


def _one_line(problem: BaseException) -> str:
    """What went wrong, as one printable line of bearable length, whatever a file made it say."""
    text = str(getattr(problem, "strerror", None) or problem or type(problem).__name__)
    line = " ".join(text.split()).encode("utf-8", "backslashreplace").decode()
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} ..."
