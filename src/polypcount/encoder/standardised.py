"""The baseline without training: standardised features of a frozen backbone, averaged over a tracklet."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from polypcount.encoder.backbones import FrameBackbone, load_backbone
from polypcount.encoder.model import TrackletEncoder, encoder_over
from polypcount.encoder.spec import Preprocessing
from polypcount.errors import DataError


def standardised_encoder(
    backbone: FrameBackbone | str | Path,
    features: NDArray[np.float32],
    preprocessing: Preprocessing | None = None,
) -> TrackletEncoder:
    """An encoder whose vector is the mean over a tracklet's frames of (feature - mean) / std, for each dimension.

    Mean and standard deviation (that of the population, divided by n) are those of `features`. A dimension whose
    variation is only float32 rounding is 0 in every vector. Such vectors are compared by their cosine. The same
    arguments
    give the same fingerprint.

    Args:
        backbone: With its weights, or a name for `load_backbone`. It becomes part of the encoder, in evaluation mode.
        features: float32[n, f], features of training images by this backbone in evaluation mode; n is at least 2.
        preprocessing: What made those images; by default the usual one with the mean and std of the backbone.
    """
    with torch.random.fork_rng(devices=[]):  # so that the unused head is the same every time
        torch.manual_seed(0)
        loaded = backbone if isinstance(backbone, FrameBackbone) else load_backbone(backbone)
        size = loaded.feature_size
        scale, shift = _standardising(features, size)
        encoder = encoder_over(loaded, preprocessing, d=size, pooling="mean")
    with torch.no_grad():
        encoder.sequence.project.weight.copy_(torch.diag(torch.from_numpy(scale)))
        encoder.sequence.project.bias.copy_(torch.from_numpy(shift))
    return encoder.eval()


def _standardising(features: NDArray[np.float32], size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """float32[n, f] -> scale 1 / std and shift -mean / std, float64[f]; both 0 for a constant dimension."""
    if features.ndim != 2 or features.shape[1] != size or features.dtype.kind != "f" or len(features) < 2:
        raise DataError(
            f"features must be float32[n, {size}], n at least 2, found {features.dtype}{list(features.shape)}"
        )
    if not np.isfinite(features).all():
        raise DataError("features must be finite, found NaN or infinity")
    mean, std = features.mean(axis=0, dtype=np.float64), features.std(axis=0, dtype=np.float64)
    varies = std > np.finfo(np.float32).eps * np.abs(features).max(axis=0)
    if not varies.any():
        raise DataError("features must differ between images, found the same for all")
    scale = np.divide(1.0, std, out=np.zeros(size), where=varies)
    return scale, -mean * scale
