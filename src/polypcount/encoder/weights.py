"""Weight files from elsewhere: read without running anything in them, and fitted to a network or refused."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from polypcount.errors import FileError, first_line


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a `.safetensors` file or of a state dict saved by torch (`.pth`, `.pt`, `.bin`), by name."""
    import torch
    from safetensors.torch import load_file

    if not path.is_file():
        raise FileError(f"{path}: a weights file was expected, found {'a folder' if path.is_dir() else 'nothing'}")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as problem:
        raise FileError(f"{path} cannot be read: {first_line(problem)}") from problem
    except Exception as problem:  # both libraries raise errors of many kinds for a file of another format
        raise FileError(
            f"{path} is damaged, or holds more than weights and is not opened for safety;"
            " save its state_dict() and give that file"
        ) from problem
    if isinstance(content, Mapping) and isinstance(content.get("state_dict"), Mapping):
        content = content["state_dict"]
    if not isinstance(content, Mapping) or not all(isinstance(values, Tensor) for values in content.values()):
        raise FileError(f"{path}: a state dict (names to tensors) was expected, found {type(content).__name__}")
    return {str(name): values for name, values in content.items()}


def fit_weights(network: nn.Module, weights: Mapping[str, Tensor], source: object) -> None:
    """Copy the weights into the network; every tensor must be there, no other, and of the same shape."""
    check_fit(network, weights, source)
    network.load_state_dict(weights, strict=False)


def check_fit(network: nn.Module, weights: Mapping[str, Tensor], source: object) -> None:
    """Raise `FileError` unless the weights have the names and shapes of the network's."""
    expected, kind = network.state_dict(), type(network).__name__
    # Files of old torch versions have no such counters; nothing that we use reads them.
    needed = {name for name in expected if not name.endswith("num_batches_tracked")}
    if missing := sorted(needed - set(weights)):
        raise FileError(f"{source}: {len(missing)} tensors of {kind} are missing, first {missing[0]}")
    if unknown := sorted(set(weights) - set(expected)):
        raise FileError(f"{source}: {len(unknown)} tensors do not belong to {kind}, first {unknown[0]}")
    for name, values in weights.items():
        if values.shape != expected[name].shape:
            raise FileError(
                f"{source}: {name} must have shape {list(expected[name].shape)} for {kind}, found {list(values.shape)}"
            )
