"""The engine `openvino-int8`: the frame model in 8 bits, calibrated on crops of the user's own.

Depthwise networks lose much in the first few layers, where a channel has few weights and a wide range; those stay in
32 bits. Without VNNI instructions a processor adds products of 8 bits in 16, which overflow: there, weights of 7 bits
are better. What happened is measured and kept beside the model, and the better way is taken.
"""

import contextlib
import hashlib
import importlib.metadata
import io
import json
import logging
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.encoder.engine_openvino import OpenVinoFrames
from polypcount.encoder.engines import Calibration, normalised
from polypcount.encoder.manifest import FRAME
from polypcount.encoder.runtime import Encoder
from polypcount.errors import DataError, FileError, PolypcountError, first_line
from polypcount.offline import import_offline
from polypcount.whole import whole_file

MOST_CROPS = 300
_FORMAT = "polypcount int8 1"
_GOOD_COSINE = 0.99
_MOST_LAYERS_IN_FLOAT = 3
_log = logging.getLogger(__name__)


def calibrated(
    encoder: Encoder, cut: Callable[[], NDArray[np.uint8]], about: Sequence[str], folder: str | Path
) -> Encoder:
    """The encoder with its frame model in int8.

    Args:
        encoder: of the engine `openvino-int8`.
        cut: gives the crops to calibrate with, uint8[n, size, size, 3]; called only where no model is kept.
        about: texts that tell these crops from others.
        folder: where quantised models are kept.
    """
    exact = encoder.frame_model
    if not isinstance(exact, OpenVinoFrames):
        raise DataError(f"only the engine openvino-int8 is calibrated, found {encoder.engine}")
    key = _key(encoder, about)
    file = Path(folder) / f"{key}.npz"
    kept = _load(file, key, exact)
    if kept is None:
        kept = _quantised(encoder, exact, cut(), key, file)
    frames, calibration = kept
    _log.info(
        "int8: cosine to fp32 on %d crops: mean %.4f, lowest %.4f",
        calibration.crops,
        calibration.mean_cosine,
        calibration.lowest_cosine,
    )
    return replace(encoder, frame_model=frames, calibration=calibration)


def _key(encoder: Encoder, about: Sequence[str]) -> str:
    """Hash of all that decides the quantised model and what it computes."""
    core = import_offline("openvino").Core()
    versions = [importlib.metadata.version(name) for name in ("openvino", "nncf")]
    images = encoder.spec.preprocessing
    decides = [_FORMAT, encoder.description["files"][FRAME], images.mean, images.std, images.crop.fingerprint, versions]
    decides += [core.get_property("CPU", "FULL_DEVICE_NAME"), *about]
    return hashlib.sha256(json.dumps(decides).encode()).hexdigest()


def _quantised(
    encoder: Encoder, exact: OpenVinoFrames, crops: NDArray[np.uint8], key: str, file: Path
) -> tuple[OpenVinoFrames, Calibration]:
    expected = replace(encoder, engine="openvino").encode_frames(crops)
    if not len(crops) or not np.isfinite(expected).all():
        raise DataError(f"the encoder {encoder.folder} gives no finite features of the crops, so int8 has no range")
    found: list[tuple[bytes, bytes, OpenVinoFrames, Calibration]] = []
    for bits in (8, 7):
        text, weights = _serialised(_quantise(encoder, exact, crops, bits))
        frames = _opened(text, weights, exact)
        cosine = _cosine(expected, replace(encoder, engine="openvino", frame_model=frames).encode_frames(crops))
        found.append(
            (text, weights, frames, Calibration(key, len(crops), float(cosine.mean()), float(cosine.min()), bits))
        )
        if found[-1][3].mean_cosine >= _GOOD_COSINE:
            break
    text, weights, frames, calibration = max(found, key=lambda way: way[3].mean_cosine)
    if calibration.mean_cosine < _GOOD_COSINE:
        _log.warning("int8 changes the features of %s much; the engine openvino does not", encoder.folder)
    _save(file, text, weights, calibration)
    return frames, calibration


