"""Targets and loss, against nested loops in float64."""

import logging
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from polypcount.errors import DataError
from polypcount.training import (
    identity_targets,
    instance_targets,
    soft_contrastive_loss,
    temporal_contrastive_loss,
    temporal_targets,
)


@st.composite
def batches(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor]:
    """Vectors, polyps and positions of a batch in which at least two views share a polyp."""
    count = draw(st.integers(2, 12))
    labels = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count).filter(lambda v: len(set(v)) < len(v)))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    vectors = torch.tensor(rng.normal(size=(count, draw(st.integers(1, 6)))))
    return vectors, torch.tensor(labels), torch.tensor(rng.random(count))


def plain_targets(labels: list[int], positions: list[float], decay: float) -> list[list[float]]:
    """Equation 2, entry by entry."""
    rows = []
    for i in range(len(labels)):
        weights = [
            math.exp(-decay * abs(positions[i] - positions[j])) if i != j and labels[i] == labels[j] else 0.0
            for j in range(len(labels))
        ]
        rows.append([weight / sum(weights) if sum(weights) else 0.0 for weight in weights])
    return rows


def plain_loss(vectors: list[list[float]], targets: list[list[float]], temperature: float) -> float:
    """Equations 1 and 3, entry by entry."""
    unit = [[x / math.hypot(*row) for x in row] for row in vectors]
    losses = []
    for i in range(len(unit)):
        if sum(targets[i]) == 0:
            continue
        scores = [math.exp(sum(a * b for a, b in zip(unit[i], other, strict=True)) / temperature) for other in unit]
        whole = sum(score for j, score in enumerate(scores) if j != i)
        losses.append(-sum(targets[i][j] * math.log(scores[j] / whole) for j in range(len(unit)) if j != i))
    return sum(losses) / len(losses)


@settings(max_examples=150)
@given(batch=batches(), decay=st.floats(0, 20), temperature=st.floats(0.05, 2))
def test_targets_and_loss_equal_nested_loops(
    batch: tuple[Tensor, Tensor, Tensor], decay: float, temperature: float
) -> None:
    vectors, labels, positions = batch
    expected = plain_targets(labels.tolist(), positions.tolist(), decay)
    found = temporal_targets(labels, positions, decay)
    assert found.numpy() == pytest.approx(np.array(expected), abs=1e-9)
    loss = temporal_contrastive_loss(vectors, labels, positions, temperature, decay)
    assert loss.item() == pytest.approx(plain_loss(vectors.tolist(), expected, temperature), rel=1e-9)


@given(batch=batches())
def test_without_decay_it_is_the_supervised_loss(batch: tuple[Tensor, Tensor, Tensor]) -> None:
    vectors, labels, positions = batch
    supervised = soft_contrastive_loss(vectors, identity_targets(labels).double())
    assert temporal_contrastive_loss(vectors, labels, positions, decay=0).item() == pytest.approx(
        supervised.item(), rel=1e-6
    )


@given(seed=st.integers(0, 1000), pairs=st.integers(1, 6), temperature=st.floats(0.05, 1))
def test_two_views_of_each_sample_are_nt_xent(seed: int, pairs: int, temperature: float) -> None:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(2 * pairs, 5))
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    losses = []
    for i in range(2 * pairs):
        partner = i + pairs if i < pairs else i - pairs
        scores = np.exp(unit @ unit[i] / temperature)
        losses.append(-np.log(scores[partner] / np.delete(scores, i).sum()))
    targets = instance_targets(torch.arange(pairs).repeat(2))
    assert soft_contrastive_loss(torch.tensor(z), targets, temperature).item() == pytest.approx(
        np.mean(losses), rel=1e-6, abs=1e-9
    )


@given(batch=batches(), seed=st.integers(0, 100))
def test_the_order_of_the_batch_does_not_matter(batch: tuple[Tensor, Tensor, Tensor], seed: int) -> None:
    vectors, labels, positions = batch
    order = torch.tensor(np.random.default_rng(seed).permutation(len(labels)))
    here = temporal_contrastive_loss(vectors, labels, positions)
    there = temporal_contrastive_loss(vectors[order], labels[order], positions[order])
    assert there.item() == pytest.approx(here.item(), rel=1e-9)


