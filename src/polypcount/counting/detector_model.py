"""An ONNX file that takes one image, opened with ONNX Runtime: what it takes, and running it."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.counting.detector_facts import ModelFacts
from polypcount.counting.detector_input import planes
from polypcount.counting.detector_settings import LARGEST_SIDE, refuse_size
from polypcount.encoder import Preprocessing
from polypcount.encoder.engine_onnx import best_providers
from polypcount.errors import DataError, FileError, first_line
from polypcount.machine import available_cores
from polypcount.offline import import_offline
from polypcount.video.frames import Image

_LARGEST_FILE = 1 << 31  # what one ONNX file can have
_LONGEST_REASON = 160
_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}
_FRAME_SIZE, _MASK = "orig_target_sizes", "pixel_mask"
# How an ONNX file names a file with weights: the key "location", then the length of a text in one or two bytes.
_LOCATION = re.compile(rb"\x0a\x08location\x12([\x80-\xff]?[\x01-\x7f])")


@dataclass(frozen=True)
class OnnxModel:
    """A model that takes one image float[1, 3, height, width].

    fingerprint: SHA-256 of the file, and of files with weights beside it if it has those.
    image: name of the input that the image goes to. dtype: of that input.
    size: width and height of it.
    others: other inputs, by name: their shape and type.
    """

    path: Path
    fingerprint: str
    session: Any = field(repr=False)
    image: str
    dtype: type
    size: tuple[int, int]
    others: Mapping[str, tuple[tuple[int, ...], type]]

    @property
    def told_frame_size(self) -> bool:
        """Whether it is told the size of the frame, and so gives boxes in pixels of the frame."""
        return _FRAME_SIZE in self.others

    def run(
        self, image: Image, images: Preprocessing, frame: tuple[int, int], wanted: Sequence[str] | None = None
    ) -> dict[str, NDArray[Any]]:
        """Outputs by name. image: uint8[height, width, 3]; frame: width and height of the frame that it was made of."""
        feed: dict[str, Any] = {self.image: planes(image, images).astype(self.dtype, copy=False)}
        for name, (shape, dtype) in self.others.items():
            feed[name] = np.array([frame], dtype) if name == _FRAME_SIZE else np.ones(shape, dtype)
        names = list(wanted or (entry.name for entry in self.session.get_outputs()))
        try:
            return dict(zip(names, self.session.run(names, feed), strict=True))
        except Exception as problem:  # the errors of ONNX Runtime share no parent
            raise DataError(
                f"{self.path} fails on an input of {self.size[0]} x {self.size[1]} pixels ({_short(problem)});"
                " another size may fit, or export it again"
            ) from problem


def open_file(path: Path) -> tuple[Any, str]:
    """The session over an ONNX file, and its fingerprint."""
    onnxruntime = import_offline("onnxruntime")
    try:
        if not path.is_file():
            found = "is no file" if path.exists() else "does not exist"
            raise FileError(f"{path} {found}; the ONNX file of a detector was expected")
        if path.stat().st_size > _LARGEST_FILE:
            raise FileError(f"{path} has more than 2 GB, which an ONNX file cannot have; give the file of a detector")
        content = path.read_bytes()
    except (OSError, ValueError) as problem:
        raise FileError(f"{path} cannot be read: {first_line(problem)}") from None
    beside = _files_beside(path, content)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is raised; the library would print it as well
    options.intra_op_num_threads = available_cores()
    # Threads that wait for the next image by spinning take the cores from decoding it.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=best_providers())
    except Exception as problem:  # its errors share no parent
        if missing := [file for file in beside if not file.is_file()]:
            raise FileError(
                f"{path} has its weights in {missing[0].name}, which is not beside it; copy it there"
            ) from None
        raise FileError(
            f"{path} is damaged or not an ONNX model that ONNX Runtime can run ({_short(problem)}); export the detector"
            " as ONNX, as by: yolo export model=best.pt format=onnx"
        ) from problem
    return session, _fingerprint(content, beside)


def inspect(path: Path, session: Any, fingerprint: str, facts: ModelFacts, size: tuple[int, int] | None) -> OnnxModel:
    """What the model takes. size: what the user says of its width and height."""
    inputs = {entry.name: entry for entry in session.get_inputs()}
    if other := [entry for entry in session.get_outputs() if not entry.type.startswith("tensor(")]:
        raise FileError(
            f"{path} is not a detector of a known form: expected arrays as outputs, found {other[0].name}"
            f" {other[0].type}"
        )
    images = [entry for entry in inputs.values() if len(entry.shape or ()) == 4]
    strange = [name for name in inputs if name not in (_FRAME_SIZE, _MASK)]
    if len(images) != 1 or len(strange) != 1 or _TYPES.get(images[0].type) not in (np.float32, np.float16):
        shown = ", ".join(f"{name} {entry.type} {entry.shape}" for name, entry in list(inputs.items())[:6])
        raise FileError(
            f"{path} is not a detector of a known form: expected one image float[1, 3, height, width] as input,"
            f" found {shown or 'none'}"
        )
    batch, channels, height, width = images[0].shape
    if (isinstance(batch, int) and batch != 1) or (isinstance(channels, int) and channels != 3):
        raise FileError(
            f"{path} takes images {images[0].shape}, and one of three colours, [1, 3, height, width], was expected;"
            " export it with a batch of 1"
        )
    chosen = _chosen_size(path, width, height, facts, size)
    others = {}
    for name in inputs.keys() - {images[0].name}:
        entry = inputs[name]
        free = (1, 2) if name == _FRAME_SIZE else (1, chosen[1], chosen[0])
        if len(entry.shape) != len(free) or entry.type not in _TYPES:
            raise FileError(f"{path} has an input {name} {entry.type} {entry.shape} of unknown meaning; export it anew")
        shape = tuple(a if isinstance(a, int) else b for a, b in zip(entry.shape, free, strict=True))
        others[name] = (shape, _TYPES[entry.type])
    return OnnxModel(path, fingerprint, session, images[0].name, _TYPES[images[0].type], chosen, others)


def _chosen_size(
    path: Path, width: Any, height: Any, facts: ModelFacts, size: tuple[int, int] | None
) -> tuple[int, int]:
    fixed = tuple(side if isinstance(side, int) else None for side in (width, height))
    said = size or (facts.size if None in fixed else None)
    if said is None and None in fixed:
        raise DataError(f"{path} takes images of any size; say with size which width and height, such as 640 x 640")
    chosen = tuple(known or asked for known, asked in zip(fixed, said or (0, 0), strict=True))
    if said is not None and chosen != said:
        raise DataError(
            f"{path} takes images of {width} x {height} pixels, and size says {said[0]} x {said[1]}; leave size out"
        )
    if max(chosen) > LARGEST_SIDE:
        raise FileError(f"{path} takes images of {chosen[0]} x {chosen[1]} pixels; up to {LARGEST_SIDE} can be given")
    refuse_size(f"{path}: size", chosen)
    if None in fixed and any(side % facts.stride for side in chosen):
        raise DataError(
            f"{path}: size must be multiples of {facts.stride} pixels for this model, found {chosen[0]} x {chosen[1]}"
        )
    return chosen[0], chosen[1]


def _files_beside(path: Path, content: bytes) -> list[Path]:
    """Files with weights that an ONNX file names; an error where one is not below its folder.

    Weights can happen to look like a name, so a file need not be there.
    """
    names = set()
    for match in _LOCATION.finditer(content):
        length = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(match.group(1)))
        text = content[match.end() : match.end() + length].decode(errors="replace")
        if text.isprintable() and "\ufffd" not in text:
            names.add(text)
    for name in names:
        for kind in (PurePosixPath, PureWindowsPath):
            if kind(name).is_absolute() or kind(name).drive or ".." in kind(name).parts:
                raise FileError(f"{path} wants weights from {name[:200]}, outside its folder; export it as one file")
    return sorted(path.parent / name for name in names)


def _fingerprint(content: bytes, beside: Sequence[Path]) -> str:
    digest = hashlib.sha256(content)
    for file in beside:
        if file.is_file():
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def _short(problem: BaseException) -> str:
    """The end of what ONNX Runtime says, where the cause is; before it come names of its own functions."""
    return first_line(problem)[-_LONGEST_REASON:]
