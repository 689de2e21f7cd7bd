"""From tracklets to vectors: crops, features of frames, one vector for each tracklet."""

import hashlib
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Corpus, Embeddings, Provenance, Tracklets
from polypcount.encoder.runtime import Encoder
from polypcount.errors import DataError, FileError
from polypcount.machine import available_cores
from polypcount.places import cache_folder
from polypcount.progress import Progress, no_progress
from polypcount.video.store_build import parts_of
from polypcount.video.store_part import Part, crops_of, open_part
from polypcount.whole import whole_file

Features = NDArray[np.float32]
_FORMAT = "polypcount features 1"
_CROPS_AT_ONCE = 64
_TRACKLETS_AT_ONCE, _FRAMES_AT_ONCE = 32, 4096


def embed(
    corpus: Corpus,
    tracklets: Tracklets,
    encoder: Encoder,
    *,
    stride: int = 4,
    least: int = 8,
    most: int = 1000,
    min_frames: int = 0,
    cache: str | os.PathLike[str] | None = None,
    progress: Progress = no_progress,
) -> Embeddings:
    """One vector for each tracklet.

    Of a tracklet every `stride`-th box is looked at, or every box where that would be fewer than `least`. Where it
    would be more than `most`, so many are taken at even distances, since the cost of a sequence grows with its square.

    tracklets: of `corpus.boxes`. min_frames: tracklets of fewer boxes are left out.
    cache: folder in which features of frames are kept, so that an interrupted run goes on, and a second one or another
        sequence model costs little; the user's cache folder, if not given. progress: counts crops.
    """
    if stride < 1 or least < 1 or most < least or min_frames < 0:
        raise DataError(
            "stride and least must be at least 1, most at least as many as least, and min_frames at least 0, "
            f"found {stride}, {least}, {most} and {min_frames}"
        )
    kept = _long_enough(corpus, tracklets, min_frames)
    # What cannot go well is to be known before the work, not after it.
    Embeddings.gather(corpus, kept, np.zeros((len(kept), 1), np.float32))
    _refuse_missing_sources(corpus, kept)
    looked_at = [_looked_at(kept.rows(k), stride, least, most) for k in range(len(kept))]
    folder = cache_folder() / "features" if cache is None else Path(cache)
    _make_cache(folder)
    vectors = np.empty((len(kept), encoder.spec.d), np.float32)
    total, done = sum(map(len, looked_at)), 0
    for video in np.unique(kept.video).tolist():
        mine = np.flatnonzero(kept.video == video)
        rows = np.unique(np.concatenate([looked_at[k] for k in mine]))
        features = np.empty((len(rows), encoder.spec.feature_size), np.float32)
        place = 0
        for part in _features_of(parts_of(corpus, rows, encoder.spec.preprocessing.crop), encoder, folder):
            features[place : place + len(part)] = part
            place += len(part)
            done += len(part)
            progress(done, total)
        _encode_tracklets([np.searchsorted(rows, looked_at[k]) for k in mine], mine, features, encoder, vectors)
    return Embeddings.gather(
        corpus,
        kept,
        vectors,
        encoder.fingerprint,
        Provenance.now(
            "embed",
            parameters={
                "corpus": corpus.content_hash,
                "encoder": encoder.fingerprint,
                "stride": stride,
                "least": least,
                "most": most,
                "min_frames": min_frames,
            },
            parents=(corpus.provenance,),
        ),
    )


def _long_enough(corpus: Corpus, tracklets: Tracklets, min_frames: int) -> Tracklets:
    keep = tracklets.box_count >= min_frames
    if keep.all():
        return tracklets
    now = np.append(np.where(keep, np.cumsum(keep) - 1, -1), -1)  # the last for boxes of no tracklet
    return Tracklets.gather(corpus.boxes, now[tracklets.label])


