"""Where a detector is, and `detector.json` beside it: what is known about a detector of polypcount.

    detector.onnx    the model, see `model_file.py`
    detector.json    how it is used, see `DetectorFile`, and how it was made

Both are in the folder of a trained detector, and in the folder `bundled` of this room.
"""

import hashlib
import os
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from polypcount.detection.false_alarms import FalseAlarmRule
from polypcount.detection.model_input import GREY
from polypcount.errors import DataErrors, FileError
from polypcount.storage import Schema, check, read_bytes, read_json, shown

BUNDLED = "bundled"
MODEL, DESCRIPTION = "detector.onnx", "detector.json"
FORMAT: Literal["polypcount-detector 1"] = "polypcount-detector 1"
_LARGEST_JSON, _LARGEST_FILE = 1 << 24, 1 << 31


class DetectorFile(Schema):
    """All of `detector.json`. Other keys say how the detector was made, and are not used.

    Attributes:
        format: What the file is, and its version.
        threshold: Boxes with at least this score are taken for polyps.
        padding: The value of pixels beside a letterboxed frame, 0 to 255.
        false_alarms: The rule for tracklets that are perhaps no polyp; None if none was fitted.
        end_to_end: How counts from its boxes come out; None if that was not measured. `counting` reads it.
        sha256: SHA-256 of `detector.onnx`, if it is to be checked.
    """

    model_config = ConfigDict(extra="allow")

    format: Literal["polypcount-detector 1"]
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.5
    padding: Annotated[int, Field(ge=0, le=255)] = GREY
    false_alarms: FalseAlarmRule | None = None
    end_to_end: dict[str, Any] | None = None
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None


def find_model(path: str | os.PathLike[str]) -> tuple[str, Path]:
    """The name of a detector and its ONNX file.

    Args:
        path: "bundled", a folder that holds `detector.onnx`, or an ONNX file.

    Raises:
        FileError: There is no such file.
    """
    if os.fspath(path) == BUNDLED:
        return BUNDLED, _bundled_model()
    file = Path(path)
    try:
        if file.is_dir():
            file = file / MODEL
            if not file.is_file():
                raise FileError(
                    f"{file.parent} holds no {MODEL}; the ONNX file of a detector, or the folder of a trained one, was"
                    " expected"
                )
    except (OSError, ValueError) as problem:
        raise FileError(f"{path!r} cannot be read: {problem}") from None
    return file.name, file


def read_detector_file(model: Path) -> DetectorFile | None:
    """What `detector.json` beside a file `detector.onnx` says; None where there is none.

    Raises:
        FileError: It is damaged, of another format, or describes another model.
    """
    path = model.with_name(DESCRIPTION)
    if model.name != MODEL or not path.exists():
        return None
    values = read_json(path, _LARGEST_JSON)
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        found = shown(values.get("format")) if isinstance(values, dict) else shown(values)
        raise FileError(
            f'{path} does not describe a detector that this polypcount can read: "format" must be "{FORMAT}", found '
            f"{found}; upgrade polypcount, or copy the folder again"
        )
    try:
        described = check(DetectorFile, values, str(path))
    except DataErrors as problem:
        raise FileError(f"{problem.lines[0]}; copy the folder of the detector again") from None
    if described.sha256 and hashlib.sha256(read_bytes(model, _LARGEST_FILE)).hexdigest() != described.sha256:
        raise FileError(f"{path} describes another model than {MODEL} beside it; copy the folder again")
    return described


def _bundled_model() -> Path:
    model = Path(str(files("polypcount.detection") / BUNDLED)) / MODEL
    if not model.is_file():
        raise FileError(
            "this installation of polypcount has no bundled detector; give the file of a trained one, or install "
            "polypcount again"
        )
    return model
