"""Several processes, and pieces: the loss and the gradients of the whole batch in one."""

import os
from pathlib import Path

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


def one_process(rank: int, out: str) -> None:
    """What one of the processes does with its share of the batch: at once, in pieces, and with an unequal share."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{out}/meeting", rank=rank, world_size=WORLD)
    inputs, labels, positions = batch()
    each = VIEWS // WORLD
    share = inputs[rank * each : (rank + 1) * each]

    def loss_of(vectors: Tensor) -> Tensor:
        return temporal_contrastive_loss(gather_rows(vectors), labels, positions)

    at_once, in_pieces = (nn.parallel.DistributedDataParallel(model()) for _ in range(2))
    loss = loss_of(at_once(share))
    loss.backward()  # type: ignore[no-untyped-call]
    torch.save([loss.detach(), *gradients(at_once), _twice_gathered()], Path(out) / f"at_once-{rank}.pt")
    loss = backward_in_pieces(in_pieces, list(torch.split(share, 2)), loss_of)
    torch.save([loss, *gradients(in_pieces), _twice_gathered()], Path(out) / f"in_pieces-{rank}.pt")
    try:
        loss_of(in_pieces(share[: len(share) - rank]))
    except DataError as problem:
        (Path(out) / f"{rank}.txt").write_text(str(problem))
    dist.barrier()  # nobody leaves while another still talks to it
    dist.destroy_process_group()
    os._exit(0)  # threads of gloo that are still running now and then abort a process while Python ends


def _twice_gathered() -> Tensor:
    """Gradient where two gathered tensors share what comes back: 8 for each, as sum of (a + b)^2 over 2 processes."""
    a, b = (torch.ones(2, 1, dtype=torch.float64, requires_grad=True) for _ in range(2))
    whole = gather_rows(a) + gather_rows(b)
    (whole * whole).sum().backward()  # type: ignore[no-untyped-call]
    assert a.grad is not None
    assert b.grad is not None
    return torch.cat([a.grad, b.grad])


def test_two_processes_have_the_loss_and_gradients_of_one(tmp_path: Path) -> None:
    spawn(one_process, (str(tmp_path),), nprocs=WORLD)  # type: ignore[no-untyped-call]
    loss, expected = whole_batch()
    for name in ("at_once-0", "at_once-1", "in_pieces-0", "in_pieces-1"):
        found, *theirs, twice = torch.load(tmp_path / f"{name}.pt", weights_only=True)
        assert twice.ravel().tolist() == [8, 8, 8, 8]
        assert found.item() == pytest.approx(loss.item(), abs=1e-12)
        assert len(theirs) == len(expected) == 4
        for a, b in zip(theirs, expected, strict=True):
            assert torch.allclose(a, b, atol=1e-10)
    assert "equally many views, found 5 to 6" in (tmp_path / "0.txt").read_text()


@pytest.mark.parametrize("size", [1, 5, 100])
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
