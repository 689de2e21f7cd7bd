"""The ONNX file of a detector, opened with ONNX Runtime: which image it takes, and running it."""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.detection.facts import ModelFacts, read_facts
from polypcount.detection.settings import LARGEST_SIDE
from polypcount.encoder import Preprocessing
from polypcount.encoder.engine_onnx import best_providers, failure, new_session, session_options
from polypcount.errors import DataError, FileError, first_line
from polypcount.machine import available_cores
from polypcount.video.frames import Image

_LARGEST_FILE = 1 << 31  # the limit of the ONNX format
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
        session: The `onnxruntime.InferenceSession`.
        facts: What the file says about itself.
        image: Name of the input that takes the image.
        dtype: Type of that input.
        size: Width and height of that input.
        others: Shape and type of each other input, by name.
    """

    path: Path
    fingerprint: str
    session: Any = field(repr=False)
    facts: ModelFacts
    image: str
    dtype: type
    size: tuple[int, int]
    others: Mapping[str, tuple[tuple[int, ...], type]]

    def run(
        self, image: Image, images: Preprocessing, frame: tuple[int, int], outputs: Sequence[str] | None = None
    ) -> dict[str, NDArray[Any]]:
        """Run the model on one image.

        Args:
            image: uint8[height, width, 3] of the model's size.
            images: Mean and standard deviation of the input.
            frame: Width and height of the frame that the image was made from.
            outputs: Names of the outputs to compute; all if None.

        Returns:
            The outputs by name.
        """
        inputs: dict[str, Any] = {self.image: _normalised(image, images).astype(self.dtype, copy=False)}
        for name, (shape, dtype) in self.others.items():
            inputs[name] = np.array([frame], dtype) if name == FRAME_SIZE else np.ones(shape, dtype)
        names = list(outputs or (output.name for output in self.session.get_outputs()))
        try:
            values = dict(zip(names, self.session.run(names, inputs), strict=True))
        except Exception as problem:  # the errors of ONNX Runtime share no parent
            raise DataError(
                f"{self.path} fails on an input of {self.size[0]} x {self.size[1]} pixels ({failure(problem)});"
                " try another size, or export it again"
            ) from problem
        _refuse_large(self.path, sum(value.nbytes for value in values.values()))
        return values


def open_model(path: Path, size: tuple[int, int] | None = None) -> OnnxModel:
    """Open the ONNX file of a detector.

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
    return OnnxModel(path, fingerprint, session, facts, image.name, _TYPES[image.type], chosen, others)


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
    options = session_options(available_cores())
    # Threads that wait for the next image by spinning take the cores from decoding it.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session = new_session(str(path), options, best_providers())
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


def _normalised(image: Image, images: Preprocessing) -> NDArray[np.float32]:
    """uint8[height, width, 3] -> float32[1, 3, height, width]: (x / 255 - mean) / std of each colour.

    The encoder's `normalised` does the same for crops; for one large image it takes four times as long.
    """
    std = np.array(images.std)
    scale, shift = 1 / (255 * std), np.array(images.mean) / std
    colours = np.ascontiguousarray(image.transpose(2, 0, 1))
    values = np.multiply(colours, scale.astype(np.float32)[:, None, None], dtype=np.float32)
    values -= shift.astype(np.float32)[:, None, None]
    return values[None]


def _refuse_large(path: Path, count: int) -> None:
    """Raise `FileError` for outputs of so many bytes."""
    if count > _LARGEST_OUTPUTS:
        raise FileError(
            f"{path} is not a detector of a known form: its outputs for one image have {count:,} bytes, expected were "
            f"at most {_LARGEST_OUTPUTS:,}"
        )
