"""Weight files from elsewhere: read without running anything in them, and fitted to a network or refused."""

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from torch import Tensor, nn

from polypcount.errors import FileError, first_line

_LARGEST_FILE = 1 << 31  # that of ResNet-152 has an eighth of this


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a `.safetensors` file or of a state dict saved by torch (`.pth`, `.pt`, `.bin`), by name."""
    import torch
    from safetensors.torch import load_file

    if not path.is_file():
        raise FileError(f"{path}: a weights file was expected, found {'a folder' if path.is_dir() else 'nothing'}")
    try:
        if (size := path.stat().st_size) > _LARGEST_FILE:
            raise FileError(f"{path} has {size:,} bytes, too many for the weights of a backbone")
        if path.suffix == ".safetensors":
            return load_file(path)
        if zipfile.is_zipfile(path):
            _refuse_inflated(path, size)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileError:
        raise
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
    weights = {str(name): values for name, values in content.items()}
    if odd := [name for name, values in weights.items() if values.layout != torch.strided or values.is_quantized]:
        raise FileError(f"{path}: {odd[0]} is not a plain tensor; save the weights as they are in training")
    if sum(values.numel() * values.element_size() for values in weights.values()) > size:
        raise FileError(f"{path}: its tensors would take more memory than the file has bytes, so it is not used")
    return weights


def fit_weights(
    network: nn.Module, weights: Mapping[str, Tensor], source: object, named: Callable[[str], str] = str
) -> None:
    """Copy the weights into the network; every tensor must be there, no other, and of the same shape.

    Args:
        network: What gets the weights.
        weights: Tensors by their names in the file.
        source: The file, for messages.
        named: The name in the file of a tensor of the network.
    """
    check_fit(network, weights, source, named)
    network.load_state_dict(
        {name: weights[named(name)] for name in network.state_dict() if named(name) in weights}, strict=False
    )


def check_fit(
    network: nn.Module, weights: Mapping[str, Tensor], source: object, named: Callable[[str], str] = str
) -> None:
    """Raise `FileError` unless the weights have the names and shapes of the network's; otherwise as `fit_weights`."""
    expected, kind = {named(name): values for name, values in network.state_dict().items()}, type(network).__name__
    # Files of old torch versions have no such counters; nothing that we use reads them.
    needed = [name for name in expected if not name.endswith("num_batches_tracked")]
    if missing := [name for name in needed if name not in weights]:
        raise FileError(f"{source}: {len(missing)} tensors of {kind} are missing, first {missing[0]}")
    if unknown := [name for name in weights if name not in expected]:
        raise FileError(f"{source}: {len(unknown)} tensors do not belong to {kind}, first {unknown[0]}")
    for name, values in weights.items():
        if values.shape != expected[name].shape:
            raise FileError(
                f"{source}: {name} must have shape {list(expected[name].shape)} for {kind}, found {list(values.shape)}"
            )
        if not bool(values.isfinite().all()):
            raise FileError(f"{source}: {name} holds numbers that are not finite")


def _refuse_inflated(path: Path, size: int) -> None:
    """Raise unless the parts of torch's zip file are stored as they are, so that none can unpack to endless bytes."""
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
    if any(part.compress_type != zipfile.ZIP_STORED for part in parts) or sum(part.file_size for part in parts) > size:
        raise FileError(f"{path} is packed, which torch's files are not, so it is not opened; unpack it first")
