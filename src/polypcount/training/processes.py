"""Devices and processes: Lightning Fabric, launched; who is first; and how a running training is asked to stop."""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import FrameType
from typing import Any, Literal, get_args

import torch

from polypcount.errors import DataError, PolypcountError, first_line

Precision = Literal["32", "bf16", "16"]
_PRECISIONS = {"32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed"}
# The first process cuts crops and validates while the others wait.
_PATIENCE = timedelta(hours=12)


@dataclass(frozen=True)
class Machine:
    """Where training runs; it decides how fast, not what is learnt, apart from rounding and dropout.

    accelerator: `auto`, `cpu`, `cuda` or another that Lightning knows. devices: processes on each of `nodes`.
    precision: `32`, or mixed with `bf16` or `16`.
    views_at_once: how many views of a batch a device encodes at a time, with the gradient of the whole batch; None for
        all. readers: threads that decode crops; None for half of the cores.
    """

    accelerator: str = "auto"
    devices: int = 1
    nodes: int = 1
    precision: Precision = "32"
    views_at_once: int | None = None
    readers: int | None = None

    def __post_init__(self) -> None:
        for name in ("devices", "nodes", "views_at_once", "readers"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise DataError(f"{name} must be at least 1, found {value}")
        if self.precision not in get_args(Precision):
            raise DataError(f"precision must be one of {', '.join(get_args(Precision))}, found {self.precision}")

    @property
    def processes(self) -> int:
        """In all."""
        return self.devices * self.nodes


def is_first() -> bool:
    """Whether this is the process that prints and writes; true before any other is started."""
    # A process that Lightning starts within a SLURM task inherits that task's 0, and has a number of its own besides.
    return _all_zero("RANK", "SLURM_PROCID", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK")


def is_first_of_node() -> bool:
    """Whether this process prepares the files of its node."""
    return _all_zero("LOCAL_RANK", "SLURM_LOCALID")


def refuse_other_number(machine: Machine) -> None:
    """Raise where torchrun or SLURM has started more or fewer processes than are asked for: each would train alone."""
    of_slurm = None if _all_zero("SLURM_PROCID") else os.environ.get("SLURM_NTASKS")
    started = os.environ.get("WORLD_SIZE") or of_slurm
    if started and started.isdigit() and int(started) != machine.processes:
        raise DataError(
            f"{started} processes have been started, and {machine.devices} on each of {machine.nodes} nodes are asked "
            "for: give the same numbers with --devices and --nodes"
        )


def new_fabric(machine: Machine) -> Any:
    """Lightning Fabric for this machine, not launched."""
    from lightning.fabric import Fabric
    from lightning.fabric.strategies.ddp import DDPStrategy

    # It announces itself, and each process, on the screen.
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
    except Exception as problem:  # of many kinds, for a device that is not there
        raise PolypcountError(
            f"training cannot run on {machine.devices} x {machine.accelerator}: {first_line(problem)} "
            "(--accelerator cpu works everywhere)"
        ) from problem


class Stop:
    """Whether somebody has asked for the end, by Ctrl-C or SIGTERM."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def agreed(self, fabric: Any) -> bool:
        """Whether any process has been asked; the same answer in all of them."""
        if fabric.world_size == 1:
            return self.signal is not None
        asked = torch.tensor(float(self.signal or 0), device=fabric.device)
        found = int(fabric.all_reduce(asked, reduce_op="max"))
        if found and self.signal is None:
            self.signal = found
        return found > 0


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """The first Ctrl-C or SIGTERM asks for a stop after the current step; a second one ends at once."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    known = {kind: signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)}
    before = {kind: handler for kind, handler in known.items() if handler is not None}  # None: not Python's

    def ask(kind: int, frame: FrameType | None) -> None:  # noqa: ARG001
        stop.signal = kind
        for each, handler in before.items():
            signal.signal(each, handler)

    for kind in before:
        signal.signal(kind, ask)
    try:
        yield stop
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _all_zero(*variables: str) -> bool:
    """Whether none of these numbers, where the environment has them, is above 0."""
    return all(int(value) == 0 for name in variables if (value := os.environ.get(name, "")).isdigit())
