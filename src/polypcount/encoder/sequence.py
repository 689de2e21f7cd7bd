"""From the frame features of a tracklet to one vector, and the head between the vectors and the training loss."""

import math

import torch
from torch import Tensor, nn

from polypcount.encoder.spec import EncoderSpec
from polypcount.errors import DataError


class SequenceEncoder(nn.Module):
    """Features float[b, t, f] and mask bool[b, t] (True: there is a frame) -> one vector per tracklet, float[b, d].

    Args:
        spec: The architecture. Its preprocessing and backbone are not used.
    """

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        self.spec = spec
        self.project = nn.Linear(spec.feature_size, spec.d)
        self.transformer: nn.TransformerEncoder | None = None
        if spec.pooling == "cls":
            self.cls = nn.Parameter(torch.zeros(1, 1, spec.d))
            layer = nn.TransformerEncoderLayer(spec.d, spec.heads, spec.ff, spec.dropout, batch_first=True)
            self.transformer = nn.TransformerEncoder(layer, spec.layers, enable_nested_tensor=False)

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        """float[b, t, f], bool[b, t] -> float[b, d]; every row of the mask must have a frame."""
        _check(features, mask, self.spec.feature_size)
        tokens = self.project_frames(features, mask)
        if self.transformer is None:
            return mean_of_present(tokens, mask)
        tokens, absent = self.with_cls(tokens, mask)
        encoded: Tensor = self.transformer(tokens, src_key_padding_mask=absent)
        return encoded[:, 0]

    def project_frames(self, features: Tensor, mask: Tensor) -> Tensor:
        """float[b, t, f], bool[b, t] -> tokens float[b, t, d], with zeros as features of absent frames."""
        # A NaN there would stay a NaN even if a later weight is zero.
        tokens: Tensor = self.project(features.masked_fill(~mask[:, :, None], 0.0))
        return tokens + sinusoids(mask.long().cumsum(dim=1) - 1, self.spec.d) if self.spec.positions else tokens

    def with_cls(self, tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens float[b, 1 + t, d] with the learned one in front, and bool[b, 1 + t], True where there is no frame."""
        first = self.cls.expand(tokens.shape[0], 1, self.spec.d)
        return torch.cat([first, tokens], dim=1), torch.cat([torch.zeros_like(mask[:, :1]), ~mask], dim=1)


class ProjectionHead(nn.Module):
    """Vectors float[b, d] -> float[b, d] through one hidden layer: what the loss compares, never what is counted."""

    def __init__(self, d: int = 128) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d))

    def forward(self, vectors: Tensor) -> Tensor:
        """float[b, d] -> float[b, d]."""
        projected: Tensor = self.layers(vectors)
        return projected


def mean_of_present(tokens: Tensor, mask: Tensor) -> Tensor:
    """float[b, t, d], bool[b, t] -> the mean float[b, d] over the frames that are there."""
    present = mask[:, :, None].to(tokens.dtype)
    return (tokens * present).sum(dim=1) / present.sum(dim=1)


def sinusoids(positions: Tensor, d: int) -> Tensor:
    """int[...] -> float[..., d]: sin(p / 10000^(2i/d)) in even places 2i, the cosine of the same in odd places 2i+1."""
    rates = torch.exp(torch.arange(0, d, 2, device=positions.device) * (-math.log(10000.0) / d))
    angles = positions[..., None].to(rates.dtype) * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def _check(features: Tensor, mask: Tensor, feature_size: int) -> None:
    if features.ndim != 3 or features.shape[2] != feature_size:
        raise DataError(f"features must have shape [b, t, {feature_size}], found {list(features.shape)}")
    if mask.dtype != torch.bool or mask.shape != features.shape[:2]:
        raise DataError(
            f"mask must be bool{list(features.shape[:2])} like the features, found {mask.dtype}{list(mask.shape)}"
        )
    empty = (~mask.any(dim=1)).nonzero()
    if len(empty):
        raise DataError(f"tracklet {int(empty[0])} of the batch has no frame; leave out tracklets without frames")
