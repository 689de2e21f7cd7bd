"""Large float32 arrays in NumPy files: written piece by piece, whole, and mapped into memory to read."""

import io
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polypcount.errors import FileError, first_line
from polypcount.storage.files import whole_file

Floats = NDArray[np.float32]


def write_array(file: Path, shape: tuple[int, int], pieces: Iterable[Floats]) -> None:
    """Write float32[n, d] from pieces float32[k, d]; memory does not grow with n."""
    try:
        with whole_file(file) as unfinished, unfinished.open("wb") as stream:
            stream.write(_header(shape))
            for piece in pieces:
                stream.write(np.ascontiguousarray(piece, "<f4").tobytes())
    except OSError as problem:
        raise FileError(f"{file} cannot be written: {first_line(problem)}; POLYPCOUNT_CACHE moves the cache") from None


def open_array(file: Path, shape: tuple[int, int]) -> Floats | None:
    """Map the float32[n, d] in a file; None where it is missing, or not exactly as `write_array` writes it."""
    header = _header(shape)
    try:
        with file.open("rb") as stream:
            begin, size = stream.read(len(header)), os.fstat(stream.fileno()).st_size
        # Compared rather than parsed: on a damaged header NumPy raises errors of many kinds.
        if begin != header or size != len(header) + 4 * shape[0] * shape[1]:
            return None
        return np.asarray(np.load(file, mmap_mode="r", allow_pickle=False))
    except OSError:
        return None


def _header(shape: tuple[int, int]) -> bytes:
    """How a NumPy file of float32 of this shape begins."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return stream.getvalue()
