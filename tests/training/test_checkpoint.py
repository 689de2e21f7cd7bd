"""The state of a training on disk: exact, whole or not at all, and refused in one line where it does not fit."""

import errno
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from polypcount.errors import FileError
from polypcount.training.checkpoint import FORMAT, load_state, pack, save_state, unpack


def network(width: int = 5, channels_last: bool = False) -> nn.Sequential:
    torch.manual_seed(1)
    layers = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 36, width), nn.Dropout(0.1)]
    module = nn.Sequential(*layers)
    if channels_last:
        module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return module


def optimizer_of(module: nn.Module, kind: Any = torch.optim.AdamW, groups: int = 2) -> torch.optim.Optimizer:
    every = list(module.parameters())
    parts = [every[:2], every[2:]] if groups == 2 else [every]
    made: torch.optim.Optimizer = kind([{"params": part, "factor": 0.5} for part in parts], lr=0.01)
    return made


def steps(module: nn.Module, optimizer: torch.optim.Optimizer, numbers: range) -> None:
    for number in numbers:
        torch.manual_seed(number)
        optimizer.zero_grad()
        module(torch.randn(6, 3, 8, 8)).square().mean().backward()
        optimizer.step()


def everything(module: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in pack(module, optimizer)[0].items()}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def refused(path: Path, message: str, module: nn.Module | None = None, groups: int = 2) -> None:
    """The file is refused in one line, and the network stays as it was."""
    module = module or network()
    optimizer = optimizer_of(module, groups=groups)
    before = everything(module, optimizer)
    with pytest.raises(FileError, match=message) as caught:
        unpack(path, module, optimizer, *load_state(path))
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert same(everything(module, optimizer), before)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A checkpoint after three steps."""
    module = network()
    optimizer = optimizer_of(module)
    steps(module, optimizer, range(3))
    save_state(tmp_path / "runs" / "last.safetensors", *pack(module, optimizer))
    return tmp_path / "runs" / "last.safetensors"


@pytest.mark.parametrize(("kind", "channels_last"), [(torch.optim.AdamW, True), (torch.optim.Adam, False)])
def test_the_next_steps_are_exactly_those_without_a_stop(kind: Any, channels_last: bool, tmp_path: Path) -> None:
    module = network(channels_last=channels_last)
    optimizer = optimizer_of(module, kind)
    steps(module, optimizer, range(3))
    tensors, settings = pack(module, optimizer)
    save_state(tmp_path / "a.safetensors", tensors, {"optimizer": settings, "epoch": 3, "best": None, "rate": 0.1})
    at_stop = everything(module, optimizer)

    other = network(channels_last=channels_last)
    with torch.no_grad():
        for weight in other.parameters():
            weight.add_(1)
    other_optimizer = optimizer_of(other, kind)
    read, values = load_state(tmp_path / "a.safetensors")
    unpack(tmp_path / "a.safetensors", other, other_optimizer, read, values.pop("optimizer"))
    assert values == {"epoch": 3, "best": None, "rate": 0.1}
    assert same(everything(other, other_optimizer), at_stop)
    assert [group["factor"] for group in other_optimizer.param_groups] == [0.5, 0.5]
    for parameter, memory in other_optimizer.state.items():
        for tensor in memory.values():
            assert not isinstance(tensor, Tensor) or not tensor.ndim or tensor.stride() == parameter.stride()
    steps(module, optimizer, range(3, 6))
    steps(other, other_optimizer, range(3, 6))
    assert same(everything(other, other_optimizer), everything(module, optimizer))
    assert not same(everything(module, optimizer), at_stop)


def test_memory_of_another_order_is_put_in_that_of_the_weights(tmp_path: Path) -> None:
    module = network()
    optimizer = optimizer_of(module)
    steps(module, optimizer, range(2))
    save_state(tmp_path / "a", *pack(module, optimizer))
    other = network(channels_last=True)
    other_optimizer = optimizer_of(other)
    unpack(tmp_path / "a", other, other_optimizer, *load_state(tmp_path / "a"))
    weight = next(other.parameters())
    assert other_optimizer.state[weight]["exp_avg"].is_contiguous(memory_format=torch.channels_last)
    assert same(everything(other, other_optimizer), everything(module, optimizer))


def test_a_state_before_the_first_step_is_kept_too(tmp_path: Path) -> None:
    module = network()
    save_state(tmp_path / "a", *pack(module, optimizer_of(module)))
    other, optimizer = network(), optimizer_of(network())
    unpack(tmp_path / "a", other, optimizer, *load_state(tmp_path / "a"))
    assert not optimizer.state


def test_damaged_files_are_one_line(saved: Path) -> None:
    whole = saved.read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"\xff" * 5000, whole + b"more"):
        saved.write_bytes(content)
        refused(saved, "damaged")
    saved.unlink()
    refused(saved, "does not exist")
    saved.mkdir()
    refused(saved, "damaged")


def test_files_of_others_are_one_line(saved: Path) -> None:
    headers: list[tuple[dict[str, str] | None, str]] = [
        (None, "not a checkpoint"),
        ({"format": FORMAT}, "is damaged"),
        ({"format": FORMAT, "values": "[]"}, "is damaged"),
    ]
    for header, message in headers:
        saved.write_bytes(safetensors.torch.save({"model.x": torch.zeros(2)}, header))
        refused(saved, message)


def test_weights_of_another_shape_are_one_line_that_names_the_tensor(saved: Path) -> None:
    refused(saved, r"3.bias must have shape \[7\] for Sequential, found \[5\]", network(width=7))
    refused(saved, "1 tensors of Sequential are missing, first 5.weight", nn.Sequential(*network(), nn.PReLU()))
    refused(saved, "2 tensors do not belong to Sequential, first 3.bias", nn.Sequential(*list(network())[:3]))


def test_an_optimiser_of_another_shape_is_one_line(saved: Path) -> None:
    message = "its optimiser is of another shape"
    refused(saved, message, groups=1)
    tensors, values = load_state(saved)
    for wrong in ({"optimizer.9.exp_avg": torch.zeros(2)}, {"optimizer.0.exp_avg": torch.zeros(2)}):
        save_state(saved, {**tensors, **wrong}, values)
        refused(saved, message)


def test_a_full_disk_leaves_the_file_before(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()
    write = Path.write_bytes

    def half(self: Path, data: bytes) -> int:
        write(self, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device", str(self))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", half)
        with pytest.raises(FileError, match=r"cannot be written \(No space left on device\)") as caught:
            save_state(saved, {"model.x": torch.zeros(1000)}, {})
    assert str(caught.value).startswith(str(saved))
    assert caught.value.mend == ("resume",)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name], "nothing is left over"
    load_state(saved)
    (saved.parent / "file").write_text("")
    with pytest.raises(FileError, match="the checkpoint cannot be written"):
        save_state(saved.parent / "file" / "last", {}, {})
