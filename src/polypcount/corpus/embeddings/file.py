"""Embeddings on disk: one file, `.parquet` or `.npz`.

Either has a row per tracklet with the columns of `docs/bring-your-own-embeddings.md`, so that other programs can read
and write it. polypcount also writes a description, as JSON: in Parquet under the key "polypcount" of the schema's
metadata, in `.npz` as the array "polypcount". A file without a description was made by hand. Vectors of frames are two
columns of lists in Parquet (`frame_numbers`, and `frame_vectors` one after the other), and three arrays in `.npz`
(`frame_tracklet`, `frame_number`, `frame_vectors`).
"""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from polypcount.corpus.columns import int_column, refuse_rows
from polypcount.corpus.embeddings.embeddings import Embeddings
from polypcount.corpus.embeddings.formats import (
    LARGEST_DESCRIPTION,
    FileColumns,
    TextCodes,
    read_npz,
    read_parquet,
    write_npz,
    write_parquet,
)
from polypcount.corpus.provenance import Provenance
from polypcount.corpus.records import Polyp, Video
from polypcount.corpus.together import overlapping
from polypcount.errors import DataError, FileError
from polypcount.storage import Manifest, check_manifest, parse_json, whole_file

_WRITERS = {".parquet": write_parquet, ".npz": write_npz}
_READERS = {b"PAR1": read_parquet, b"PK\x03\x04": read_npz, b"PK\x05\x06": read_npz}
_MISSING_AS_TEXT = frozenset({"None", "nan", "NaN", "<NA>"})
_LONGEST_LINE = 600
_TABLE = "embeddings"


class EmbeddingsManifest(Manifest):
    """The description that polypcount writes into an embeddings file. Only files with frames have version 2."""

    FORMAT: ClassVar[str] = "polypcount-embeddings"
    VERSION: ClassVar[int] = 2
    KIND: ClassVar[str] = "a description of embeddings"

    content_hash: str
    encoder: str
    videos: tuple[Video, ...]
    polyps: tuple[Polyp, ...]
    provenance: Provenance
    together: tuple[tuple[int, int], ...] | None = None  # in `.npz` an array


def save(embeddings: Embeddings, path: Path) -> Path:
    """Write the file, replacing what is there, and return its path."""
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        raise FileError(f"{path}: embeddings are saved as .parquet or .npz, found {path.suffix or 'no suffix'}")
    if path.is_dir():
        raise FileError(f"{path} is a folder; embeddings are saved to a file")
    try:
        described = EmbeddingsManifest.described(
            format_version=1 if embeddings.frames is None else 2,
            content_hash=embeddings.content_hash,
            encoder=embeddings.encoder,
            videos=[dataclasses.asdict(video) for video in embeddings.videos],
            polyps=[dataclasses.asdict(polyp) for polyp in embeddings.polyps],
            provenance=embeddings.provenance.to_dict(),
            together=embeddings.together.tolist() if suffix == ".parquet" else None,
        )
        text = described.model_dump_json()
        if len(text) > LARGEST_DESCRIPTION:
            raise DataError(
                f"videos, polyps and pairs seen together take {len(text):,} bytes, at most {LARGEST_DESCRIPTION:,} "
                f"are kept; save the videos in several files"
            )
        with whole_file(path) as unfinished:
            _WRITERS[suffix](embeddings, text, unfinished)
    except (OSError, UnicodeError, pa.ArrowException, DataError) as problem:
        raise FileError(f"{path}: the embeddings could not be saved: {_one_line(problem)}") from problem
    return path


def load(path: Path) -> Embeddings:
    """Read a file of polypcount, checked against its content hash, or a file made by hand."""
    if path.exists() and not path.is_file():
        raise FileError(f"{path} is a folder or a device; embeddings are one file, .parquet or .npz")
    try:
        with path.open("rb") as file:
            begins = file.read(4)
    except FileNotFoundError:
        raise FileError(f"{path} does not exist; give a .parquet or .npz file of embeddings") from None
    except OSError as problem:
        raise FileError(f"{path} cannot be read: {_one_line(problem)}") from problem
    if begins not in _READERS:
        what = "is neither Parquet nor .npz, by its first bytes" if begins else "is empty"
        raise FileError(f"{path} {what}; embeddings are a .parquet or .npz file")
    try:
        columns = _READERS[begins](path)
        if columns.description is None:
            return _by_hand(columns, Provenance.now("read embeddings", (os.path.abspath(path),)))
        return _as_described(columns, columns.description)
    except (DataError, FileError) as problem:
        raise FileError(f"{path}: {_one_line(problem)}") from problem


def _as_described(columns: FileColumns, text: str) -> Embeddings:
    """Embeddings as polypcount saved them."""
    what = "the polypcount description"
    if len(text) > LARGEST_DESCRIPTION:
        raise DataError(f"{what} has {len(text):,} characters, at most {LARGEST_DESCRIPTION:,} are read")
    described = check_manifest(EmbeddingsManifest, parse_json(text, what), what)
    try:
        embeddings = _joined(columns, described)
        if embeddings.content_hash != described.content_hash:
            raise DataError("its content hash is not the recorded one")
    except DataError as problem:
        raise DataError(
            f"the file was changed after saving: {problem}; to have it read as a file made by hand, "
            f"write it without its polypcount metadata"
        ) from problem
    return embeddings


