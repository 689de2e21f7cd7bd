"""Several processes, and pieces: the loss and the gradients of the whole batch in one."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.multiprocessing.spawn import spawn

from polypcount.errors import DataError
from polypcount.training import temporal_contrastive_loss
from polypcount.training.large_batches import backward_in_pieces, gather_rows

VIEWS, WORLD = 12, 2


def model(dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, 4)).double()


def batch() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    inputs = torch.randn(VIEWS, 5, generator=generator, dtype=torch.float64)
    return inputs, torch.arange(VIEWS) % 3, torch.rand(VIEWS, generator=generator, dtype=torch.float64)


def gradients(module: nn.Module) -> list[Tensor]:
    return [parameter.grad.clone() for parameter in module.parameters() if parameter.grad is not None]


def whole_batch() -> tuple[Tensor, list[Tensor]]:
    module, (inputs, labels, positions) = model(), batch()
    loss = temporal_contrastive_loss(module(inputs), labels, positions)
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.detach(), gradients(module)


def one_process(rank: int, out: str, in_pieces: bool, uneven: bool) -> None:
    """What one of the processes does: its share of the batch, the loss of the whole."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{out}/meeting", rank=rank, world_size=WORLD)
    module = nn.parallel.DistributedDataParallel(model())
    inputs, labels, positions = batch()
    each = VIEWS // WORLD
    mine = inputs[rank * each : (rank + 1) * each]

    def loss_of(vectors: Tensor) -> Tensor:
        return temporal_contrastive_loss(gather_rows(vectors), labels, positions)

    try:
        if uneven:
            loss_of(module(mine[: len(mine) - rank]))
        elif in_pieces:
            loss = backward_in_pieces(module, list(torch.split(mine, 2)), loss_of)
        else:
            loss = loss_of(module(mine))
            loss.backward()  # type: ignore[no-untyped-call]
            loss = loss.detach()
        torch.save([loss, *gradients(module), _twice_gathered()], Path(out) / f"{rank}.pt")
    except DataError as problem:
        (Path(out) / f"{rank}.txt").write_text(str(problem))
    dist.destroy_process_group()


def _twice_gathered() -> Tensor:
    """Gradient where two gathered tensors share what comes back: 8 for each, as sum of (a + b)^2 over 2 processes."""
    a, b = (torch.ones(2, 1, dtype=torch.float64, requires_grad=True) for _ in range(2))
    whole = gather_rows(a) + gather_rows(b)
    (whole * whole).sum().backward()  # type: ignore[no-untyped-call]
    assert a.grad is not None
    assert b.grad is not None
    return torch.cat([a.grad, b.grad])


def run_processes(out: Path, **options: Any) -> None:
    arguments = (str(out), options.get("in_pieces", False), options.get("uneven", False))
    spawn(one_process, arguments, nprocs=WORLD)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("in_pieces", [False, True])
def test_two_processes_have_the_loss_and_gradients_of_one(tmp_path: Path, in_pieces: bool) -> None:
    run_processes(tmp_path, in_pieces=in_pieces)
    loss, expected = whole_batch()
    for rank in range(WORLD):
        found, *theirs, twice = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        assert twice.ravel().tolist() == [8, 8, 8, 8]
        assert found.item() == pytest.approx(loss.item(), abs=1e-12)
        assert len(theirs) == len(expected) == 4
        for a, b in zip(theirs, expected, strict=True):
            assert torch.allclose(a, b, atol=1e-10)


def test_unequal_shares_are_one_clear_line(tmp_path: Path) -> None:
    run_processes(tmp_path, uneven=True)
    assert "processes must have equally many views, found 5 to 6" in (tmp_path / "0.txt").read_text()


@pytest.mark.parametrize("size", [1, 5, 12, 100])
def test_pieces_have_the_loss_and_gradients_of_the_whole(size: int) -> None:
    module, (inputs, labels, positions) = model(), batch()
    loss = backward_in_pieces(
        module, list(torch.split(inputs, size)), lambda z: temporal_contrastive_loss(gather_rows(z), labels, positions)
    )
    expected_loss, expected = whole_batch()
    assert loss.item() == pytest.approx(expected_loss.item(), abs=1e-12)
    for a, b in zip(gradients(module), expected, strict=True):
        assert torch.allclose(a, b, atol=1e-12)


def test_dropout_is_the_same_in_both_passes() -> None:
    module, (inputs, labels, positions) = model(0.5), batch()
    seen: list[Tensor] = []
    module.register_forward_hook(lambda _module, _inputs, output: seen.append(output.detach().clone()))
    pieces = list(torch.split(inputs, 4))
    backward_in_pieces(module, pieces, lambda z: temporal_contrastive_loss(z, labels, positions))
    assert len(seen) == 2 * len(pieces)
    for first, second in zip(seen[:3], seen[3:], strict=True):
        assert torch.equal(first, second)
    assert not torch.equal(seen[0], module(pieces[0])), "and other numbers come afterwards"


def test_no_piece_is_an_error() -> None:
    with pytest.raises(DataError, match="no piece to learn from"):
        backward_in_pieces(model(), [], lambda z: z.sum())
