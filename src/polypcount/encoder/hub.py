"""Image models of the transformers library, from a folder, the local cache or, where allowed, the network."""

import contextlib
import inspect
import json
import logging
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from polypcount.errors import FileError, first_line

transformers: Any = import_module("transformers")  # only partly typed

# Parts of a configuration that do not change the architecture.
_NOT_KEPT = {
    "_name_or_path",
    "architectures",
    "id2label",
    "label2id",
    "transformers_version",
    "auto_map",
    "dtype",
}


class ImageModel(nn.Module):
    """A transformers image model whose summary of the image is the features: float[n, 3, h, w] -> float[n, f].

    The summary is the average over the image for convolutional networks and the CLS token for vision transformers.
    """

    def __init__(self, model: Any, name: str) -> None:
        super().__init__()
        parameters = inspect.signature(model.forward).parameters
        if "pixel_values" not in parameters:
            raise FileError(f"backbone {name} is a {type(model).__name__}, which does not take images")
        self.model = model.train()
        # A pooling layer with weights is for another task, and image checkpoints often do not have it.
        self.takes_token = any(True for _ in (getattr(model, "pooler", None) or nn.Identity()).parameters())
        if self.takes_token:
            model.pooler = None
        for parameter_name, parameter in model.named_parameters():
            if parameter_name.endswith("mask_token"):  # used in pre-training only; distributed training needs to know
                parameter.requires_grad_(False)
        self._options = {"interpolate_pos_encoding": True} if "interpolate_pos_encoding" in parameters else {}

    @property
    def config(self) -> dict[str, Any]:
        """What `build_image_model` needs to build the same architecture, as JSON."""
        config = json.loads(self.model.config.to_json_string(use_diff=True))
        architecture = {key: value for key, value in config.items() if key not in _NOT_KEPT}
        return {**architecture, "model_type": self.model.config.model_type}

    def forward(self, images: Tensor) -> Tensor:
        """float[n, 3, h, w] -> float[n, f]."""
        output = self.model(pixel_values=images, **self._options)
        summary: Tensor | None = None if self.takes_token else getattr(output, "pooler_output", None)
        if summary is None:
            last: Tensor = output.last_hidden_state
            summary = last[:, 0] if last.ndim == 3 else last.mean(dim=(2, 3))
        return summary.flatten(1)


def load_image_model(name: str, *, weights: bool, download: bool) -> tuple[ImageModel, dict[str, Any]]:
    """A model by name or folder, and the `mean` and `std` of colours that it states, if it does."""
    folder = Path(name).expanduser()
    if name.startswith((".", "/", "~")) and not folder.is_dir():
        raise FileError(f"backbone {name}: no such folder; give lite0, a transformers model name or its folder")
    source = str(folder) if folder.is_dir() else name
    options: dict[str, Any] = {"local_files_only": not download, "trust_remote_code": False, "dtype": "float32"}
    try:
        with _quiet():
            if weights:
                model, loading = transformers.AutoModel.from_pretrained(source, output_loading_info=True, **options)
            else:
                config = transformers.AutoConfig.from_pretrained(source, **options)
                model, loading = transformers.AutoModel.from_config(config), {}
        preprocessor = transformers.utils.cached_file(
            source,
            "preprocessor_config.json",
            local_files_only=not download,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        images = json.loads(Path(preprocessor).read_bytes()) if preprocessor else {}
        stated = {key: images.get(f"image_{key}") for key in ("mean", "std")}
        colours = {key: tuple(map(float, values)) for key, values in stated.items() if isinstance(values, list)}
    except Exception as problem:  # missing, offline, damaged, of an unknown kind: the library's errors share no parent
        what = f"cannot be loaded: {first_line(problem)}"
        if folder.is_dir():
            what = f"is a folder that does not hold a transformers image model: {first_line(problem)}"
        elif isinstance(problem, OSError) and not download:
            what = (
                "is neither a folder nor in the cache of transformers on this machine;"
                " allow the download (download=True) or give lite0 or a folder"
            )
        raise FileError(f"backbone {name} {what}") from problem
    missing = sorted(key for key in loading.get("missing_keys", ()) if not key.startswith("pooler."))
    if missing:
        raise FileError(f"backbone {name}: {len(missing)} tensors are missing in its weights, first {missing[0]}")
    return ImageModel(model, name), colours


def build_image_model(config: Mapping[str, Any]) -> ImageModel:
    """The architecture that `ImageModel.config` describes, with random weights."""
    kind = str(config.get("model_type"))
    try:
        settings = {key: value for key, value in config.items() if key not in ("model_type", "auto_map")}
        with _quiet():
            described = transformers.AutoConfig.for_model(kind, **settings)
            model = transformers.AutoModel.from_config(described, trust_remote_code=False)
    except Exception as problem:  # a configuration from elsewhere can make the library raise any error
        raise FileError(f"backbone configuration of type {kind} cannot be built: {first_line(problem)}") from problem
    return ImageModel(model, kind)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Turn off the library's progress bars and advice, which would mix with our own output."""
    logging_of = transformers.utils.logging
    level, bars = logging_of.get_verbosity(), logging_of.is_progress_bar_enabled()
    logging_of.set_verbosity(logging.CRITICAL)
    logging_of.disable_progress_bar()
    try:
        yield
    finally:
        logging_of.set_verbosity(level)
        if bars:
            logging_of.enable_progress_bar()
