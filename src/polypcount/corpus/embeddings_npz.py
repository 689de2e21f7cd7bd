"""Embeddings as one `.npz` file of plain arrays, a row per tracklet; nothing in it is ever unpickled."""

import math
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from polypcount.corpus.embeddings import Embeddings
from polypcount.corpus.embeddings_columns import (
    LARGEST_BYTES,
    LARGEST_DESCRIPTION,
    MOST_ROWS,
    OPTIONAL,
    REQUIRED,
    FileColumns,
    Texts,
)
from polypcount.errors import DataError

DESCRIPTION = "polypcount"
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, MemoryError)
_BROKEN_HEADER = (ValueError, TypeError, SyntaxError, tokenize.TokenError)
_LAST_CHARACTER = 0x10FFFF


def write_npz(embeddings: Embeddings, description: str, path: Path) -> None:
    """Write the file; not yet whole until this returns."""
    videos = [embeddings.videos[row] for row in embeddings.video]
    columns = {
        "video": _text_array([video.id for video in videos]),
        "start_frame": embeddings.start_frame,
        "stop_frame": embeddings.stop_frame,
        "box_count": embeddings.box_count,
        "polyp": _text_array([embeddings.polyps[row].id if row >= 0 else "" for row in embeddings.polyp]),
        "frame_count": np.array([video.frame_count for video in videos], np.int32),
        "fps": np.array([np.nan if video.fps is None else video.fps for video in videos], np.float64),
        "vectors": embeddings.vectors,
        "together": embeddings.together,
        DESCRIPTION: np.array(description),
    }
    with path.open("wb") as file:
        np.savez_compressed(file, **columns)  # type: ignore[arg-type]


def read_npz(path: Path) -> FileColumns:
    """Read the arrays, whoever wrote them; anything unfit is a `DataError`."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            names = [entry.filename.removesuffix(".npy") for entry in entries]
            for name in (*REQUIRED, "vectors"):
                if name not in names:
                    raise DataError(f"array {name} is missing; the file has {', '.join(names[:12]) or 'no arrays'}")
            wanted = {*REQUIRED, *OPTIONAL, "vectors", "together", DESCRIPTION}
            arrays: dict[str, NDArray[Any]] = {}
            for name, entry in zip(names, entries, strict=True):
                if name in arrays:
                    raise DataError(f"array {name} is there twice")
                if name in wanted:
                    arrays[name] = _read_array(archive, entry, name)
        return _columns(arrays)
    except _BROKEN as problem:
        raise DataError(f"the file is damaged or cut short: {problem or type(problem).__name__}") from problem


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> NDArray[Any]:
    """One array, after seeing that its header promises no more than the entry holds."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(f"array {name} is compressed in a way that numpy does not write")
    with archive.open(entry) as file:
        shape, dtype = _read_header(file, name)
        if dtype.hasobject:
            raise DataError(
                f"array {name} holds Python objects, which are not read; "
                f"make it an array of {'text with dtype=str' if name in ('video', 'polyp') else 'numbers'}"
            )
        declared, held = math.prod(shape) * dtype.itemsize, entry.file_size - file.tell()
        if min(shape, default=0) < 0 or declared != held:
            raise DataError(f"array {name} claims the shape {list(shape)}, {declared:,} bytes, but has {held:,} bytes")
    if declared > LARGEST_BYTES or (shape and shape[0] > MOST_ROWS):
        raise DataError(f"array {name} has the shape {list(shape)}, {declared:,} bytes, which is more than is read")
    with archive.open(entry) as file:
        return npy.read_array(file, allow_pickle=False)


def _read_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of the array that follows in the file."""
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise DataError(f"array {name} has .npy version {version}, expected 1.0 or 2.0")
    try:
        shape, _, dtype = _HEADERS[version](file)
    except _BROKEN_HEADER as problem:
        raise DataError(f"array {name} has a damaged header: {problem}") from problem
    return shape, dtype


def _columns(arrays: dict[str, NDArray[Any]]) -> FileColumns:
    rows = arrays["vectors"].shape[:1]
    for name in (*REQUIRED, *OPTIONAL):
        if name in arrays and arrays[name].shape != rows:
            raise DataError(
                f"array {name} must have the shape {list(rows)}, as vectors have rows, found {list(arrays[name].shape)}"
            )
    fps = arrays.get("fps")
    if fps is not None and fps.dtype.kind not in "iuf":
        raise DataError(f"array fps must hold numbers, found {fps.dtype}")
    return FileColumns(
        video=_texts("video", arrays["video"]),
        polyp=_texts("polyp", arrays["polyp"]) if "polyp" in arrays else None,
        start_frame=arrays["start_frame"],
        stop_frame=arrays["stop_frame"],
        frame_count=arrays["frame_count"],
        box_count=arrays.get("box_count"),
        fps=None if fps is None else fps.astype(np.float64),
        vectors=arrays["vectors"],
        together=arrays.get("together"),
        description=_description(arrays[DESCRIPTION]) if DESCRIPTION in arrays else None,
    )


def _texts(name: str, array: NDArray[Any]) -> Texts:
    if array.dtype.kind != "U":
        raise DataError(f"array {name} must be text, found {array.dtype}; make it with dtype=str")
    _refuse_no_characters(name, array)
    names, codes = np.unique(array, return_inverse=True)
    return Texts.encoded(names.tolist(), codes.astype(np.int64))


def _text_array(texts: list[str]) -> NDArray[np.str_]:
    array = np.array(texts, dtype=np.str_)
    for text in set(texts) - set(array.tolist()):
        raise DataError(f"the id {text!r} ends with a null character, which .npz cannot keep; save as .parquet")
    return array


def _description(array: NDArray[Any]) -> str:
    if array.shape != () or array.dtype.kind != "U" or array.dtype.itemsize > 4 * LARGEST_DESCRIPTION:
        raise DataError(
            f"array {DESCRIPTION} must be one text of at most {LARGEST_DESCRIPTION:,} characters, "
            f"found {array.dtype} {list(array.shape)}"
        )
    _refuse_no_characters(DESCRIPTION, array)
    return str(array)


def _refuse_no_characters(name: str, array: NDArray[Any]) -> None:
    """See that the numbers that stand for characters do; numpy would make Python texts of others that crash it."""
    numbers = np.frombuffer(array.tobytes(), np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    if (numbers > _LAST_CHARACTER).any():
        raise DataError(f"array {name} holds numbers that stand for no character: the file is damaged")
