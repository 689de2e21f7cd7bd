"""A trained detector on disk: `detector.onnx`, which detects and can be trained further, and `detector.json`."""

import copy
import hashlib
import io
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from polypcount.detection.detector_file import DESCRIPTION, FORMAT, MODEL
from polypcount.detection.network import DetectorNetwork, Exported
from polypcount.detection.recipe import DetectorRecipe
from polypcount.errors import FileError, PolypcountError, first_line
from polypcount.storage import whole_file, write_text
from polypcount.version import __version__

_OPSET, _TOLERANCE = 17, 1e-3
_NOT_DETECTING = ("mask.",)  # weights of the side task, which the file does not have


def keep_detector(
    network: DetectorNetwork,
    folder: Path,
    recipe: DetectorRecipe,
    *,
    data_hash: str,
    metrics: dict[str, Any],
    calibration: tuple[float, float] = (1.0, 0.0),
    **more: Any,
) -> None:
    """Write a detector into a folder.

    Args:
        network: The trained network.
        folder: An existing folder.
        recipe: How it was trained.
        data_hash: Hash of the corpus that it was trained on.
        metrics: Scores of validation.
        calibration: See `Exported`.
        **more: Further keys of detector.json.
    """
    values = recipe.model_dump(mode="json")
    values["model"]["start"] = Path(recipe.model.start).name  # folders of this machine mean nothing elsewhere
    content = exported(network, recipe.model.width, recipe.model.height, calibration)
    description = {
        "format": FORMAT,
        "padding": 0,  # frames lay in black squares
        "sha256": hashlib.sha256(content).hexdigest(),
        "polypcount": __version__,
        "recipe": values,
        "data_hash": data_hash,
        "metrics": metrics,
        "calibration": list(calibration),
        **more,
    }
    try:
        with whole_file(folder / MODEL) as unfinished:
            unfinished.write_bytes(content)
        write_text(folder / DESCRIPTION, json.dumps(description, indent=1, allow_nan=False) + "\n")
    except OSError as problem:
        raise FileError(f"{folder}: the detector cannot be written: {first_line(problem)}") from None


def exported(network: DetectorNetwork, width: int, height: int, calibration: tuple[float, float]) -> bytes:
    """The network as ONNX: images float[1, 3, height, width] from 0 to 1 -> boxes float[1, 5, p], see `Exported`.

    Raises:
        PolypcountError: ONNX Runtime and torch differ.
    """
    import onnx

    from polypcount.encoder.engine_onnx import open_session

    module = Exported(copy.deepcopy(network).cpu().float(), calibration).eval()
    image = torch.rand(1, 3, height, width, generator=torch.Generator().manual_seed(0))
    stream: Any = io.BytesIO()
    with warnings.catch_warnings():
        # As for encoders: the tracing exporter says that it is old, and the check below shows whether it was right.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module, (image,), stream, input_names=["images"], output_names=["boxes"], opset_version=_OPSET, dynamo=False
        )
    model = onnx.load_model_from_string(stream.getvalue())
    facts = {"task": "detect", "names": "{0: 'polyp'}", "stride": "32", "imgsz": f"[{height}, {width}]"}
    onnx.helper.set_model_props(model, facts)
    content: bytes = model.SerializeToString()
    with torch.no_grad():
        expected = module(image).numpy()
    shapes = ({"images": image.shape}, {"boxes": expected.shape})
    actual = open_session(content, MODEL, shapes).run(None, {"images": image.numpy()})[0]
    if not np.abs(expected - actual).max() <= _TOLERANCE * max(1.0, np.abs(expected).max()):
        raise PolypcountError("the detector in ONNX Runtime and in torch differ; use another version of torch")
    return content


def read_weights(path: Path) -> dict[str, Tensor]:
    """The weights of the network in a `detector.onnx` that `keep_detector` has written."""
    import onnx
    from onnx import numpy_helper

    try:
        model = onnx.load(str(path), load_external_data=False)
        values = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    except Exception as problem:  # onnx and protobuf raise errors of many kinds
        raise FileError(f"{path} cannot be read as the ONNX file of a detector ({first_line(problem)})") from None
    prefix = "network."
    weights = {
        name[len(prefix) :]: torch.from_numpy(np.array(value))
        for name, value in values.items()
        if name.startswith(prefix)
    }
    if not weights:
        raise FileError(f"{path} is not a detector that polypcount has trained, so it cannot be trained further")
    return weights


def begin_with(network: DetectorNetwork, weights: dict[str, Tensor], source: object) -> None:
    """Put the weights of a kept detector into a network; the side task begins anew."""
    from polypcount.encoder.weights import fit_weights

    own = {name: value for name, value in network.state_dict().items() if name.startswith(_NOT_DETECTING)}
    fit_weights(network, {**own, **weights}, source)
