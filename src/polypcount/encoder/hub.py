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

_Colours = tuple[float, float, float] | None


class ImageModel(nn.Module):
    """A transformers image model whose summary of the image is the features: float[n, 3, h, w] -> float[n, f].

    The summary is the average over the image for convolutional networks and the CLS token for vision transformers.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        # A pooling layer with weights belongs to another task, and image checkpoints often come without it.
        self.takes_token = any(True for _ in (getattr(model, "pooler", None) or nn.Identity()).parameters())
        if self.takes_token:
            model.pooler = None
        for name, parameter in model.named_parameters():
            if name.endswith("mask_token"):  # used in pre-training only; distributed training needs to know
                parameter.requires_grad_(False)
        self._options = {}
        if "interpolate_pos_encoding" in inspect.signature(model.forward).parameters:
            self._options["interpolate_pos_encoding"] = True

    @property
    def config(self) -> dict[str, Any]:
        """What `build_image_model` needs to build the same architecture, as JSON."""
        config: dict[str, Any] = json.loads(self.model.config.to_json_string(use_diff=True))
        for key in (
            "_name_or_path",
            "architectures",
            "id2label",
            "label2id",
            "transformers_version",
            "auto_map",
            "dtype",
        ):
            config.pop(key, None)
        return {**config, "model_type": self.model.config.model_type}

    def forward(self, images: Tensor) -> Tensor:
        """float[n, 3, h, w] -> float[n, f]."""
        output = self.model(pixel_values=images, **self._options)
        summary: Tensor | None = None if self.takes_token else getattr(output, "pooler_output", None)
        if summary is None:
            last: Tensor = output.last_hidden_state
            summary = last[:, 0] if last.ndim == 3 else last.mean(dim=(2, 3))
        return summary.flatten(1)


def load_image_model(name: str, *, weights: bool, download: bool) -> tuple[ImageModel, _Colours, _Colours]:
    """A model by name or folder, with the mean and the standard deviation that its folder states, if it does."""
    if name.startswith((".", "/", "~")) and not Path(name).expanduser().is_dir():
        raise FileError(f"backbone {name}: no such folder; give lite0, a transformers model name or its folder")
    place = str(Path(name).expanduser()) if name.startswith("~") else name
    options: dict[str, Any] = {"local_files_only": not download, "trust_remote_code": False, "dtype": "float32"}
    try:
        with _quiet():
            if weights:
                model, loading = transformers.AutoModel.from_pretrained(place, output_loading_info=True, **options)
            else:
                config = transformers.AutoConfig.from_pretrained(place, **options)
                model, loading = transformers.AutoModel.from_config(config), {}
        normalisation = _read_normalisation(place, download)
    except Exception as problem:  # missing, offline, damaged, of an unknown kind: the library has no common parent
        raise FileError(_why_not(name, download, problem)) from problem
    missing = sorted(key for key in loading.get("missing_keys", ()) if not key.startswith("pooler."))
    if missing:
        raise FileError(f"backbone {name}: {len(missing)} tensors are missing in its weights, first {missing[0]}")
    return _checked(model, name), *normalisation


def build_image_model(config: Mapping[str, Any]) -> ImageModel:
    """The architecture that `ImageModel.config` describes, with random weights."""
    kind = config.get("model_type")
    try:
        settings = {key: value for key, value in config.items() if key not in ("model_type", "auto_map")}
        with _quiet():
            described = transformers.AutoConfig.for_model(str(kind), **settings)
            model = transformers.AutoModel.from_config(described, trust_remote_code=False)
    except Exception as problem:  # whatever a configuration from elsewhere leads the library into
        raise FileError(f"backbone configuration of type {kind!r} cannot be built: {first_line(problem)}") from problem
    return _checked(model, str(kind))


def _checked(model: Any, name: str) -> ImageModel:
    if "pixel_values" not in inspect.signature(model.forward).parameters:
        raise FileError(f"backbone {name} is a {type(model).__name__}, which does not take images")
    return ImageModel(model.train())


def _read_normalisation(place: str, download: bool) -> tuple[_Colours, _Colours]:
    found = transformers.utils.cached_file(
        place,
        "preprocessor_config.json",
        local_files_only=not download,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    stated = json.loads(Path(found).read_bytes()) if found else {}
    return _colours(stated, "image_mean"), _colours(stated, "image_std")


def _colours(stated: Any, key: str) -> _Colours:
    values = stated.get(key) if isinstance(stated, dict) else None
    if not isinstance(values, list) or len(values) != 3:
        return None
    red, green, blue = map(float, values)
    return red, green, blue


def _why_not(name: str, download: bool, problem: Exception) -> str:
    if Path(name).expanduser().is_dir():
        return f"backbone {name}: the folder does not hold a transformers image model: {first_line(problem)}"
    if isinstance(problem, OSError) and not download:
        return (
            f"backbone {name} is neither a folder nor in the cache of transformers on this machine;"
            " allow the download (download=True) or give lite0 or a folder"
        )
    return f"backbone {name} cannot be loaded: {first_line(problem)}"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's progress bars and advice, which would break up our own output."""
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
