"""The state of a training in one safetensors file: tensors, and everything else as JSON in its header.

A file is there whole or not at all, and reading one runs no code.
"""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from polypcount.encoder.weights import check_fit, fit_weights
from polypcount.errors import FileError, first_line
from polypcount.storage import whole_file

FORMAT = "polypcount-training 1"


def save_state(path: Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Write tensors and JSON values. If that fails, an older file stays."""
    import safetensors.torch

    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = {"format": FORMAT, "values": json.dumps(values, allow_nan=False)}
    try:
        with whole_file(path) as unfinished:
            unfinished.write_bytes(safetensors.torch.save(on_cpu, header))
    except OSError as problem:
        raise FileError(
            f"{path}: the checkpoint cannot be written ({first_line(problem)}); the one before is still there: make "
            "room and resume the run",
            mend="resume",
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
                raise ValueError("its values are not a JSON object")
            return {name: file.get_tensor(name) for name in file.keys()}, values  # noqa: SIM118
    except FileNotFoundError:
        raise FileError(f"{path} does not exist: there is no checkpoint to resume from") from None
    except FileError:
        raise
    except Exception as problem:  # beside its own error, the library raises others for odd types and sizes
        raise FileError(f"{path} is damaged ({first_line(problem)}); start the run again") from None


def pack(model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Weights and the optimiser's state as named tensors, and its settings as JSON."""
    tensors = {f"model.{name}": values for name, values in model.state_dict().items()}
    state = optimizer.state_dict()
    for parameter, values in state["state"].items():
        tensors |= {f"optimizer.{parameter}.{name}": tensor for name, tensor in values.items()}
    return tensors, {"groups": state["param_groups"]}


def unpack(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], values: dict[str, Any]
) -> None:
    """Put weights and the optimiser's state back.

    Raises:
        FileError: They are of another shape; the model and the optimiser stay as they are.
    """
    weights = {name.removeprefix("model."): tensor for name, tensor in tensors.items() if name.startswith("model.")}
    check_fit(model, weights, path)
    learnt = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    sizes = [len(group["params"]) for group in optimizer.param_groups]
    state: dict[int, dict[str, Any]] = {}
    for name in tensors.keys() - {f"model.{name}" for name in weights}:
        _, parameter, key = name.split(".", 2)
        state.setdefault(int(parameter), {})[key] = tensors[name]
    fits = all(
        0 <= number < len(learnt) and (not tensor.ndim or tensor.shape == learnt[number].shape)
        for number, parts in state.items()
        for tensor in parts.values()
    )
    if not fits or [len(group["params"]) for group in values["groups"]] != sizes:
        raise FileError(f"{path}: its optimiser is of another shape; resume with the recipe of the run")
    for number, parts in state.items():  # the same memory format as the weight, so that sums are exactly the same
        for key, tensor in parts.items():
            if tensor.ndim:
                parts[key] = torch.empty_like(learnt[number], dtype=tensor.dtype, device="cpu").copy_(tensor)
    fit_weights(model, weights, path)
    optimizer.load_state_dict({"state": state, "param_groups": values["groups"]})
