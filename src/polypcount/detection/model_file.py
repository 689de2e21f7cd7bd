"""The ONNX file of a detector: which image it takes, and running it."""

import hashlib
import importlib.util
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.detection.facts import ModelFacts, read_facts
from polypcount.detection.model_engine import (
    EngineError,
    Runner,
    onnx_runner,
    open_session,
    openvino_runner,
    trusted_openvino,
)
from polypcount.detection.settings import LARGEST_SIDE
from polypcount.encoder.engine_onnx import best_providers, failure
from polypcount.errors import DataError, FileError, first_line

_LARGEST_FILE = 1 << 31  # the limit of the ONNX format
_BLOCK = 8  # pixels
_LARGEST_OUTPUTS = 1 << 28  # twice what 80 classes have at 4096 x 4096 pixels
_TYPES: dict[str, type] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}
FRAME_SIZE, _MASK = "orig_target_sizes", "pixel_mask"  # other inputs; with the first, boxes are in pixels of the frame
# How an ONNX file names a file with weights: the key "location", then the length of a text in one or two bytes.
_LOCATION = re.compile(rb"\x0a\x08location\x12([\x80-\xff]?[\x01-\x7f])")


@dataclass(frozen=True)
class OnnxModel:
    """A model that takes one image float[1, 3, height, width].

    Attributes:
        path: Its file.
        fingerprint: SHA-256 of the file, and of the files with weights beside it if it has those.
        runner: Computes outputs.
        engine: What computes them: `onnx` or `openvino`.
        facts: What the file says about itself.
        image: Name of the input that takes the image.
        dtype: Type of that input.
        size: Width and height of that input.
        others: Shape and type of each other input, by name.
        outputs: Names of all outputs.
    """

    path: Path
    fingerprint: str
    runner: Runner = field(repr=False)
    engine: str
    facts: ModelFacts
    image: str
    dtype: type
    size: tuple[int, int]
    others: Mapping[str, tuple[tuple[int, ...], type]]
    outputs: tuple[str, ...]

    def run(
        self, values: NDArray[np.floating], frame: tuple[int, int], outputs: Sequence[str] | None = None
    ) -> dict[str, NDArray[Any]]:
        """Run the model on one image.

        Args:
            values: float[1, 3, height, width] of the model's size and type, see `ModelInput`.
            frame: Width and height of the frame that the image was made from.
            outputs: Names of the outputs to compute; all if None.

        Returns:
            The outputs by name.
        """
        names = self.outputs if outputs is None else tuple(outputs)
        try:
            computed = dict(zip(names, self.runner(self._inputs(values, frame), names), strict=True))
        except EngineError as problem:
            raise DataError(
                f"{self.path} fails on an input of {self.size[0]} x {self.size[1]} pixels ({problem});"
                " try another size, or export it again"
            ) from problem
        _refuse_large(self.path, sum(output.nbytes for output in computed.values()))
        return computed

    def with_openvino(self, outputs: Sequence[str]) -> "OnnxModel":
        """The model computed by OpenVINO. outputs: Names of those that are read."""
        shapes = {name: array.shape for name, array in self._inputs(self._noise(), self.size).items()}
        return replace(self, runner=openvino_runner(self.path, shapes), engine="openvino", outputs=tuple(outputs))

    def with_best_engine(self, outputs: Sequence[str]) -> "OnnxModel":
        """The model computed by OpenVINO if that is installed and gives the same for noise; else as it is.

        With a GPU it stays with ONNX Runtime, which is faster there. outputs: Names of those that are read.
        """
        if importlib.util.find_spec("openvino") is None or len(best_providers()) > 1:
            return self
        noise = self._noise()
        expected = self.run(noise, self.size, outputs)
        runner = trusted_openvino(self.path, expected, self._inputs(noise, self.size))
        return self if runner is None else replace(self, runner=runner, engine="openvino", outputs=tuple(outputs))

    def _inputs(self, values: NDArray[np.floating], frame: tuple[int, int]) -> dict[str, NDArray[Any]]:
        others: dict[str, NDArray[Any]] = {
            name: np.array([frame], dtype) if name == FRAME_SIZE else np.ones(shape, dtype)
            for name, (shape, dtype) in self.others.items()
        }
        return {self.image: values, **others}

    def _noise(self) -> NDArray[np.floating]:
        """Blocks of random colours; always the same ones."""
        coarse = np.random.default_rng(0).random((1, 3, -(-self.size[1] // _BLOCK), -(-self.size[0] // _BLOCK)))
        fine = coarse.repeat(_BLOCK, 2).repeat(_BLOCK, 3)[:, :, : self.size[1], : self.size[0]]
        return np.ascontiguousarray(fine, self.dtype)


def open_model(path: Path, size: tuple[int, int] | None = None) -> OnnxModel:
    """Open the ONNX file of a detector, with ONNX Runtime.

    Args:
        path: The file.
        size: Width and height of the input, for a file that leaves them open.

    Raises:
        FileError: The file is missing or damaged, or does not take one image.
        DataError: The size does not fit the file, or is missing.
    """
    session, fingerprint = _open_session(path)
    facts = read_facts(session.get_modelmeta().custom_metadata_map, path)
    inputs = {entry.name: entry for entry in session.get_inputs()}
    for output in session.get_outputs():
        if not output.type.startswith("tensor("):
            raise FileError(
                f"{path} is not a detector of a known form: expected arrays as outputs, found {output.name}"
                f" {output.type}"
            )
        stated = [side for side in output.shape if isinstance(side, int)]
        _refuse_large(path, math.prod(stated) * np.dtype(_TYPES.get(output.type, np.int8)).itemsize)
    images = [entry for entry in inputs.values() if entry.name not in (FRAME_SIZE, _MASK)]
    if len(images) != 1 or len(images[0].shape) != 4 or _TYPES.get(images[0].type) not in (np.float32, np.float16):
        shown = ", ".join(f"{name} {entry.type} {entry.shape}" for name, entry in list(inputs.items())[:6])
        raise FileError(
            f"{path} is not a detector of a known form: expected one image float[1, 3, height, width] as input,"
            f" found {shown or 'none'}"
        )
    image = images[0]
    batch, channels, height, width = image.shape
    if (isinstance(batch, int) and batch != 1) or (isinstance(channels, int) and channels != 3):
        raise FileError(
            f"{path} takes images {image.shape}, expected one image with three colours, [1, 3, height, width];"
            " export it with a batch of 1"
        )
    chosen = _input_size(path, width, height, facts, size)
    others = {}
    for name in inputs.keys() - {image.name}:
        entry, shape = inputs[name], (1, 2) if name == FRAME_SIZE else (1, chosen[1], chosen[0])
        if len(entry.shape) != len(shape) or entry.type not in _TYPES:
            raise FileError(f"{path} has an input {name} {entry.type} {entry.shape} of unknown meaning")
        sides = zip(entry.shape, shape, strict=True)
        others[name] = (tuple(a if isinstance(a, int) else b for a, b in sides), _TYPES[entry.type])
    return OnnxModel(
        path=path,
        fingerprint=fingerprint,
        runner=onnx_runner(session),
        engine="onnx",
        facts=facts,
        image=image.name,
        dtype=_TYPES[image.type],
        size=chosen,
        others=others,
        outputs=tuple(output.name for output in session.get_outputs()),
    )


def _open_session(path: Path) -> tuple[Any, str]:
    """The session over an ONNX file, and its fingerprint."""
    try:
        if not path.is_file():
            raise FileError(f"{path} does not exist or is not a file; the ONNX file of a detector was expected")
        if path.stat().st_size > _LARGEST_FILE:
            raise FileError(f"{path} has more than 2 GB, the limit of an ONNX file; give the file of a detector")
        content = path.read_bytes()
    except (OSError, ValueError) as problem:
        raise FileError(f"{path} cannot be read: {first_line(problem)}") from None
    weights = _weight_files(path, content)
    try:
        session = open_session(path)
    except Exception as problem:  # its errors share no parent
        if missing := [file for file in weights if not file.is_file()]:
            raise FileError(f"{path} needs its weights from {missing[0].name}; copy that file beside it") from None
        raise FileError(
            f"{path} is damaged or not an ONNX model that ONNX Runtime can run ({failure(problem)}); export the"
            " detector as ONNX, for example with: yolo export model=best.pt format=onnx"
        ) from problem
    digest = hashlib.sha256(content)
    for file in filter(Path.is_file, weights):
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return session, digest.hexdigest()


def _weight_files(path: Path, content: bytes) -> list[Path]:
    """Files with weights that an ONNX file names; an error if one is not below its folder.

    Weights can look like a name by chance, so a file need not exist.
    """
    names = set()
    for match in _LOCATION.finditer(content):
        length = sum((byte & 0x7F) << 7 * index for index, byte in enumerate(match.group(1)))
        name = content[match.end() : match.end() + length].decode(errors="replace")
        if not name.isprintable() or "\ufffd" in name:
            continue
        names.add(name)
        for kind in (PurePosixPath, PureWindowsPath):
            if kind(name).is_absolute() or kind(name).drive or ".." in kind(name).parts:
                raise FileError(f"{path} has weights in {name[:200]}, outside its folder; export it as one file")
    return sorted(path.parent / name for name in names)


def _input_size(
    path: Path, width: Any, height: Any, facts: ModelFacts, size: tuple[int, int] | None
) -> tuple[int, int]:
    """Width and height of the input: those fixed in the file, else those asked for, else those in its metadata."""
    fixed = [side if isinstance(side, int) else None for side in (width, height)]
    asked = size or (facts.size if None in fixed else None)
    if asked is None and None in fixed:
        raise DataError(
            f"{path} takes images of any size; give the width and height, such as 640 x 640", mend="detector.size"
        )
    across, down = (side or other for side, other in zip(fixed, asked or (0, 0), strict=True))
    if asked is not None and (across, down) != asked:
        raise DataError(
            f"{path} takes images of {width} x {height} pixels, not {asked[0]} x {asked[1]}; leave the size out",
            mend="detector.size",
        )
    if not 1 <= min(across, down) <= max(across, down) <= LARGEST_SIDE:
        raise FileError(f"{path} takes images of {across} x {down} pixels; sides of 1 to {LARGEST_SIDE} are possible")
    if None in fixed and (across % facts.stride or down % facts.stride):
        raise DataError(
            f"{path} needs a width and height that are multiples of {facts.stride} pixels, found {across} x {down}",
            mend="detector.size",
        )
    return across, down


def _refuse_large(path: Path, count: int) -> None:
    """Raise `FileError` for outputs of so many bytes."""
    if count > _LARGEST_OUTPUTS:
        raise FileError(
            f"{path} is not a detector of a known form: its outputs for one image have {count:,} bytes, expected were "
            f"at most {_LARGEST_OUTPUTS:,}"
        )
