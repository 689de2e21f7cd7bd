import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from polypcount.encoder import EncoderSpec
from polypcount.encoder.sequence import ProjectionHead, SequenceEncoder, sinusoids
from polypcount.errors import DataError

F = 12
VARIANTS: list[dict[str, Any]] = [{}, {"positions": True}, {"pooling": "mean"}]


def make(**changes: Any) -> SequenceEncoder:
    torch.manual_seed(0)
    small = {"backbone": "tiny", "feature_size": F, "d": 16, "heads": 2, "ff": 32}
    encoder = SequenceEncoder(EncoderSpec(**{**small, **changes})).eval()
    if encoder.transformer is not None:
        torch.nn.init.normal_(encoder.cls)
    return encoder


def encode(encoder: SequenceEncoder, features: Tensor, mask: Tensor | None = None) -> Tensor:
    with torch.no_grad():
        found: Tensor = encoder(features, torch.ones(features.shape[:2], dtype=torch.bool) if mask is None else mask)
    return found


def test_defaults_are_those_of_the_design() -> None:
    encoder = SequenceEncoder(EncoderSpec(backbone="lite0", feature_size=1280))
    assert encoder.transformer is not None
    layer: Any = encoder.transformer.layers[0]
    assert len(encoder.transformer.layers) == 3
    assert (layer.self_attn.num_heads, layer.linear1.out_features, layer.dropout.p) == (8, 2048, 0.1)
    assert not layer.norm_first
    assert layer.activation is torch.nn.functional.relu
    assert encoder.cls.shape == (1, 1, 128)
    assert not encoder.cls.any()
    assert encode(encoder.eval(), torch.randn(2, 3, 1280)).shape == (2, 128)


def test_cls_output_is_a_transformer_over_token_and_frames_computed_by_hand() -> None:
    encoder = make(layers=1, heads=1)
    assert encoder.transformer is not None
    layer: Any = encoder.transformer.layers[0]
    features = torch.randn(1, 5, F)
    with torch.no_grad():
        x = torch.cat([encoder.cls[0], encoder.project(features[0])])
        q, k, v = (x @ layer.self_attn.in_proj_weight.T + layer.self_attn.in_proj_bias).split(16, dim=1)
        shares = torch.stack([torch.exp(q[0] @ key / math.sqrt(16)) for key in k])
        attended = sum(share * value for share, value in zip(shares / shares.sum(), v, strict=True))
        x0 = layer.norm1(x[0] + layer.self_attn.out_proj(attended))
        x0 = layer.norm2(x0 + layer.linear2(layer.linear1(x0).clamp(min=0)))
    torch.testing.assert_close(encode(encoder, features)[0], x0)


def test_mean_pooling_is_the_mean_of_the_projected_frames_that_are_there() -> None:
    encoder = make(pooling="mean")
    features, mask = torch.randn(2, 4, F), torch.tensor([[True, False, True, False], [True] * 4])
    with torch.no_grad():
        rows = [encoder.project(features[b, mask[b]]).mean(dim=0) for b in range(2)]
    torch.testing.assert_close(encode(encoder, features, mask), torch.stack(rows))
    assert encoder.transformer is None


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=25)
@given(t=st.integers(1, 9), padding=st.integers(0, 5), seed=st.integers(0, 99))
def test_padding_changes_nothing_wherever_it_is_and_whatever_is_in_it(
    variant: dict[str, Any], t: int, padding: int, seed: int
) -> None:
    encoder = make(**variant)
    randomly = torch.Generator().manual_seed(seed)
    features = torch.randn(1, t, F, generator=randomly)
    places = torch.randperm(t + padding, generator=randomly)[:t].sort().values
    padded = torch.full((1, t + padding, F), torch.nan)
    padded[:, places] = features
    mask = torch.zeros(1, t + padding, dtype=torch.bool)
    mask[:, places] = True
    torch.testing.assert_close(encode(encoder, padded, mask), encode(encoder, features), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=25)
@given(order=st.permutations(range(6)))
def test_order_counts_with_positions_only(variant: dict[str, Any], order: list[int]) -> None:
    encoder = make(**variant)
    features = torch.randn(2, 6, F, generator=torch.Generator().manual_seed(1))
    same = torch.allclose(encode(encoder, features), encode(encoder, features[:, order]), rtol=1e-4, atol=1e-5)
    assert same == (not variant.get("positions") or order == sorted(order))


def test_rows_of_a_batch_do_not_meet() -> None:
    encoder = make()
    features = torch.randn(3, 5, F)
    alone = torch.cat([encode(encoder, features[row : row + 1]) for row in range(3)])
    torch.testing.assert_close(encode(encoder, features), alone, rtol=1e-4, atol=1e-5)


def test_gradient_stays_finite_next_to_nan_padding() -> None:
    encoder = make().train()
    features = torch.randn(2, 3, F)
    features[0, 2] = torch.nan
    encoder(features, torch.tensor([[True, True, False], [True] * 3])).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in encoder.parameters())


def test_sinusoids_follow_their_formula() -> None:
    found = sinusoids(torch.arange(4), 6)
    for p in range(4):
        for i in range(3):
            angle = p / 10000 ** (2 * i / 6)
            assert found[p, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert found[p, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_head_has_one_hidden_layer() -> None:
    head = ProjectionHead()
    assert [type(layer).__name__ for layer in head.layers] == ["Linear", "ReLU", "Linear"]
    assert head(torch.randn(2, 128)).shape == (2, 128)


@pytest.mark.parametrize(
    ("features", "mask", "message"),
    [
        (torch.zeros(2, 3, F), torch.tensor([[True] * 3, [False] * 3]), "tracklet 1 of the batch has no frame"),
        (torch.zeros(2, 0, F), torch.zeros(2, 0, dtype=torch.bool), "tracklet 0 of the batch has no frame"),
        (torch.zeros(2, 3, F + 1), torch.ones(2, 3, dtype=torch.bool), r"shape \[b, t, 12\], found \[2, 3, 13\]"),
        (torch.zeros(2, 3, F), torch.ones(2, 3), r"mask must be bool\[2, 3\] .* found torch.float32\[2, 3\]"),
        (torch.zeros(2, 3, F), torch.ones(2, 4, dtype=torch.bool), r"mask must be bool\[2, 3\]"),
    ],
)
def test_bad_batch_is_refused(features: Tensor, mask: Tensor, message: str) -> None:
    with pytest.raises(DataError, match=message):
        make()(features, mask)
