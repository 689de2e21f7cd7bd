"""Features of frames, kept in files: one for each piece of a video, so that no more than a piece is held in memory."""

import hashlib
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polypcount.encoder.manifest import FRAME
from polypcount.encoder.runtime import Encoder
from polypcount.errors import DataError, FileError
from polypcount.machine import available_cores
from polypcount.video.store_part import Part, crops_of, open_part
from polypcount.whole import whole_file

Features = NDArray[np.float32]
_FORMAT = "polypcount features 2"
_CROPS_AT_ONCE = 64


@dataclass(frozen=True)
class KeptFeatures:
    """Features of the crops of one video, float32[n, f], on disk.

    Attributes:
        files: one for each piece.
        starts: int64[pieces + 1], the first row of each piece, and n.
        feature_size: f.
    """

    files: tuple[Path, ...]
    starts: NDArray[np.int64]
    feature_size: int

    @classmethod
    def of_parts(cls, parts: Sequence[Part], encoder: Encoder, folder: Path) -> "KeptFeatures":
        """Where the features of these pieces are kept, or will be."""
        files = tuple(folder / f"{_key(part, encoder)}.npy" for part in parts)
        starts = np.cumsum([0, *(len(part.rows) for part in parts)])
        return cls(files, starts, encoder.spec.feature_size)

    def make(self, parts: Sequence[Part], encoder: Encoder) -> Iterator[int]:
        """Compute what is not there, or cannot be used; yields the number of crops of each piece as it is there."""
        source = None
        for part, file in zip(parts, self.files, strict=True):
            if not _usable(file, (len(part.rows), self.feature_size)):
                # One opening serves all pieces of a video file: of a long one it takes seconds. Listed images are few.
                if source is None or len(part.files):
                    source = open_part(part, available_cores())
                _save(file, _computed(part, encoder, crops_of(part, source)))
            yield len(part.rows)

    def take(self, rows: NDArray[np.int64]) -> Features:
        """float32[len(rows), f]. The files are mapped for as long as it takes to copy from them."""
        found = np.empty((len(rows), self.feature_size), np.float32)
        piece = np.searchsorted(self.starts, rows, side="right") - 1
        for index in np.unique(piece).tolist():
            chosen = piece == index
            found[chosen] = self._mapped(index)[rows[chosen] - self.starts[index]]
        return found

    def _mapped(self, piece: int) -> Features:
        file, count = self.files[piece], int(self.starts[piece + 1] - self.starts[piece])
        try:
            mapped: Features = np.load(file, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            mapped = np.empty(0, np.float32)
        if mapped.shape != (count, self.feature_size) or mapped.dtype != np.float32:
            raise FileError(f"{file} has gone or was changed while it was used; run again, it goes on where it stopped")
        return mapped


def make_folder(folder: Path) -> None:
    """See that features can be kept there, before there are any."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as problem:
        raise FileError(
            f"{folder}: features cannot be kept there ({problem.strerror}); POLYPCOUNT_CACHE moves the cache"
        ) from None


def _computed(part: Part, encoder: Encoder, crops: Iterator[NDArray[np.uint8]]) -> Features:
    features = np.concatenate(list(_encoded(crops, encoder)))
    if not np.isfinite(features).all():
        raise DataError(f"video {part.video.id}: the encoder {encoder.folder} gives features that are not finite")
    return features


def _encoded(crops: Iterator[NDArray[np.uint8]], encoder: Encoder) -> Iterator[Features]:
    """Features of crops in batches; the next batch is cut while one is encoded."""

    def cut() -> list[NDArray[np.uint8]]:
        return list(itertools.islice(crops, _CROPS_AT_ONCE))

    with ThreadPoolExecutor(1) as ahead:
        batch = cut()
        while batch:
            coming = ahead.submit(cut)
            yield encoder.encode_frames(np.stack(batch))
            batch = coming.result()


def _key(part: Part, encoder: Encoder) -> str:
    """Hash of all that decides the features of a piece: its pixels, how they become numbers, what computes with them.

    Engines of 32 bits agree to 1e-4, which is not the same.
    """
    images = encoder.spec.preprocessing
    about = [_FORMAT, part.key, encoder.description["files"][FRAME], images.mean, images.std, encoder.engine]
    about.append(encoder.calibration.key if encoder.calibration else None)
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _save(file: Path, features: Features) -> None:
    try:
        with whole_file(file) as unfinished, unfinished.open("wb") as stream:
            np.save(stream, features, allow_pickle=False)
    except OSError as problem:
        raise FileError(
            f"{file}: features cannot be kept ({problem.strerror}); POLYPCOUNT_CACHE moves the cache"
        ) from None


def _usable(file: Path, shape: tuple[int, int]) -> bool:
    """Whether there are features of this shape, all finite."""
    size = 4 * shape[0] * shape[1]
    try:
        with file.open("rb") as stream:
            if not size < os.fstat(stream.fileno()).st_size < size + 1024 or stream.read(6) != b"\x93NUMPY":
                return False
            stream.seek(0)
            known = np.lib.format.read_array(stream, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError):
        return False
    return bool(known.shape == shape and known.dtype == np.float32 and np.isfinite(known).all())
