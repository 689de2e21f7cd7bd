"""The state of a training, in one safetensors file: tensors, and in its header everything else as JSON.

A file is there whole or not at all, and reading one runs nothing.
"""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from polypcount.encoder.weights import check_fit, fit_weights
from polypcount.errors import FileError, first_line
from polypcount.whole import whole_file

FORMAT = "polypcount-training 1"


def save_state(path: Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Write tensors and JSON values; whatever fails, what was there before stays."""
    import safetensors.torch

    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = {"format": FORMAT, "values": json.dumps(values, allow_nan=False)}
    try:
        with whole_file(path) as unfinished:
            unfinished.write_bytes(safetensors.torch.save(on_cpu, header))
    except OSError as problem:
        raise FileError(
            f"{path}: the checkpoint cannot be written ({problem.strerror or problem}); what was there before "
            "still is: make room and go on with --resume"
        ) from None


def load_state(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_state` has written."""
    import safetensors

    try:
        with safetensors.safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            if header.get("format") != FORMAT:
                raise FileError(f"{path} is not a checkpoint of this version of polypcount; start the run again")
            values = json.loads(header["values"])
            if not isinstance(values, dict):
                raise ValueError("its values are no JSON object")
            return {name: file.get_tensor(name) for name in file.keys()}, values  # noqa: SIM118
    except FileNotFoundError:
        raise FileError(f"{path} does not exist: there is nothing to go on from; start without --resume") from None
    except (OSError, safetensors.SafetensorError, ValueError, KeyError) as problem:
        raise FileError(f"{path} is damaged ({first_line(problem)}); start the run again") from None


def pack(model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Weights and the optimiser's memory as named tensors, and its settings as JSON."""
    tensors = {f"model.{name}": values for name, values in model.state_dict().items()}
    state = optimizer.state_dict()
    scalars: dict[str, dict[str, Any]] = {}
    for parameter, memory in state["state"].items():
        for name, value in memory.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{parameter}.{name}"] = value
            else:
                scalars.setdefault(str(parameter), {})[name] = value
    return tensors, {"groups": state["param_groups"], "scalars": scalars}


def unpack(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], values: dict[str, Any]
) -> None:
    """Put weights and the optimiser's memory back; raises `FileError` where they are of another shape."""
    weights = {name.removeprefix("model."): tensor for name, tensor in tensors.items() if name.startswith("model.")}
    check_fit(model, weights, path)
    learnt = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    expected = [len(group["params"]) for group in optimizer.param_groups]
    if [len(group["params"]) for group in values["groups"]] != expected:
        raise FileError(f"{path}: its optimiser is of another shape; resume with the recipe of the run")
    memory: dict[int, dict[str, Any]] = {int(key): dict(found) for key, found in values["scalars"].items()}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".", 2)
            memory.setdefault(int(number), {})[key] = _as_before(tensor, learnt, int(number), path)
    fit_weights(model, weights, path)
    optimizer.load_state_dict({"state": memory, "param_groups": values["groups"]})


def _as_before(tensor: Tensor, learnt: list[Tensor], number: int, path: Path) -> Tensor:
    """What an optimiser remembers of a weight, in the same order of memory as the weight, for the same sums."""
    if not 0 <= number < len(learnt) or (tensor.ndim and tensor.shape != learnt[number].shape):
        raise FileError(f"{path}: its optimiser is of another shape; resume with the recipe of the run")
    if not tensor.ndim:
        return tensor
    return torch.empty_like(learnt[number], dtype=tensor.dtype, device="cpu").copy_(tensor)
