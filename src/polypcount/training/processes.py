"""Devices and processes: Lightning Fabric, which process is the first, and how a running training is stopped."""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import FrameType
from typing import Any, Literal

import torch

from polypcount.errors import DataError, PolypcountError, first_line

_PRECISIONS = {"32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed"}
# The first process cuts crops and validates while the others wait.
_PATIENCE = timedelta(hours=12)


@dataclass(frozen=True)
class Machine:
    """Where training runs. It decides the speed. What is learnt changes only by rounding and dropout.

    Attributes:
        accelerator: `auto`, `cpu`, `cuda` or another one of Lightning.
        devices: Processes on each node.
        nodes: Machines that train together.
        precision: `32`, or mixed with `bf16` or `16`.
        views_at_once: How many views of a batch a device encodes at a time, with the gradient of the whole batch; None
            for all or, if they would not fit into its memory, as many as fit.
        readers: Threads that decode crops; None for half of the cores.
    """

    accelerator: str = "auto"
    devices: int = 1
    nodes: int = 1
    precision: Literal["32", "bf16", "16"] = "32"
    views_at_once: int | None = None
    readers: int | None = None

    def __post_init__(self) -> None:
        for name in ("devices", "nodes", "views_at_once", "readers"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise DataError(f"{name} must be at least 1, found {value}")
        if self.precision not in _PRECISIONS:
            raise DataError(f"precision must be one of {', '.join(_PRECISIONS)}, found {self.precision}")

    @property
    def processes(self) -> int:
        """Processes on all nodes."""
        return self.devices * self.nodes


def is_first() -> bool:
    """Whether this is the process that prints and writes; true before another is started."""
    # A process that Lightning starts within a SLURM task inherits that task's 0, and has its own LOCAL_RANK as well.
    return _all_zero("RANK", "SLURM_PROCID", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK")


def is_first_of_node() -> bool:
    """Whether this process prepares the files of its node."""
    return _all_zero("LOCAL_RANK", "SLURM_LOCALID")


def refuse_other_number(machine: Machine) -> None:
    """Raise if torchrun or SLURM has started more or fewer processes than the machine has: each would train alone."""
    of_slurm = "" if _all_zero("SLURM_PROCID") else os.environ.get("SLURM_NTASKS", "")
    started = os.environ.get("WORLD_SIZE") or of_slurm
    if started.isdigit() and int(started) != machine.processes:
        raise DataError(
            f"{started} processes have been started, but the settings say {machine.devices} on each of "
            f"{machine.nodes} nodes: the numbers must be the same",
            mend=("devices", "nodes"),
        )


def new_fabric(machine: Machine) -> Any:
    """Lightning Fabric for this machine, not launched."""
    from lightning.fabric import Fabric
    from lightning.fabric.strategies.ddp import DDPStrategy

    # Lightning prints a line about itself and about each process.
    for name in ("lightning.fabric", "lightning.pytorch"):
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        return Fabric(
            accelerator=machine.accelerator,
            devices=machine.devices,
            num_nodes=machine.nodes,
            precision=_PRECISIONS[machine.precision],  # type: ignore[arg-type]
            strategy=DDPStrategy(timeout=_PATIENCE) if machine.processes > 1 else "auto",
        )
    except Exception as problem:  # for a missing device, Lightning raises errors of many kinds
        raise PolypcountError(
            f"training cannot run on {machine.devices} x {machine.accelerator}: {first_line(problem)}; cpu works "
            "everywhere",
            mend="accelerator",
        ) from problem


class Stop:
    """Whether training was asked to stop, by Ctrl-C or SIGTERM."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def agreed(self, fabric: Any) -> bool:
        """Whether any process has been asked; all processes get the same answer."""
        if fabric.world_size > 1:
            own = torch.tensor(float(self.signal or 0), device=fabric.device)
            largest = int(fabric.all_reduce(own, reduce_op="max"))
            self.signal = self.signal or largest or None
        return self.signal is not None


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """The first Ctrl-C or SIGTERM asks for a stop after the current step; a second one ends at once."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    current = ((kind, signal.getsignal(kind)) for kind in (signal.SIGINT, signal.SIGTERM))
    handlers = {kind: handler for kind, handler in current if handler is not None}  # None: not set from Python

    def restore() -> None:
        for kind, handler in handlers.items():
            signal.signal(kind, handler)

    def ask(kind: int, frame: FrameType | None) -> None:  # noqa: ARG001
        stop.signal = kind
        restore()

    for kind in handlers:
        signal.signal(kind, ask)
    try:
        yield stop
    finally:
        restore()


def _all_zero(*variables: str) -> bool:
    """Whether all of these numbers that the environment has are 0."""
    return all(int(value) == 0 for name in variables if (value := os.environ.get(name, "")).isdigit())
