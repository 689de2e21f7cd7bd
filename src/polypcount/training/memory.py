"""The memory of one step, counted before the first one, and into how many pieces a batch must be cut to fit."""

import copy
import logging
import math
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from polypcount.encoder import TrackletEncoder
from polypcount.errors import DataError
from polypcount.machine import available_memory
from polypcount.training.batches import AHEAD
from polypcount.training.frozen import features_never_change
from polypcount.training.learner import ViewEncoder, set_training
from polypcount.training.processes import Machine
from polypcount.training.recipe import Recipe

_log = logging.getLogger(__name__)
# Of the free memory. The rest is for the work space of operations, and for gaps between tensors: on a processor, up to
# 13 % more was measured than is counted here.
SHARE_TO_USE = 0.8
_MOMENTS = 2  # of each weight, for Adam


@dataclass(frozen=True, eq=False)
class StepMemory:
    """Bytes that one step takes on one device.

    Attributes:
        fixed: Weights, gradients, the optimiser's state, and the input of the whole batch.
        per_view: The most tensors that are alive at a time in the forward pass, of each view of a piece. Autograd keeps
            nearly all of them for the backward pass.
        views: Views of the whole batch on this device.
    """

    fixed: int
    per_view: int
    views: int

    def of_piece(self, views: int) -> int:
        """Bytes if so many views are encoded at a time."""
        return self.fixed + views * self.per_view

    @property
    def whole(self) -> int:
        """Bytes if the whole batch is encoded at a time."""
        return self.of_piece(self.views)

    def most_views(self, free: int) -> int:
        """How many views at a time fit into so many bytes, in pieces that are about equal; 0 if not even one fits."""
        fit = min(self.views, int((free * SHARE_TO_USE - self.fixed) // self.per_view))
        return math.ceil(self.views / math.ceil(self.views / fit)) if fit > 0 else 0


def step_memory(encoder: TrackletEncoder, recipe: Recipe, machine: Machine, *, on_processor: bool) -> StepMemory:
    """Count the memory of a step, by encoding up to four frames on the processor; the encoder stays as it is.

    Counted are all tensors of PyTorch. Not counted is the work space inside its operations.

    Args:
        encoder: The network.
        recipe: What it learns, and how.
        machine: Precision, and over how many processes a batch is shared.
        on_processor: Whether the step runs on the processor, whose memory also holds the clips that are read ahead.
    """
    views, frames = max(1, recipe.views // machine.processes), recipe.frames
    features = features_never_change(recipe)
    shape = (encoder.spec.feature_size,) if features else (3, recipe.crop.size, recipe.crop.size)
    network = ViewEncoder(copy.deepcopy(encoder).cpu())
    network.encoder.backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    set_training(network.encoder, recipe)
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    short, long, two = (_most_alive(network, *count, shape, machine) for count in ((1, 2), (1, 3), (2, 2)))
    per_frame, per_pair = long - short, two - short  # the second is of a view of two frames
    weights = sum(tensor.nbytes for tensor in network.state_dict().values())
    gradients = sum(parameter.nbytes for parameter in trained)
    states = 1 + _MOMENTS + (machine.processes > 1)  # processes exchange gradients by copies of them
    copies = 4 if features else 5  # 32 bits, and the pixels as they are stored
    waiting = AHEAD * (copies - 4 or 4) if on_processor else 0
    inputs = views * frames * math.prod(shape) * (copies + waiting)
    return StepMemory(
        fixed=weights + states * gradients + inputs + max(0, short - per_pair),
        per_view=max(1, per_pair + (frames - 2) * per_frame),
        views=views,
    )


def free_memory(device: torch.device, devices: int = 1) -> int | None:
    """Bytes that are free for one process on its device; None if that is not known.

    Args:
        device: Of the process.
        devices: Processes of this node, which share the memory of the processor.
    """
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    available = available_memory() if device.type == "cpu" else None
    return None if available is None else available // devices


def views_that_fit(
    encoder: TrackletEncoder, recipe: Recipe, machine: Machine, device: torch.device, before: int | None = None
) -> int | None:
    """How many views to encode at a time: None for the whole batch if it fits, else as many as fit, in equal pieces.

    Args:
        encoder: The network.
        recipe: What it learns, and how.
        machine: If it names a number of views, that is taken.
        device: Where the step runs.
        before: The number with which a resumed run has begun; it is taken again if it fits.

    Raises:
        DataError: Not even one view fits, or the batch does not and cannot be cut.
    """
    free = None if machine.views_at_once else free_memory(device, machine.devices)
    if free is None:
        return machine.views_at_once
    memory = step_memory(encoder, recipe, machine, on_processor=device.type == "cpu")
    most = memory.most_views(free)
    refuse_too_large(memory, recipe, free)
    if before is not None and before <= most:
        return before
    if most == memory.views:
        return None
    _log.info("%s", pieces_text(memory, free))
    return most


def refuse_too_large(memory: StepMemory, recipe: Recipe, free: int) -> None:
    """Raise if a step cannot be made to fit into the free memory."""
    most = memory.most_views(free)
    what = f"of {recipe.frames} images of {recipe.crop.size} pixels with {recipe.model.backbone}"
    room = f"and {gigabytes(free)} are free"
    if most == 0:
        raise DataError(
            f"learning from one view {what} takes about {gigabytes(memory.of_piece(1))} of memory, {room}; take a "
            "smaller crop.size or backbone, shorter views, or bf16",
            mend="precision",
        )
    if most < memory.views and recipe.model.batch_norm == "batch":
        raise DataError(
            f"a batch of {memory.views} views {what} takes about {gigabytes(memory.whole)} of memory, {room}; "
            "model.batch_norm batch takes statistics over the whole batch, so it cannot be cut in pieces: set "
            "model.batch_norm=fixed, take a device with more memory, or bf16",
            mend="precision",
        )


def pieces_text(memory: StepMemory, free: int) -> str:
    """One line: what a batch takes, what there is, and the pieces."""
    at_once = memory.most_views(free)
    return (
        f"a batch of {memory.views} views takes about {gigabytes(memory.whole)} of memory, and {gigabytes(free)} are "
        f"free: it is encoded in {math.ceil(memory.views / at_once)} pieces of up to {at_once} views, with the "
        "gradient of the whole batch"
    )


def gigabytes(count: float) -> str:
    """Bytes as text, such as `1.5 GB`."""
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"


class _Alive(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of all tensors made under it that are alive, and the most of them at a time."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bytes = self.most = 0
        self._storages: dict[int, Any] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._note(tensor.untyped_storage())
        return result

    def ignore(self, tensors: Iterable[Tensor]) -> None:
        """Leave out tensors that are there already."""
        self._storages |= {tensor.untyped_storage()._cdata: tensor for tensor in tensors}

    def _note(self, storage: Any) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._storages:
            return

        def gone(_: Any) -> None:
            self._storages.pop(key, None)
            self.bytes -= size

        self._storages[key] = weakref.ref(storage, gone)
        self.bytes += size
        self.most = max(self.most, self.bytes)


def _most_alive(network: ViewEncoder, views: int, frames: int, shape: tuple[int, ...], machine: Machine) -> int:
    """The most bytes alive at a time while so many views of so many frames are encoded."""
    clips, mask = torch.zeros(views, frames, *shape), torch.ones(views, frames, dtype=torch.bool)
    alive = _Alive()
    alive.ignore([clips, mask, *network.parameters(), *network.buffers()])
    mixed = torch.autocast("cpu", torch.bfloat16, enabled=machine.precision != "32")
    with torch.random.fork_rng(devices=[]), mixed, alive:  # dropout must not change the caller's random state
        network(clips, mask)
    return alive.most
