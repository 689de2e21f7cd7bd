"""A backbone that does not learn sees each frame once: its features are kept in a file beside the crops."""

import hashlib
import io
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from polypcount.encoder import TrackletEncoder
from polypcount.encoder.engine_onnx import open_frames
from polypcount.encoder.export import export_encoder
from polypcount.errors import DataError, FileError, first_line
from polypcount.progress import Progress, no_progress
from polypcount.training.batches import Rows
from polypcount.training.clips import Clips, read_ahead, read_clips
from polypcount.training.learner import Learner
from polypcount.training.processes import is_first_of_node
from polypcount.training.recipe import Recipe
from polypcount.video import CropStore
from polypcount.whole import whole_file

_log = logging.getLogger(__name__)
_FORMAT = "polypcount training features 1"
_FRAMES_AT_ONCE = 64
Features = NDArray[np.float32]


def features_never_change(recipe: Recipe) -> bool:
    """Whether the backbone gives the same for a frame all through a training."""
    return recipe.optimizer.backbone_factor == 0 and recipe.augmentation.off


class FrameFeatures:
    """Features of crops by box row, in place of a `CropStore`. Any number of threads may ask at once.

    features: float32[n, f], memory-mapped. rows: int64[n], box rows, rising.
    """

    def __init__(self, features: Features, rows: Rows) -> None:
        self.rows = rows
        self._features = features

    def crops(self, rows: Rows, size: int | None = None) -> Features:  # noqa: ARG002
        """Features of the crops of box rows in the order given, float32[n, f]. size: means nothing here."""
        places = np.searchsorted(self.rows, rows)
        known = places < len(self.rows)
        known[known] = self.rows[places[known]] == rows[known]
        if not known.all():
            raise DataError(f"there are no features of box row {rows[np.argmin(known)]}")
        return self._features[places]


def open_both_features(
    learner: Learner, crops: CropStore, judged: CropStore | None, readers: int, progress: Progress = no_progress
) -> tuple[FrameFeatures, FrameFeatures | None]:
    """Features of what is learnt from and of what is validated on; the first process of a node computes them."""

    def both(tell: Progress) -> tuple[FrameFeatures, FrameFeatures | None]:
        learnt = open_features(learner, crops, readers, tell)
        return learnt, None if judged is None else open_features(learner, judged, readers, tell)

    found = both(progress) if is_first_of_node() else None
    learner.fabric.barrier()
    return found or both(no_progress)


def open_features(learner: Learner, store: CropStore, readers: int, progress: Progress = no_progress) -> FrameFeatures:
    """Features of all crops of a store, in 32 bits; computed where they are not there yet, or not as they should be.

    readers: threads that read crops. progress: counts frames.
    """
    file = store.path.with_name(f"features-{_key(learner.encoder, store)[:32]}.npy")
    shape = (len(store), learner.encoder.spec.feature_size)
    features = _mapped(file, shape)
    if features is None:
        _log.info("the backbone stays as it is: computing the features of %d frames once", len(store))
        _compute(file, shape, learner, store, readers, progress)
        features = _mapped(file, shape)
    if features is None:
        raise FileError(f"{file} has gone or was changed while it was used; run again")
    progress(len(store), len(store))
    return FrameFeatures(features, store.rows)


def _compute(
    file: Path, shape: tuple[int, int], learner: Learner, store: CropStore, readers: int, progress: Progress
) -> None:
    """Write the features of all crops; memory does not grow with their number."""
    size, frames = learner.encoder.spec.preprocessing.crop.size, _backbone(learner)
    starts = range(0, len(store), _FRAMES_AT_ONCE)

    def read(start: int) -> Clips:
        return read_clips(store, [store.rows[start : start + _FRAMES_AT_ONCE]], size)

    try:
        with whole_file(file) as unfinished, unfinished.open("wb") as stream, torch.inference_mode():
            stream.write(_header(shape))
            for start, clips in read_ahead(read, starts, readers):
                progress(start, len(store))
                found = frames(clips)
                if not np.isfinite(found).all():
                    raise DataError(
                        f"backbone {learner.encoder.spec.backbone} gives features that are not finite; take others"
                    )
                stream.write(found.astype("<f4").tobytes())
    except OSError as problem:
        raise FileError(
            f"{file}: features cannot be kept there ({first_line(problem)}); POLYPCOUNT_CACHE moves the cache"
        ) from None


def _backbone(learner: Learner) -> Callable[[Clips], Features]:
    """What computes features of the frames of one clip: on a processor ONNX Runtime, three times as fast as torch."""
    if learner.fabric.device.type == "cpu":
        model, _ = export_encoder(learner.encoder)
        run = open_frames(model, "the backbone", learner.encoder.spec, torch.get_num_threads())
        return lambda clips: run(clips.images[0].numpy())
    return lambda clips: learner.encoder.encode_frames(learner.images(clips, None)[0]).float().cpu().numpy()


def _mapped(file: Path, shape: tuple[int, int]) -> Features | None:
    """The features in a file; None where it is not there, or is not exactly as `_compute` writes it."""
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


def _key(encoder: TrackletEncoder, store: CropStore) -> str:
    """SHA-256 of all that decides the features: the crops, how they become numbers, and what computes with them."""
    spec = encoder.spec
    images = spec.preprocessing
    about = [_FORMAT, store.key, spec.backbone, spec.backbone_config, images.mean, images.std]
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, tensor in encoder.backbone.state_dict().items():
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()
