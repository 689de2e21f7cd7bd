"""The network while it learns: rates, groups of weights, what stays fixed, and targets."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from polypcount.errors import DataError
from polypcount.training.batches import Batch, Clips
from polypcount.training.learner import Learner, batch_targets, new_optimizer, schedule_factor, set_learning_rate
from polypcount.training.processes import Machine, new_fabric
from polypcount.training.recipe import OptimizerSettings
from polypcount.training.recipe_file import load_recipe
from polypcount.training.start import new_model

TINY: dict[str, Any] = {"backbone": "tiny", "weights": False, "d": 8, "heads": 2, "ff": 16, "layers": 1}
LR = 1e-2


def learner(views_at_once: int | None = None, **optimizer: Any) -> Learner:
    model = {key: optimizer.pop(key) for key in ("batch_norm", "dropout") if key in optimizer}
    values: dict[str, Any] = {
        "crop": {"size": 16},
        "model": {**TINY, **model},
        "optimizer": {"lr": LR, "weight_decay": 0.1, **optimizer},
    }
    recipe = load_recipe({"base": "temporal", **values})
    fabric = new_fabric(Machine("cpu"))
    fabric.launch()
    return Learner(fabric, new_model(recipe), recipe, views_at_once)


def a_batch() -> tuple[Batch, Clips]:
    """Four views of two polyps, of which two are shorter than the others."""
    rng = np.random.default_rng(0)
    mask = torch.tensor([[True, True, True], [True, True, False], [True, True, True], [True, False, False]])
    images = torch.tensor(rng.integers(0, 256, (4, 3, 16, 16, 3), dtype=np.uint8)) * mask[:, :, None, None, None]
    rows = tuple(np.arange(int(count)) for count in mask.sum(1))
    batch = Batch(rows, np.array([0, 0, 1, 1]), np.array([0, 1, 2, 3]), np.array([0.0, 0.4, 0.1, 1.0]))
    return batch, Clips(images, mask)


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    return {name: values.detach().clone() for name, values in module.state_dict().items()}


def changed(before: dict[str, Tensor], module: nn.Module) -> set[str]:
    return {name for name, values in module.state_dict().items() if not torch.equal(values, before[name])}


@settings(max_examples=40)
@given(warmup=st.floats(0, 1), progress=st.floats(0, 1))
def test_the_schedule_is_its_formula(warmup: float, progress: float) -> None:
    assert schedule_factor(OptimizerSettings(warmup=warmup), progress) == 1, "constant, whatever the warmup"
    found = schedule_factor(OptimizerSettings(schedule="cosine", warmup=warmup), progress)
    if progress < warmup:
        assert found == progress / warmup
    elif warmup < 1 - 1e-6:
        assert found == pytest.approx(math.cos(math.pi / 2 * (progress - warmup) / (1 - warmup)) ** 2, abs=1e-12)
    assert 0 <= found <= 1


@pytest.mark.parametrize("warmup", [0.0, 0.1, 0.5, 0.999])
def test_the_ends_of_the_schedule(warmup: float) -> None:
    settings = OptimizerSettings(schedule="cosine", warmup=warmup)
    assert schedule_factor(settings, 0) == (0 if warmup else 1)
    assert schedule_factor(settings, warmup) == 1
    assert schedule_factor(settings, (1 + warmup) / 2) == pytest.approx(0.5)
    assert schedule_factor(settings, 1) == pytest.approx(0, abs=1e-12)
    assert schedule_factor(OptimizerSettings(schedule="cosine", warmup=1), 1) == 1


@pytest.mark.parametrize(("name", "kind"), [("adamw", torch.optim.AdamW), ("adam", torch.optim.Adam)])
def test_the_backbone_has_a_rate_of_its_own(name: str, kind: type) -> None:
    settings: Any = {"name": name, "lr": 0.2, "weight_decay": 0.3, "backbone_factor": 0.1, "schedule": "cosine"}
    encoder = new_model(load_recipe({"model": TINY}))
    optimizer = new_optimizer(encoder, OptimizerSettings(**settings))
    assert type(optimizer) is kind
    rest, backbone = optimizer.param_groups
    assert {id(one) for one in backbone["params"]} == {id(one) for one in encoder.backbone.parameters()}
    assert len(rest["params"]) + len(backbone["params"]) == len(list(encoder.parameters())), "each once"
    assert len({id(one) for one in rest["params"] + backbone["params"]}) == len(list(encoder.parameters()))
    assert (rest["weight_decay"], backbone["weight_decay"]) == (0.3, 0.3)
    assert set_learning_rate(optimizer, OptimizerSettings(**settings), 0.5) == pytest.approx(0.1)
    assert (rest["lr"], backbone["lr"]) == (pytest.approx(0.1), pytest.approx(0.01))
    (only,) = new_optimizer(encoder, OptimizerSettings(**{**settings, "backbone_factor": 0})).param_groups
    assert [id(one) for one in only["params"]] == [id(one) for one in rest["params"]]


@pytest.mark.parametrize("factor", [0.0, 1.0])
def test_a_backbone_with_factor_0_stays_bitwise(factor: float) -> None:
    learning = learner(backbone_factor=factor)
    before = weights_of(learning.encoder)
    loss, rate = learning.step(*a_batch(), epoch=0, step=0, progress=0)
    assert math.isfinite(loss)
    assert rate == LR
    moved = changed(before, learning.encoder)
    learnt = {name for name, _ in learning.encoder.named_parameters()}
    assert {name for name in learnt if not name.startswith("backbone.")} <= moved
    assert any(name.startswith("backbone.") for name in moved) == (factor > 0)
    assert not learning.encoder.backbone.training or factor > 0
    assert moved <= learnt, "statistics of batch norms are no weights, and fixed"


def test_fixed_batch_norms_keep_mode_and_statistics() -> None:
    for batch_norm, fixed in (("fixed", True), ("batch", False)):
        learning = learner(batch_norm=batch_norm)
        norms = [one for one in learning.encoder.modules() if isinstance(one, nn.BatchNorm2d)]
        before = [weights_of(norm) for norm in norms]
        assert len(norms) == 3
        for _ in range(2):
            assert all(norm.training != fixed for norm in norms)
            assert learning.encoder.sequence.training
            learning.step(*a_batch(), epoch=0, step=0, progress=0)
            learning.encoder.eval()
            learning.set_training()
        for norm, was in zip(norms, before, strict=True):
            moved = changed(was, norm) & {"running_mean", "running_var", "num_batches_tracked"}
            assert moved == (set() if fixed else {"running_mean", "running_var", "num_batches_tracked"})


def test_steps_depend_on_nothing_but_seed_epoch_and_step() -> None:
    losses, weights = [], []
    for noise in (1, 2):
        learning = learner()
        torch.manual_seed(noise)
        losses.append(learning.step(*a_batch(), epoch=1, step=2, progress=0)[0])
        weights.append(list(weights_of(learning.encoder).values()))
    assert losses[0] == losses[1]
    assert all(map(torch.equal, *weights))
    other = learner().step(*a_batch(), epoch=1, step=3, progress=0)[0]
    assert other != losses[0], "dropout differs from step to step"


def test_padding_and_pieces_change_nothing() -> None:
    def gradients(views_at_once: int | None, longer: bool) -> list[Tensor]:
        learning = learner(views_at_once, dropout=0)
        batch, clips = a_batch()
        if longer:
            images = torch.cat([clips.images, torch.full_like(clips.images, 77)], 1)
            clips = Clips(images, torch.cat([clips.mask, torch.zeros_like(clips.mask)], 1))
        learning.step(batch, clips, epoch=0, step=0, progress=0)
        return [one.grad for one in learning.encoder.parameters() if one.grad is not None]

    expected = gradients(None, longer=False)
    for views_at_once, longer in ((None, True), (3, False), (1, True)):
        for a, b in zip(gradients(views_at_once, longer), expected, strict=True):
            assert torch.allclose(a, b, rtol=1e-3, atol=1e-6)


def test_gradients_are_clipped_to_their_length() -> None:
    learning = learner(clip=1e-3)
    learning.step(*a_batch(), epoch=0, step=0, progress=0)
    length = torch.cat([one.grad.flatten() for one in learning.encoder.parameters() if one.grad is not None]).norm()
    assert float(length) == pytest.approx(1e-3, rel=1e-3)


def test_a_loss_that_is_no_number_says_how_to_go_on() -> None:
    learning = learner()
    with torch.no_grad():
        next(learning.encoder.head.parameters()).fill_(float("nan"))
    with pytest.raises(
        DataError, match=r"^epoch 3, step 5: the training has diverged.*a lower optimizer.lr, with optimizer.clip=1"
    ):
        learning.step(*a_batch(), epoch=2, step=4, progress=0)


def test_images_are_normalised_as_the_encoder_says() -> None:
    learning, (_, clips) = learner(), a_batch()
    about = learning.encoder.spec.preprocessing
    expected = (clips.images.numpy() / 255 - np.array(about.mean)) / np.array(about.std)
    found = learning.images(clips, None)
    assert found.shape == (4, 3, 3, 16, 16)
    assert np.allclose(found.permute(0, 1, 3, 4, 2).numpy(), expected, atol=1e-5)


def test_each_kind_of_targets_is_picked() -> None:
    position = np.array([0.0, 0.4, 0.1, 1.0, 0.5])
    batch = Batch((np.arange(1),) * 5, np.array([0, 0, 0, 1, 1]), np.array([0, 1, 1, 0, 2]), position)
    near = np.exp(-2 * np.abs(position[:, None] - position))
    others = 1 - np.eye(5)
    weights = {
        "instance": others * (batch.sample[:, None] == batch.sample),
        "identity": others * (batch.polyp[:, None] == batch.polyp),
        "temporal": others * (batch.polyp[:, None] == batch.polyp) * near,
    }
    for kind, weight in weights.items():
        settings = load_recipe("mve", [f"loss.targets={kind}", "loss.decay=2"]).loss
        expected = weight / np.maximum(weight.sum(1, keepdims=True), 1e-9)
        assert np.allclose(batch_targets(batch, settings).numpy(), expected), kind
