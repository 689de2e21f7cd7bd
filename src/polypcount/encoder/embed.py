"""From tracklets to vectors: crops, features of frames, one vector for each tracklet."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Corpus, Embeddings, Provenance, Tracklets
from polypcount.encoder.features import Features, KeptFeatures, make_folder
from polypcount.encoder.runtime import Encoder
from polypcount.errors import DataError
from polypcount.machine import available_cores
from polypcount.places import cache_folder
from polypcount.progress import Progress, no_progress
from polypcount.video.opening import existing_source
from polypcount.video.store_build import parts_of
from polypcount.video.store_part import crops_of, open_part

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
    With the engine `openvino-int8` the encoder is calibrated first, with crops from all over what is looked at; the
    provenance tells what it cost. Memory does not grow with the number of tracklets, apart from their vectors.
    """
    if stride < 1 or least < 1 or most < least or min_frames < 0:
        raise DataError(
            "stride and least must be at least 1, most at least as many as least, and min_frames at least 0, "
            f"found {stride}, {least}, {most} and {min_frames}"
        )
    kept = _long_enough(corpus, tracklets, min_frames)
    # What cannot go well is to be known before the work, not after it.
    Embeddings.gather(corpus, kept, np.zeros((len(kept), 1), np.float32))
    for row in np.unique(kept.video).tolist():
        existing_source(corpus.videos[row])
    looked_at = [_looked_at(kept.rows(k), stride, least, most) for k in range(len(kept))]
    folder = cache_folder() / "features" if cache is None else Path(cache)
    make_folder(folder)
    if encoder.needs_calibration and looked_at:
        encoder = _calibrated(corpus, np.unique(np.concatenate(looked_at)), encoder, cache)
    vectors = np.empty((len(kept), encoder.spec.d), np.float32)
    total, done = sum(map(len, looked_at)), 0
    for video in np.unique(kept.video).tolist():
        mine = np.flatnonzero(kept.video == video)
        rows = np.unique(np.concatenate([looked_at[k] for k in mine]))
        parts = parts_of(corpus, rows, encoder.spec.preprocessing.crop)
        features = KeptFeatures.of_parts(parts, encoder, folder)
        for count in features.make(parts, encoder):
            done += count
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
                "engine": encoder.engine,
                "calibration": asdict(encoder.calibration) if encoder.calibration else None,
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


def _calibrated(
    corpus: Corpus, rows: NDArray[np.int64], encoder: Encoder, cache: str | os.PathLike[str] | None
) -> Encoder:
    """The encoder in int8, calibrated with crops at even distances among these rows."""
    from polypcount.encoder.int8 import MOST_CROPS, calibrated

    chosen = rows[evenly(len(rows), MOST_CROPS)]
    parts = parts_of(corpus, chosen, encoder.spec.preprocessing.crop)

    def cut() -> NDArray[np.uint8]:
        return np.stack([crop for part in parts for crop in crops_of(part, open_part(part, available_cores()))])

    folder = (cache_folder() if cache is None else Path(cache)) / "int8"
    return calibrated(encoder, cut, [part.key for part in parts], folder)


def _looked_at(rows: NDArray[np.int64], stride: int, least: int, most: int) -> NDArray[np.int64]:
    chosen = rows[::stride] if -(-len(rows) // stride) >= least else rows
    return chosen[evenly(len(chosen), most)]


def evenly(count: int, most: int) -> NDArray[np.int64]:
    """At most so many of the numbers 0 .. count - 1, at even distances."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def _encode_tracklets(
    places: Sequence[NDArray[np.int64]],
    tracklets: NDArray[np.int64],
    features: KeptFeatures,
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
        batch = np.zeros((len(chosen), longest, features.feature_size), np.float32)
        mask = np.zeros((len(chosen), longest), bool)
        for row, k in enumerate(chosen):
            batch[row, : len(places[k])] = features.take(places[k])
            mask[row, : len(places[k])] = True
        vectors[tracklets[chosen]] = encoder.encode_sequences(batch, mask)
