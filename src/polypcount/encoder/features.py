"""Frame features in files: one file for each piece of a video, so that only one piece is in memory."""

import itertools
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
from polypcount.storage import content_key, open_array, write_array
from polypcount.video.store_part import CropPart, crops_of, open_part

_CROPS_AT_ONCE = 64


@dataclass(frozen=True)
class KeptFeatures:
    """Features of the crops of one video, float32[n, f], on disk.

    Attributes:
        files: One for each piece.
        starts: int64[pieces + 1], the first row of each piece, and n.
        feature_size: f.
    """

    files: tuple[Path, ...]
    starts: NDArray[np.int64]
    feature_size: int

    @classmethod
    def of_parts(cls, parts: Sequence[CropPart], encoder: Encoder, folder: Path) -> "KeptFeatures":
        """Where the features of these pieces are kept, or will be."""
        files = tuple(folder / f"{_key(part, encoder)}.npy" for part in parts)
        starts = np.cumsum([0, *(len(part.rows) for part in parts)])
        return cls(files, starts, encoder.spec.feature_size)

    def make(self, parts: Sequence[CropPart], encoder: Encoder) -> Iterator[int]:
        """Compute missing or damaged pieces; yields the number of crops of each piece once it is there."""
        source = None
        for piece, part in enumerate(parts):
            features = self._open(piece)
            if features is None or not np.isfinite(features).all():
                # Opening a long video file takes seconds, so all its pieces share one open file. Listed images are few.
                if source is None or len(part.files):
                    source = open_part(part, available_cores())
                features = np.concatenate(list(_encoded(crops_of(part, source), encoder)))
                if not np.isfinite(features).all():
                    raise DataError(f"video {part.video.id}: the encoder {encoder.folder} gives infinite features")
                write_array(self.files[piece], features.shape, [features])
            yield len(part.rows)

    def take(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """float32[len(rows), f]. The files are mapped only while they are copied from."""
        features = np.empty((len(rows), self.feature_size), np.float32)
        pieces = np.searchsorted(self.starts, rows, side="right") - 1
        for piece in np.unique(pieces).tolist():
            mapped = self._open(piece)
            if mapped is None:
                raise FileError(f"{self.files[piece]} was removed or changed while it was used; run again")
            features[pieces == piece] = mapped[rows[pieces == piece] - self.starts[piece]]
        return features

    def _open(self, piece: int) -> NDArray[np.float32] | None:
        return open_array(self.files[piece], (int(np.diff(self.starts)[piece]), self.feature_size))


def _encoded(crops: Iterator[NDArray[np.uint8]], encoder: Encoder) -> Iterator[NDArray[np.float32]]:
    """Features of crops in batches; the next batch is cut while one is encoded."""

    def cut() -> list[NDArray[np.uint8]]:
        return list(itertools.islice(crops, _CROPS_AT_ONCE))

    with ThreadPoolExecutor(1) as ahead:
        batch = cut()
        while batch:
            coming = ahead.submit(cut)
            yield encoder.encode_frames(np.stack(batch))
            batch = coming.result()


def _key(part: CropPart, encoder: Encoder) -> str:
    """Hash of all that decides the features of a piece: its pixels, their conversion to numbers, what computes them."""
    images = encoder.spec.preprocessing
    model = encoder.description["files"][FRAME]
    # Engines agree to 1e-4 only, so features of different engines are not mixed.
    return content_key("features 3", part.key, model, images.mean, images.std, encoder.engine)
