"""Processes: which is the first, how a training is asked to stop, and machines that cannot be had."""

import os
import signal
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from polypcount.errors import DataError, PolypcountError
from polypcount.training.loggers import LOGGERS, refuse_missing
from polypcount.training.processes import (
    Machine,
    Stop,
    is_first,
    is_first_of_node,
    new_fabric,
    refuse_other_number,
    stop_on_signals,
)

VARIABLES = ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "SLURM_PROCID", "SLURM_LOCALID")


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"devices": 0}, "devices must be at least 1, found 0"),
        ({"nodes": -1}, "nodes must be at least 1, found -1"),
        ({"views_at_once": 0}, "views_at_once must be at least 1, found 0"),
        ({"readers": 0}, "readers must be at least 1, found 0"),
        ({"precision": "64"}, "precision must be one of 32, bf16, 16, found 64"),
        ({"precision": 32}, "precision must be one of 32, bf16, 16, found 32"),
    ],
)
def test_a_machine_that_cannot_be_is_refused(values: dict[str, Any], line: str) -> None:
    with pytest.raises(DataError) as caught:
        Machine(**values)
    assert str(caught.value) == line


def test_processes_are_devices_of_all_nodes() -> None:
    assert Machine().processes == 1
    assert Machine(devices=4, nodes=3).processes == 12


@pytest.mark.parametrize("accelerator", ["nonsense", "tpu"])
def test_a_device_that_is_not_there_is_one_line(accelerator: str) -> None:
    with pytest.raises(PolypcountError, match=rf"training cannot run on 1 x {accelerator}: ") as no:
        new_fabric(Machine(accelerator))
    assert no.value.mend == ("accelerator",)
    assert "\n" not in str(no.value)


def test_fabric_is_as_the_machine_says() -> None:
    for precision, name in (("32", "32-true"), ("bf16", "bf16-mixed")):
        fabric = new_fabric(Machine("cpu", precision=precision))  # type: ignore[arg-type]
        assert (fabric.world_size, fabric.device.type) == (1, "cpu")
        assert fabric.strategy.precision.precision == name


@pytest.mark.parametrize(
    ("environment", "first", "first_of_node"),
    [
        ({}, True, True),
        ({"RANK": "0", "LOCAL_RANK": "0", "GROUP_RANK": "0"}, True, True),  # torchrun
        ({"RANK": "1", "LOCAL_RANK": "1", "GROUP_RANK": "0"}, False, False),
        ({"RANK": "4", "LOCAL_RANK": "0", "GROUP_RANK": "1"}, False, True),
        ({"LOCAL_RANK": "0", "NODE_RANK": "0"}, True, True),  # started by Lightning
        ({"LOCAL_RANK": "1", "NODE_RANK": "0"}, False, False),
        ({"LOCAL_RANK": "0", "NODE_RANK": "1"}, False, True),
        ({"SLURM_PROCID": "0", "SLURM_LOCALID": "0"}, True, True),  # srun
        ({"SLURM_PROCID": "3", "SLURM_LOCALID": "3"}, False, False),
        ({"SLURM_PROCID": "4", "SLURM_LOCALID": "0"}, False, True),
        # Started by Lightning in an interactive session of SLURM, whose 0 it inherits.
        ({"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "LOCAL_RANK": "1", "NODE_RANK": "0"}, False, False),
        ({"RANK": "", "LOCAL_RANK": "none"}, True, True),
    ],
)
def test_one_process_is_first(
    environment: dict[str, str], first: bool, first_of_node: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert (is_first(), is_first_of_node()) == (first, first_of_node)


@pytest.fixture
def own_handlers() -> Any:
    """Handlers that count, in place of those of pytest, which are put back afterwards."""
    seen: list[int] = []

    def count(kind: int, frame: Any) -> None:
        seen.append(kind)

    before = {kind: signal.signal(kind, count) for kind in (signal.SIGINT, signal.SIGTERM)}
    yield SimpleNamespace(seen=seen, count=count)
    for kind, handler in before.items():
        signal.signal(kind, handler)


def handlers() -> list[Any]:
    return [signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)]


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_asks_once_and_a_second_one_is_as_before(kind: signal.Signals, own_handlers: Any) -> None:
    with stop_on_signals() as stop:
        assert stop.signal is None
        assert own_handlers.count not in handlers()
        os.kill(os.getpid(), kind)
        assert stop.signal == kind
        assert own_handlers.seen == []
        assert handlers() == [own_handlers.count] * 2
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.signal == kind, "the first one counts"
        assert own_handlers.seen == [signal.SIGTERM, signal.SIGINT]
    assert handlers() == [own_handlers.count] * 2


def test_handlers_are_put_back_whatever_happens(own_handlers: Any) -> None:
    with pytest.raises(KeyError), stop_on_signals():
        raise KeyError
    assert handlers() == [own_handlers.count] * 2
    with stop_on_signals() as stop:
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    assert stop.signal is None
    assert own_handlers.seen == [signal.SIGTERM]


def test_ctrl_c_twice_ends_at_once(own_handlers: Any) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asked: list[int | None] = []

    def work() -> None:
        with stop_on_signals() as stop:
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)
                asked.append(stop.signal)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert asked == [signal.SIGINT]
    assert handlers() == [signal.default_int_handler, own_handlers.count]


def test_another_thread_leaves_signals_alone(own_handlers: Any) -> None:
    found: list[Any] = []

    def work() -> None:
        with stop_on_signals() as stop:
            found.append((stop.signal, handlers()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(None, [own_handlers.count] * 2)]


def test_processes_agree_on_a_stop() -> None:
    stop = Stop()
    alone = SimpleNamespace(world_size=1)
    assert not stop.agreed(alone)
    stop.signal = 15
    assert stop.agreed(alone)

    def others_were_asked(tensor: Any, reduce_op: str) -> Any:
        assert reduce_op == "max"
        return tensor.clamp(min=2)

    several = SimpleNamespace(world_size=2, device="cpu", all_reduce=others_were_asked)
    asked = Stop()
    assert asked.agreed(several)
    assert asked.signal == 2
    nobody = SimpleNamespace(world_size=2, device="cpu", all_reduce=lambda tensor, reduce_op: tensor)
    assert not Stop().agreed(nobody)


def test_loggers_that_are_missing_are_known_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_missing([])
    refuse_missing(["tensorboard"])
    assert LOGGERS == ("tensorboard", "wandb", "mlflow")
    with pytest.raises(DataError, match="no logger 'visdom': known are tensorboard, wandb, mlflow"):
        refuse_missing(["tensorboard", "visdom"])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(PolypcountError, match=r"^logging to wandb needs its package: pip install wandb$"):
        refuse_missing(["wandb"])


@pytest.mark.parametrize(
    ("environment", "devices"),
    [({"WORLD_SIZE": "2"}, 1), ({"WORLD_SIZE": "1"}, 2), ({"SLURM_NTASKS": "4", "SLURM_PROCID": "3"}, 1)],
)
def test_another_number_of_processes_than_asked_for_is_refused(
    environment: dict[str, str], devices: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(DataError, match="processes have been started"):
        refuse_other_number(Machine(devices=devices))
    started = int(environment.get("WORLD_SIZE", environment.get("SLURM_NTASKS", "")))
    refuse_other_number(Machine(devices=started))