def _refuse_missing_sources(corpus: Corpus, tracklets: Tracklets) -> None:
    for row in np.unique(tracklets.video).tolist():
        video = corpus.videos[row]
        if video.source is None:
            raise DataError(f"video {video.id} has no source: there are no pixels to look at")
        if not os.path.exists(video.source):
            raise FileError(f"video {video.id}: its source {video.source} does not exist; put it there or import anew")


def _make_cache(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as problem:
        raise FileError(
            f"{folder}: features cannot be kept there ({problem.strerror}); POLYPCOUNT_CACHE moves the cache"
        ) from None


def _looked_at(rows: NDArray[np.int64], stride: int, least: int, most: int) -> NDArray[np.int64]:
    chosen = rows[::stride] if -(-len(rows) // stride) >= least else rows
    return chosen if len(chosen) <= most else chosen[np.linspace(0, len(chosen) - 1, most).round().astype(int)]


def _features_of(parts: Sequence[Part], encoder: Encoder, folder: Path) -> Iterator[Features]:
    """Features of one video's crops, piece by piece; what is in the folder is taken from there."""
    files = [folder / f"{_key(part, encoder)}.npy" for part in parts]
    source = None
    for part, file in zip(parts, files, strict=True):
        known = _load(file, (len(part.rows), encoder.spec.feature_size))
        if known is None:
            # One opening serves all pieces of a video file: of a long one it takes seconds. Listed images are few.
            if source is None or len(part.files):
                source = open_part(part, available_cores())
            known = np.concatenate(list(_encoded(crops_of(part, source), encoder)))
            if not np.isfinite(known).all():
                raise DataError(
                    f"video {part.video.id}: the encoder {encoder.folder} gives features that are not finite"
                )
            try:
                with whole_file(file) as unfinished, unfinished.open("wb") as stream:
                    np.save(stream, known, allow_pickle=False)
            except OSError as problem:
                raise FileError(
                    f"{file}: features cannot be kept ({problem.strerror}); POLYPCOUNT_CACHE moves the cache"
                ) from None
        yield known


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


def _encode_tracklets(
    places: Sequence[NDArray[np.int64]],
    tracklets: NDArray[np.int64],
    features: Features,
    encoder: Encoder,
    vectors: Features,
) -> None:
    """Fill in the vectors of some tracklets. places: for each, its frames as rows of `features`."""
    order = np.argsort([len(place) for place in places], kind="stable")  # equally long ones need no padding
    start = 0
    while start < len(order):
        chosen = order[start : start + _TRACKLETS_AT_ONCE]
        while len(chosen) > 1 and len(places[chosen[-1]]) * len(chosen) > _FRAMES_AT_ONCE:
            chosen = chosen[: len(chosen) // 2]
        start += len(chosen)
        longest = len(places[chosen[-1]])
        batch = np.zeros((len(chosen), longest, features.shape[1]), np.float32)
        mask = np.zeros((len(chosen), longest), bool)
        for row, k in enumerate(chosen):
            batch[row, : len(places[k])] = features[places[k]]
            mask[row, : len(places[k])] = True
        vectors[tracklets[chosen]] = encoder.encode_sequences(batch, mask)


def _key(part: Part, encoder: Encoder) -> str:
    """Hash of all that decides the features of a piece: its pixels, the frame model, how pixels become numbers."""
    images = encoder.spec.preprocessing
    about = [_FORMAT, part.key, encoder.description["files"]["frame.onnx"], images.mean, images.std]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _load(file: Path, shape: tuple[int, int]) -> Features | None:
    """Features that were kept; None where there are none, or none that can be used."""
    size = 4 * shape[0] * shape[1]
    try:
        with file.open("rb") as stream:
            if not size < os.fstat(stream.fileno()).st_size < size + 1024 or stream.read(6) != b"\x93NUMPY":
                return None
            stream.seek(0)
            known = np.lib.format.read_array(stream, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError):
        return None
    return known if known.shape == shape and known.dtype == np.float32 and np.isfinite(known).all() else None
