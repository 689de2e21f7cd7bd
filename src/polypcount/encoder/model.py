"""The whole encoder in torch: backbone over frames, sequence encoder over a tracklet, head for the loss."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from polypcount.encoder.backbones import FrameBackbone, build_backbone, load_backbone
from polypcount.encoder.sequence import ProjectionHead, SequenceEncoder
from polypcount.encoder.spec import EncoderSpec, Preprocessing
from polypcount.errors import DataError


class TrackletEncoder(nn.Module):
    """Clips of one tracklet each -> one vector each.

    Args:
        spec: The architecture.
        backbone: A backbone that fits the spec, with its weights; by default one with random weights.
    """

    def __init__(self, spec: EncoderSpec, backbone: FrameBackbone | None = None) -> None:
        super().__init__()
        self.spec = spec
        self.backbone = backbone or build_backbone(spec.backbone, spec.backbone_config)
        if self.backbone.feature_size != spec.feature_size:
            raise DataError(
                f"feature_size must be {self.backbone.feature_size} for backbone {spec.backbone},"
                f" found {spec.feature_size}"
            )
        self.sequence = SequenceEncoder(spec)
        self.head = ProjectionHead(spec.d)

    def encode_frames(self, images: Tensor) -> Tensor:
        """Normalised images float[n, 3, h, w] -> features float[n, f]."""
        features: Tensor = self.backbone(images)
        return features

    def encode_sequences(self, features: Tensor, mask: Tensor) -> Tensor:
        """Features float[b, t, f], mask bool[b, t] (True: there is a frame) -> vectors float[b, d]."""
        vectors: Tensor = self.sequence(features, mask)
        return vectors

    def forward(self, clips: Tensor, mask: Tensor) -> Tensor:
        """Normalised clips float[b, t, 3, h, w], mask bool[b, t] -> vectors float[b, d], before the head.

        Only frames that are there go through the backbone, so that padding costs no time and does not change batch
        statistics.
        """
        if clips.ndim != 5 or mask.shape != clips.shape[:2] or mask.dtype != torch.bool:
            raise DataError(
                "clips must be float[b, t, 3, h, w] and mask bool[b, t],"
                f" found {list(clips.shape)} and {mask.dtype}{list(mask.shape)}"
            )
        present = self.encode_frames(clips.flatten(0, 1) if bool(mask.all()) else clips[mask])
        features = present.new_zeros((*mask.shape, present.shape[-1]))
        features[mask] = present
        return self.encode_sequences(features, mask)


def new_encoder(
    backbone: str | Path = "lite0",
    *,
    weights: bool | str | Path = True,
    download: bool = False,
    preprocessing: Preprocessing | None = None,
    **settings: Any,
) -> TrackletEncoder:
    """An encoder that is ready to be trained.

    Args:
        backbone: As in `load_backbone`.
        weights: As in `load_backbone`.
        download: As in `load_backbone`.
        preprocessing: From box to image; by default the usual one with the mean and std of the backbone.
        settings: Further fields of `EncoderSpec`.
    """
    loaded = load_backbone(backbone, weights=weights, download=download)
    return encoder_over(loaded, preprocessing, **settings)


def encoder_over(
    backbone: FrameBackbone, preprocessing: Preprocessing | None = None, **settings: Any
) -> TrackletEncoder:
    """An encoder over a backbone that is already loaded; otherwise as `new_encoder`."""
    spec = EncoderSpec(
        backbone=backbone.name,
        feature_size=backbone.feature_size,
        backbone_config=backbone.config,
        preprocessing=preprocessing or Preprocessing(mean=backbone.mean, std=backbone.std),
        **settings,
    )
    return TrackletEncoder(spec, backbone)