def _joined(columns: FileColumns, described: EmbeddingsManifest) -> Embeddings:
    """The tracklets of the columns, with the videos and polyps of the description."""
    video_rows = _rows_of(columns.video, described.videos)
    for video, row in zip(_videos(columns), video_rows, strict=True):
        if (video.frame_count, video.fps) != (described.videos[row].frame_count, described.videos[row].fps):
            raise DataError(f"frame_count or fps of video {video.id} is not the recorded one")
    if columns.box_count is None or columns.polyp is None:
        raise DataError("box_count or polyp is missing")
    return Embeddings(
        videos=described.videos,
        polyps=described.polyps,
        video=video_rows[columns.video.codes],
        start_frame=columns.start_frame,
        stop_frame=columns.stop_frame,
        box_count=columns.box_count,
        polyp=np.append(_rows_of(columns.polyp, described.polyps), -1)[columns.polyp.codes],
        vectors=columns.vectors,
        together=columns.together if columns.together is not None else described.together or (),
        encoder=described.encoder,
        provenance=described.provenance,
        frames=columns.frames,
    )


def _by_hand(columns: FileColumns, provenance: Provenance) -> Embeddings:
    """Embeddings from the columns alone; tracklets whose spans overlap count as together if nothing else is given."""
    video, polyp = columns.video, columns.polyp or TextCodes(np.full(len(columns.video.codes), -1), ())
    if not len(video.codes):
        raise DataError("the file has no rows; there must be one for each tracklet")
    _refuse_missing("video", video, "name the video")
    _refuse_missing("polyp", polyp, 'write "" if the polyp is unknown')
    start = int_column(_TABLE, "start_frame", columns.start_frame)
    stop = int_column(_TABLE, "stop_frame", columns.stop_frame)
    rows = video.codes.astype(np.int32)
    return Embeddings(
        videos=_videos(columns),
        polyps=_polyps(video, polyp),
        video=rows,
        start_frame=start,
        stop_frame=stop,
        box_count=columns.box_count if columns.box_count is not None else np.maximum(stop - start, 1),
        polyp=polyp.codes,
        vectors=columns.vectors,
        together=columns.together if columns.together is not None else overlapping(rows, start, stop),
        provenance=provenance,
        frames=columns.frames,
    )


def _refuse_missing(name: str, texts: TextCodes, mend: str) -> None:
    """Refuse names such as "nan", which a program writes for a missing value."""
    odd = np.array([*(text in _MISSING_AS_TEXT for text in texts.names), False])[texts.codes]
    refuse_rows(_TABLE, odd, lambda row: f"{name} {texts.names[texts.codes[row]]!r} is a missing value; {mend}")


def _videos(columns: FileColumns) -> tuple[Video, ...]:
    """The videos that the rows name; all rows of a video must agree about it."""
    names, codes = columns.video.names, columns.video.codes
    refuse_rows(_TABLE, codes < 0, lambda _: "video must be a non-empty text, found none")
    _, first = np.unique(codes, return_index=True)

    def of_videos(name: str, values: NDArray[Any]) -> list[Any]:
        expected = values[first][codes]
        differ = ~((values == expected) | (np.isnan(values) & np.isnan(expected)))
        refuse_rows(_TABLE, differ, lambda row: f"{name} must be the same in all rows of video {names[codes[row]]}")
        return list(values[first].tolist())

    frame_counts = of_videos("frame_count", int_column(_TABLE, "frame_count", columns.frame_count))
    rates = of_videos("fps", np.full(len(codes), np.nan) if columns.fps is None else columns.fps)
    return tuple(map(Video, names, frame_counts, [None if np.isnan(rate) else rate for rate in rates]))


def _polyps(video: TextCodes, polyp: TextCodes) -> tuple[Polyp, ...]:
    """The polyps that the rows name; each must be of one video."""
    named = np.flatnonzero(polyp.codes >= 0)
    _, first = np.unique(polyp.codes[named], return_index=True)
    home = video.codes[named[first]]
    for row in named[home[polyp.codes[named]] != video.codes[named]]:
        name, first_video = polyp.names[polyp.codes[row]], video.names[home[polyp.codes[row]]]
        raise DataError(
            f"row {row}: polyp {name!r} is in videos {first_video} and {video.names[video.codes[row]]}; "
            f"give each polyp its own name, such as {first_video}_{name}"
        )
    return tuple(Polyp(name, video.names[code]) for name, code in zip(polyp.names, home, strict=True))


def _rows_of(texts: TextCodes, records: Sequence[Video | Polyp]) -> NDArray[np.int64]:
    """The row of each name among the records."""
    row_of = {record.id: row for row, record in enumerate(records)}
    for name in texts.names:
        if name not in row_of:
            raise DataError(f"{name!r} is not in the description")
    return np.array([row_of[name] for name in texts.names], np.int64)


def _one_line(problem: BaseException) -> str:
    """The error as one printable line of limited length, even if the file has strange names."""
    text = str(getattr(problem, "strerror", None) or problem or type(problem).__name__)
    line = " ".join(text.split()).encode("utf-8", "backslashreplace").decode()
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} ..."
