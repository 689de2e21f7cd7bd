"""A backbone that does not learn sees each frame once: its features are cached beside the crops."""

import logging
from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from polypcount.encoder import TrackletEncoder
from polypcount.encoder.engine_onnx import open_frames
from polypcount.encoder.export import export_encoder
from polypcount.errors import DataError, FileError
from polypcount.progress import Progress, no_progress
from polypcount.storage import content_key, open_array, write_array
from polypcount.training.batches import Clips, RowNumbers, read_ahead, read_clips
from polypcount.training.learner import Learner
from polypcount.training.processes import is_first_of_node
from polypcount.training.recipe import Recipe
from polypcount.video import CropStore

_log = logging.getLogger(__name__)
_FRAMES_AT_ONCE = 64


def features_never_change(recipe: Recipe) -> bool:
    """Whether the backbone gives the same features for a frame during the whole training."""
    return recipe.optimizer.backbone_factor == 0 and recipe.augmentation.off


class FrameFeatures:
    """Features of crops by box row, in place of a `CropStore`. Any number of threads may ask at once.

    Args:
        features: float32[n, f], memory-mapped.
        rows: int64[n], box rows in rising order.
    """

    def __init__(self, features: NDArray[np.float32], rows: RowNumbers) -> None:
        self.rows = rows
        self._features = features

    def crops(self, rows: RowNumbers, size: int | None = None) -> NDArray[np.float32]:  # noqa: ARG002
        """Features float32[n, f] of the crops of box rows, in their order; `size` has no effect."""
        places = np.searchsorted(self.rows, rows)
        present = places < len(self.rows)
        present[present] = self.rows[places[present]] == rows[present]
        if not present.all():
            raise DataError(f"there are no features of box row {rows[np.argmin(present)]}")
        return self._features[places]


def open_both_features(
    learner: Learner, crops: CropStore, validation: CropStore | None, readers: int, progress: Progress = no_progress
) -> tuple[FrameFeatures, FrameFeatures | None]:
    """Features for learning and for validation; the first process of a node computes them."""
    if not is_first_of_node():
        learner.fabric.barrier()
        progress = no_progress
    features = open_features(learner, crops, readers, progress)
    validated = None if validation is None else open_features(learner, validation, readers, progress)
    if is_first_of_node():
        learner.fabric.barrier()
    return features, validated


def open_features(learner: Learner, store: CropStore, readers: int, progress: Progress = no_progress) -> FrameFeatures:
    """Features of all crops of a store, float32; computed if the file is missing or damaged.

    Args:
        learner: The encoder and its device.
        store: The crops.
        readers: Threads that read crops.
        progress: Counts frames.
    """
    file = store.path.with_name(f"features-{_key(learner.encoder, store)[:32]}.npy")
    shape = (len(store), learner.encoder.spec.feature_size)
    features = open_array(file, shape)
    if features is None:
        _log.info("the backbone stays as it is: computing the features of %d frames once", len(store))
        write_array(file, shape, _computed(learner, store, readers, progress))
        features = open_array(file, shape)
    if features is None:
        raise FileError(f"{file} was removed or changed while it was used; run again")
    progress(len(store), len(store))
    return FrameFeatures(features, store.rows)


def _computed(learner: Learner, store: CropStore, readers: int, progress: Progress) -> Iterator[NDArray[np.float32]]:
    """Features of some crops at a time."""
    size, run = learner.encoder.spec.preprocessing.crop.size, _backbone(learner)
    starts = range(0, len(store), _FRAMES_AT_ONCE)

    def read(start: int) -> Clips:
        return read_clips(store, [store.rows[start : start + _FRAMES_AT_ONCE]], size)

    for start, clips in read_ahead(read, starts, readers):
        progress(start, len(store))
        with torch.inference_mode():
            features = run(clips)
        if not np.isfinite(features).all():
            raise DataError(
                f"backbone {learner.encoder.spec.backbone} gives features that are not finite; take other weights"
            )
        yield features


def _backbone(learner: Learner) -> Callable[[Clips], NDArray[np.float32]]:
    """Computes the features of the frames of one clip; on a processor with ONNX Runtime, 3 times as fast as torch."""
    if learner.fabric.device.type == "cpu":
        model, _ = export_encoder(learner.encoder)
        run = open_frames(model, "the backbone", learner.encoder.spec, torch.get_num_threads())
        return lambda clips: run(clips.images[0].numpy())
    return lambda clips: learner.encoder.encode_frames(learner.images(clips, None)[0]).float().cpu().numpy()


def _key(encoder: TrackletEncoder, store: CropStore) -> str:
    """Key of everything that decides the features: the crops, how they become numbers, and the backbone's weights."""
    spec, images = encoder.spec, encoder.spec.preprocessing
    about = ["training features 2", store.key, spec.backbone, spec.backbone_config, images.mean, images.std]
    weights = encoder.backbone.state_dict()
    return content_key(*about, list(weights), *(tensor.cpu().numpy() for tensor in weights.values()))
