"""Batches too large for one device: over several processes, or in pieces, with the gradient of the whole batch."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from polypcount.errors import DataError

_Piece = TypeVar("_Piece")


class _Gathered(torch.autograd.Function):
    """All processes' rows in order; backwards, each process gets the summed gradient of its own rows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:  # noqa: ARG004
        parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:  # noqa: ARG004
        whole = gradients[0].clone(memory_format=torch.contiguous_format)  # a copy: autograd may use the original
        dist.all_reduce(whole)
        rows = len(whole) // dist.get_world_size()
        return whole[dist.get_rank() * rows : (dist.get_rank() + 1) * rows]


def gather_rows(rows: Tensor) -> Tensor:
    """The rows of all processes, [world * n, d], in the order of the processes, with gradients to each.

    Every process then has the loss of the whole batch. The gradient to the rows of a process is summed over processes,
    which is `world` times that of one loss. DistributedDataParallel takes the mean of the gradients to weights over
    processes, which makes it the gradient of one loss again. Without a process group, the rows are returned unchanged.
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return rows
    counts = torch.tensor([len(rows), -len(rows)], device=rows.device)
    dist.all_reduce(counts, dist.ReduceOp.MAX)
    if int(counts[0]) != -int(counts[1]):
        raise DataError(
            f"processes must have equally many views, found {-int(counts[1])} to {int(counts[0])}: "
            "the batch must be a multiple of the number of processes"
        )
    return _Gathered.apply(rows)  # type: ignore[no-any-return,no-untyped-call]


def backward_in_pieces(
    encode: Callable[[_Piece], Tensor],
    pieces: Sequence[_Piece],
    loss_of: Callable[[Tensor], Tensor],
    *,
    backward: Callable[[Tensor, Tensor], None] | None = None,
    quietly: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Tensor:
    """Add the gradient of the loss of a whole batch to the weights, with the memory of one piece.

    First all pieces are encoded without recording gradients. The loss of all vectors gives the gradient of each vector.
    Then every piece is encoded again, in the same random state, and its gradient is passed on to the weights.
    The result is the gradient of the whole batch, not of a sum of losses of pieces.

    Args:
        encode: Encodes a piece as vectors [views, d]. A second call must give the same result, apart from torch's
            random numbers. The vector of a view must not depend on other views, so batch normalisation is in evaluation
            mode.
        pieces: At least one.
        loss_of: Computes a scalar from the vectors of all pieces [n, d].
        backward: Takes vectors and the gradient to them; None for torch's own.
        quietly: Context for all pieces except the last, in which processes do not exchange gradients yet.

    Returns:
        The loss.
    """
    if not pieces:
        raise DataError("there is no piece to learn from")
    states, vectors = [], []
    with torch.no_grad():
        for piece in pieces:
            states.append(_random_state())
            vectors.append(encode(piece))
    whole = torch.cat(vectors).requires_grad_()
    after = _random_state()
    loss = loss_of(whole)
    (gradient,) = torch.autograd.grad(loss, whole)
    parts = torch.split(gradient, [len(part) for part in vectors])
    for number, (piece, state, part) in enumerate(zip(pieces, states, parts, strict=True), 1):
        _set_random_state(state)
        with nullcontext() if number == len(pieces) else quietly():
            encoded = encode(piece)
            if backward is None:
                encoded.backward(part)  # type: ignore[no-untyped-call]
            else:
                backward(encoded, part)
    _set_random_state(after)
    return loss.detach()


def _random_state() -> tuple[Tensor, list[Tensor]]:
    return torch.get_rng_state(), torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []


def _set_random_state(state: tuple[Tensor, list[Tensor]]) -> None:
    torch.set_rng_state(state[0])
    if state[1]:
        torch.cuda.set_rng_state_all(state[1])
