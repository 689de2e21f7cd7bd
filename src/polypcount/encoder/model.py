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
        spec: the architecture.
        backbone: a backbone that fits the spec, with its weights; built with random weights if not given.
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
        self.sequence = SequenceEncoder(
            spec.feature_size,
            d=spec.d,
            layers=spec.layers,
            heads=spec.heads,
            ff=spec.ff,
            dropout=spec.dropout,
            pooling=spec.pooling,
            positions=spec.positions,
        )
        self.head = ProjectionHead(spec.d)

    def encode_frames(self, images: Tensor) -> Tensor:
        """Normalised images float[n, 3, h, w] -> features float[n, f]."""
        features: Tensor = self.backbone(images)
        return features

    def encode_sequences(self, features: Tensor, mask: Tensor) -> Tensor:
        """Features float[b, t, f], mask bool[b, t] (True: a frame is there) -> vectors float[b, d]."""
        vectors: Tensor = self.sequence(features, mask)
        return vectors

    def forward(self, clips: Tensor, mask: Tensor) -> Tensor:
        """Normalised clips float[b, t, 3, h, w], mask bool[b, t] -> vectors float[b, d], before the head.

        Only frames that are there go through the backbone, so that padding touches neither time nor batch statistics.
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
        backbone: as in `load_backbone`.
        weights: as in `load_backbone`.
        download: as in `load_backbone`.
        preprocessing: from box to image; if not given, the usual one with the mean and std of the backbone.
        settings: further fields of `EncoderSpec`.
    """
    loaded = load_backbone(backbone, weights=weights, download=download)
    if preprocessing is None:
        preprocessing = Preprocessing(mean=loaded.mean, std=loaded.std)
    spec = EncoderSpec(
        backbone=loaded.name,
        feature_size=loaded.feature_size,
        backbone_config=loaded.config,
        preprocessing=preprocessing,
        **settings,
    )
    return TrackletEncoder(spec, loaded)