def _quantise(encoder: Encoder, exact: OpenVinoFrames, crops: NDArray[np.uint8], bits: int) -> Any:
    """An `openvino.Model` with int8 layers, by NNCF."""
    nncf, passes = import_offline("nncf"), import_offline("openvino.passes")
    network = exact.network.clone()
    folding = passes.Manager()  # biases are corrected where they are plain constants, which they are after this
    folding.register_pass(passes.ConstantFolding())
    folding.run_passes(network)
    operations = [(layer.get_friendly_name(), layer.get_type_name()) for layer in network.get_ordered_ops()]
    convolutions = [name for name, kind in operations if kind in ("Convolution", "GroupConvolution")]
    in_float = convolutions[: min(_MOST_LAYERS_IN_FLOAT, len(convolutions) // 10)]
    attends = any(kind == "Softmax" for _, kind in operations)
    images = nncf.Dataset(range(len(crops)), lambda row: normalised(crops[row : row + 1], exact.preprocessing))
    overflow = nncf.OverflowFix.DISABLE if bits == 8 else nncf.OverflowFix.ENABLE
    logging.getLogger("nncf").setLevel(logging.ERROR)  # its own function for that changes handlers of others too
    # NNCF draws progress bars on standard output, which is for results.
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            return nncf.quantize(
                network,
                images,
                preset=nncf.QuantizationPreset.MIXED,
                subset_size=len(crops),
                model_type=nncf.ModelType.TRANSFORMER if attends else None,
                ignored_scope=nncf.IgnoredScope(names=in_float) if in_float else None,
                advanced_parameters=nncf.AdvancedQuantizationParameters(overflow_fix=overflow),
            )
        except Exception as problem:  # an operation that it does not know, in any of its wordings
            raise PolypcountError(
                f"the encoder {encoder.folder} cannot be brought to int8: {first_line(problem)}; "
                "use the engine openvino"
            ) from problem


def _cosine(expected: NDArray[np.float32], found: NDArray[np.float32]) -> NDArray[np.float64]:
    """float[n, f] twice -> a.b / (|a| |b|) of each row, float[n]; of rows of zeros 1 where both are, otherwise 0."""
    a, b = expected.astype(np.float64), found.astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    products = np.einsum("nf,nf->n", a, b)
    cosine: NDArray[np.float64] = np.array(~a.any(axis=1) & ~b.any(axis=1), np.float64)
    np.divide(products, lengths, out=cosine, where=lengths > 0)
    return cosine


def _serialised(network: Any) -> tuple[bytes, bytes]:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "model.xml"
        import_offline("openvino").save_model(network, path, compress_to_fp16=False)
        return path.read_bytes(), path.with_suffix(".bin").read_bytes()


def _opened(text: bytes, weights: bytes, exact: OpenVinoFrames) -> OpenVinoFrames:
    network = import_offline("openvino").Core().read_model(text, weights)
    return OpenVinoFrames(network, exact.preprocessing, exact.threads)


def _save(file: Path, text: bytes, weights: bytes, calibration: Calibration) -> None:
    """One file, so that text and weights are of one model, and with the checksums of a zip."""
    pieces = {"xml": text, "bin": weights, "about": json.dumps(asdict(calibration)).encode()}
    try:
        with whole_file(file) as unfinished, unfinished.open("wb") as stream:
            np.savez(
                stream, allow_pickle=False, **{name: np.frombuffer(data, np.uint8) for name, data in pieces.items()}
            )
    except OSError as problem:
        raise FileError(
            f"{file}: the int8 model cannot be kept ({problem.strerror}); POLYPCOUNT_CACHE moves the cache"
        ) from None


def _load(file: Path, key: str, exact: OpenVinoFrames) -> tuple[OpenVinoFrames, Calibration] | None:
    """A model that was kept; None where there is none, or none that can be used."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as kept:
            text, weights, about = (kept[name].tobytes() for name in ("xml", "bin", "about"))
        calibration = Calibration(**json.loads(about))
        return (_opened(text, weights, exact), calibration) if calibration.key == key else None
    except (OSError, ValueError, KeyError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return None
