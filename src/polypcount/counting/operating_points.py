"""The operating points in the folder of an encoder: with which settings its vectors are grouped.

operating-points.json holds one point for each method, and which of them `count` takes by default. Version 1 held one
point under `counting`; it is still read.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import model_validator

from polypcount.clustering import OperatingPoint
from polypcount.encoder import Encoder
from polypcount.errors import DataError, FileError
from polypcount.storage import Manifest, check_manifest, read_json, write_json

POINTS_FILE = "operating-points.json"


class OperatingPoints(Manifest):
    """The content of operating-points.json.

    Attributes:
        default: Method that `count` uses if none is named.
        points: An operating point for each method.
    """

    FORMAT: ClassVar[str] = "polypcount-operating-points"
    VERSION: ClassVar[int] = 2
    KIND: ClassVar[str] = "a file of operating points"

    default: str
    points: dict[str, OperatingPoint]

    @model_validator(mode="after")
    def _refuse_missing_default(self) -> "OperatingPoints":
        for name, point in self.points.items():
            if point.method != name:
                raise ValueError(f"points: {name} holds a point of the method {point.method}")
        if self.default not in self.points:
            raise ValueError(f"default must be one of {', '.join(self.points)}, found {self.default!r}")
        return self


def read_operating_points(encoder_folder: Path) -> OperatingPoints:
    """Read the operating points beside an encoder.

    Raises:
        FileError: There are none, or the file is damaged.
    """
    path = encoder_folder / POINTS_FILE
    if not path.exists():
        raise FileError(
            f"{encoder_folder} has no operating point for counting; a study of recordings with known polyps makes one",
            mend="for_counting",
        )
    values = read_json(path)
    if isinstance(values, dict) and values.get("format_version") == 1 and isinstance(values.get("counting"), dict):
        point = values["counting"]
        values = {
            "format": values.get("format"),
            "format_version": OperatingPoints.VERSION,
            "default": point.get("method"),
            "points": {str(point.get("method")): point},
        }
    return check_manifest(OperatingPoints, values, str(path))


def operating_point(encoder: Encoder, method: str | None = None) -> OperatingPoint:
    """The operating point of an encoder for a method, or its default one."""
    operating_points = read_operating_points(encoder.folder)
    points = operating_points.points
    if method is not None and method not in points:
        raise DataError(
            f"{encoder.folder} has no operating point for the method {method!r}; it has: {', '.join(points)}",
            mend="method",
        )
    return points[method or operating_points.default]


def write_operating_points(encoder_folder: str | Path, points: Mapping[str, OperatingPoint], default: str) -> Path:
    """Write operating points beside an encoder, in place of earlier ones; returns the file."""
    path = Path(encoder_folder) / POINTS_FILE
    operating_points = OperatingPoints.described(
        default=default, points={name: point.model_dump(mode="json") for name, point in points.items()}
    )
    try:
        write_json(path, operating_points.model_dump(mode="json"))
    except OSError as problem:
        raise FileError(f"{path} cannot be written: {problem.strerror or problem}") from problem
    return path