@settings(max_examples=20)
@given(batch=batches())
def test_gradients_are_right(batch: tuple[Tensor, Tensor, Tensor]) -> None:
    vectors, labels, positions = batch
    vectors = (vectors + vectors.sign()).requires_grad_()  # away from zero, where the direction is undefined
    assert torch.autograd.gradcheck(lambda z: temporal_contrastive_loss(z, labels, positions), (vectors,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "vectors",
    [
        torch.ones(4, 3),
        torch.zeros(4, 3),
        torch.eye(4)[:, :3] * 6e4,
        torch.tensor([[6e4, 0, 0], [-6e4, 0, 0], [6e-5, 0, 0], [0, 1.0, 0]]),
    ],
    ids=["identical", "zero", "huge", "huge and tiny"],
)
def test_loss_and_gradients_stay_finite(vectors: Tensor, dtype: torch.dtype) -> None:
    for labels in (torch.tensor([0, 0, 0, 0]), torch.tensor([0, 0, 1, 2])):
        z = vectors.detach().clone().to(dtype).requires_grad_()
        loss = temporal_contrastive_loss(z, labels, torch.tensor([0.0, 0.1, 0.9, 1.0]), temperature=0.07)
        loss.backward()  # type: ignore[no-untyped-call]
        assert z.grad is not None
        assert torch.isfinite(loss)
        assert torch.isfinite(z.grad).all()


def test_huge_norms_do_not_overflow() -> None:
    rng = np.random.default_rng(0)
    z = torch.tensor(rng.normal(size=(6, 4)), dtype=torch.float32)
    labels, positions = torch.tensor([0, 0, 1, 1, 2, 2]), torch.rand(6)
    expected = temporal_contrastive_loss(z, labels, positions).item()
    assert temporal_contrastive_loss(z * 1e37, labels, positions).item() == pytest.approx(expected, rel=1e-5)


def test_targets_far_apart_in_time_do_not_vanish() -> None:
    shares = temporal_targets(torch.tensor([0, 0, 0]), torch.tensor([0.0, 1.0, 1.0]), decay=1e6)
    assert shares.tolist() == [[0, 0.5, 0.5], [0, 0, 1], [0, 1, 0]]


def test_rows_without_a_positive_are_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    z = torch.tensor([[1.0, 0], [0.6, 0.8], [0, 1]], dtype=torch.float64)
    with caplog.at_level(logging.INFO, logger="polypcount"):
        loss = soft_contrastive_loss(z, identity_targets(torch.tensor([0, 0, 1])), 1.0)
    # Row 0: scores 0.6 and 0; row 1: scores 0.6 and 0.8; row 2 has no positive.
    first = -math.log(math.exp(0.6) / (math.exp(0.6) + math.exp(0)))
    second = -math.log(math.exp(0.6) / (math.exp(0.6) + math.exp(0.8)))
    assert loss.item() == pytest.approx((first + second) / 2)
    assert "1 of 3 views of the batch have no positive" in caplog.text


def test_one_polyp_alone_in_the_batch() -> None:
    # All candidates are positives, so the best is to have them all equally near: log(2) with equal vectors.
    loss = temporal_contrastive_loss(torch.ones(3, 2), torch.zeros(3, dtype=torch.long), torch.rand(3))
    assert loss.item() == pytest.approx(math.log(2), rel=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: soft_contrastive_loss(torch.ones(2, 3), torch.zeros(2, 2)), "at least 2 views"),
        (lambda: soft_contrastive_loss(torch.ones(1, 3), torch.ones(1, 1)), "none of the 1 views"),
        (lambda: soft_contrastive_loss(torch.ones(2, 3), torch.ones(3, 3)), r"found \[2, 3\] and \[3, 3\]"),
        (lambda: soft_contrastive_loss(torch.ones(2, 3), torch.ones(2, 2), 0), "temperature must be above 0"),
        (lambda: identity_targets(torch.tensor([0, -1])), "labels must be at least 0, found -1"),
        (lambda: identity_targets(torch.tensor([0.5])), "labels must be whole numbers"),
        (lambda: temporal_targets(torch.tensor([0, 0]), torch.tensor([0.1])), "positions must have one value a view"),
        (lambda: temporal_targets(torch.tensor([0, 0]), torch.tensor([0.1, math.nan])), "positions must be finite"),
        (
            lambda: temporal_targets(torch.tensor([0, 0]), torch.tensor([0.1, 0.2]), -1),
            "decay must be a number of at least 0",
        ),
        (lambda: temporal_targets(torch.tensor([0, 0]), torch.tensor([0.1, 0.2]), math.inf), "decay must be a number"),
        (lambda: soft_contrastive_loss(torch.ones(2, 3), torch.full((2, 2), math.nan)), "targets must be finite"),
    ],
)
def test_bad_input(call: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        call()  # type: ignore[operator]
