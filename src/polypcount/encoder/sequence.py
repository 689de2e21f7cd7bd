"""From the features of a tracklet's frames to one vector, and the head that the training loss looks through."""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from polypcount.errors import DataError


class SequenceEncoder(nn.Module):
    """Features float[b, t, f] and mask bool[b, t] (True: a frame is there) -> one vector per tracklet, float[b, d].

    Args:
        feature_size: f, numbers per frame.
        d: numbers per tracklet.
        layers: of the transformer.
        heads: of each layer; divides d.
        ff: width inside each layer.
        dropout: share of numbers that training sets to zero.
        pooling: `cls`, a transformer over the frames and a learned token whose output is the vector; or `mean`, the
            mean of the projected frames, without a transformer.
        positions: whether the transformer is told the order of the frames; without, the vector does not depend on it.
    """

    def __init__(
        self,
        feature_size: int,
        *,
        d: int = 128,
        layers: int = 3,
        heads: int = 8,
        ff: int = 2048,
        dropout: float = 0.1,
        pooling: Literal["cls", "mean"] = "cls",
        positions: bool = False,
    ) -> None:
        super().__init__()
        if pooling not in ("cls", "mean"):
            raise DataError(f"pooling must be cls or mean, found {pooling!r}")
        if pooling == "mean" and positions:
            raise DataError("positions need the transformer: set pooling to cls, or positions to off")
        if pooling == "cls" and (d % heads or (positions and d % 2)):
            raise DataError(
                f"d must be divisible by heads, and even where positions are on, found d {d} and {heads} heads"
            )
        self.feature_size = feature_size
        self.d = d
        self.positions = positions
        self.project = nn.Linear(feature_size, d)
        self.transformer: nn.TransformerEncoder | None = None
        if pooling == "cls":
            self.cls = nn.Parameter(torch.zeros(1, 1, d))
            layer = nn.TransformerEncoderLayer(d, heads, ff, dropout, batch_first=True)
            self.transformer = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        """float[b, t, f], bool[b, t] -> float[b, d]; every row of the mask must have a frame."""
        _check(features, mask, self.feature_size)
        tokens = self.project_frames(features, mask)
        if self.transformer is None:
            return mean_of_present(tokens, mask)
        tokens, absent = self.with_cls(tokens, mask)
        encoded: Tensor = self.transformer(tokens, src_key_padding_mask=absent)
        return encoded[:, 0]

    def project_frames(self, features: Tensor, mask: Tensor) -> Tensor:
        """float[b, t, f], bool[b, t] -> tokens float[b, t, d], whatever stands in the place of absent frames."""
        # A NaN there would survive any weight of zero that comes later.
        tokens: Tensor = self.project(features.masked_fill(~mask[:, :, None], 0.0))
        return tokens + sinusoids(mask.long().cumsum(dim=1) - 1, self.d) if self.positions else tokens

    def with_cls(self, tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens float[b, 1 + t, d] with the learned one in front, and bool[b, 1 + t], True where none may look."""
        first = self.cls.expand(tokens.shape[0], 1, self.d)
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
