"""From tracklets to vectors: crops, frame features, one vector for each tracklet."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Corpus, Embeddings, FrameVectors, Provenance, Tracklets
from polypcount.encoder.features import KeptFeatures
from polypcount.encoder.runtime import Encoder
from polypcount.errors import DataError
from polypcount.progress import Progress, no_progress
from polypcount.storage import cache_folder
from polypcount.tracking import evenly, looked_at
from polypcount.video.opening import existing_source
from polypcount.video.store_build import parts_of

# With a stride: all boxes of a tracklet are used if the stride would leave fewer than the first number, and never more
# boxes than the second. The cost of a sequence grows with the square of its length.
_LEAST, _MOST = 8, 1000
_TRACKLETS_AT_ONCE, _FRAMES_AT_ONCE = 32, 4096


def embed(
    corpus: Corpus,
    tracklets: Tracklets,
    encoder: Encoder,
    *,
    stride: int | None = None,
    min_frames: int = 0,
    frames: bool = False,
    cache: str | os.PathLike[str] | None = None,
    progress: Progress = no_progress,
) -> Embeddings:
    """One vector for each tracklet. Memory does not grow with the number of tracklets, apart from their vectors.

    Args:
        corpus: Videos and boxes.
        tracklets: Tracklets of `corpus.boxes`.
        encoder: Computes the vectors.
        stride: None for the same looked-at boxes as in counting, see `tracking.looked_at`. 4 for the paper's rule:
            every 4th box, or every box if that would be fewer than 8; at most 1,000, evenly spaced.
        min_frames: Tracklets of fewer boxes are left out.
        frames: Whether to keep the frame vectors of the looked-at frames too, each encoded as a tracklet of one frame.
            Not possible with a stride.
        cache: Folder for frame features. With it, an interrupted run continues, and a second run or another sequence
            model costs little. By default inside `cache_folder()`.
        progress: Counts crops.
    """
    if (stride is not None and stride < 1) or min_frames < 0:
        raise DataError(f"stride must be at least 1 and min_frames at least 0, found {stride} and {min_frames}")
    if frames and stride is not None:
        raise DataError(
            "vectors of frames are those of the boxes that counting looks at, without a stride", mend="stride"
        )
    chosen = _long_enough(corpus, tracklets, min_frames)
    # Bad input is refused before the work.
    Embeddings.gather(corpus, chosen, np.zeros((len(chosen), 1), np.float32))
    for video in np.unique(chosen.video).tolist():
        existing_source(corpus.videos[video])
    folder = cache_folder() / "features" if cache is None else Path(cache)

    boxes = [_looked_at(chosen.rows(k), stride) for k in range(len(chosen))]
    starts = np.cumsum([0, *map(len, boxes)])  # of each tracklet in the vectors of frames
    vectors = np.empty((len(chosen), encoder.spec.d), np.float32)
    frame_vectors = np.empty((starts[-1] if frames else 0, encoder.spec.d), np.float32)
    done = 0
    for video in np.unique(chosen.video).tolist():
        members = np.flatnonzero(chosen.video == video)
        rows = np.unique(np.concatenate([boxes[k] for k in members]))
        parts = parts_of(corpus, rows, encoder.spec.preprocessing.crop)
        features = KeptFeatures.of_parts(parts, encoder, folder)
        for count in features.make(parts, encoder):
            done += count
            progress(done, int(starts[-1]))
        places = [np.searchsorted(rows, boxes[k]) for k in members]
        vectors[members] = _tracklet_vectors(places, features, encoder)
        for k, place in zip(members, places, strict=True) if frames else ():
            alone = features.take(place)[:, None]
            frame_vectors[starts[k] : starts[k + 1]] = encoder.encode_sequences(alone, np.ones(alone.shape[:2], bool))
    parameters = {
        "corpus": corpus.content_hash,
        "encoder": encoder.fingerprint,
        "engine": encoder.engine,
        "looked_at": "count" if stride is None else stride,
        "min_frames": min_frames,
    }
    provenance = Provenance.now("embed", parameters=parameters, parents=(corpus.provenance,))
    of_frames = None
    if frames:
        tracklet = np.repeat(np.arange(len(chosen)), np.diff(starts))
        frame = corpus.boxes.frame[np.concatenate([np.empty(0, np.int64), *boxes])]
        of_frames = FrameVectors(tracklet, frame, frame_vectors)
    return Embeddings.gather(corpus, chosen, vectors, encoder.fingerprint, provenance, of_frames)


def crops_to_encode(tracklets: Tracklets, *, stride: int | None = None, min_frames: int = 0) -> int:
    """How many crops `embed` encodes with these settings."""
    long_enough = np.flatnonzero(tracklets.box_count >= min_frames)
    return sum(len(_looked_at(tracklets.rows(k), stride)) for k in long_enough.tolist())


def _long_enough(corpus: Corpus, tracklets: Tracklets, min_frames: int) -> Tracklets:
    keep = tracklets.box_count >= min_frames
    if keep.all():
        return tracklets
    new_row = np.append(np.where(keep, np.cumsum(keep) - 1, -1), -1)  # the last is for boxes of no tracklet
    return Tracklets.gather(corpus.boxes, new_row[tracklets.label])


def _looked_at(rows: NDArray[np.int64], stride: int | None) -> NDArray[np.int64]:
    if stride is None:
        return looked_at(rows)
    strided = rows[::stride] if -(-len(rows) // stride) >= _LEAST else rows
    return strided[evenly(len(strided), _MOST)]


def _tracklet_vectors(
    places: Sequence[NDArray[np.int64]], features: KeptFeatures, encoder: Encoder
) -> NDArray[np.float32]:
    """float32[n, d], a vector for each tracklet; `places` are its frames as rows of `features`."""
    vectors = np.empty((len(places), encoder.spec.d), np.float32)
    order = np.argsort([len(place) for place in places], kind="stable")  # equal lengths need no padding
    start = 0
    while start < len(order):
        batch = order[start : start + _TRACKLETS_AT_ONCE]
        while len(batch) > 1 and len(places[batch[-1]]) * len(batch) > _FRAMES_AT_ONCE:
            batch = batch[: len(batch) // 2]
        start += len(batch)
        lengths = np.array([len(places[k]) for k in batch])
        mask = np.arange(lengths[-1]) < lengths[:, None]
        padded = np.zeros((*mask.shape, features.feature_size), np.float32)
        padded[mask] = features.take(np.concatenate([places[k] for k in batch]))
        vectors[batch] = encoder.encode_sequences(padded, mask)
    return vectors
