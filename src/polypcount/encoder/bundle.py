"""The encoder that comes with the package, and the operating points at which it is used.

bundled/encoder.json, bundled/model-1a2b3c4d/    an encoder folder without encoder.safetensors, see `folder.py`
bundled/operating-points.json                    for which settings which scores were measured
"""

import json
import math
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from polypcount.encoder.folder import read_onnx, refuse_unsuitable, write_folder
from polypcount.encoder.manifest import FRAME, MANIFEST, SEQUENCE, WEIGHTS, read_json
from polypcount.errors import DataError, FileError
from polypcount.whole import whole_file

POINTS = "operating-points.json"
LARGEST_BYTES = 20_000_000
_FORMAT, _FORMAT_VERSION = "polypcount-operating-points", 1


def bundled_folder() -> Path:
    """Where the encoder is that comes with the package; `FileError` where this installation has none."""
    folder = Path(str(files("polypcount.encoder") / "bundled"))
    if not (folder / MANIFEST).exists():
        raise FileError(
            "this installation of polypcount comes without an encoder; give the folder of one that polypcount train "
            "has written, or install polypcount again"
        )
    return folder


def make_bundle(run: str | Path, out: str | Path, operating_points: Mapping[str, Any] | None = None) -> Path:
    """Write an encoder without its torch weights, of at most 20 MB; returns the folder.

    Args:
        run: an encoder folder; its files are checked against their hashes.
        out: new, or with such a bundle in it, which is replaced together with its operating points.
        operating_points: `selected_on` and `points`, as `operating_points` gives them; None for none.
    """
    out = Path(out)
    described, _, models = read_onnx(Path(run))
    models = {name: models[name] for name in (FRAME, SEQUENCE)}
    if (size := sum(map(len, models.values()))) > LARGEST_BYTES:
        sizes = ", ".join(f"{name} {len(content) / 1e6:.1f} MB" for name, content in models.items())
        raise DataError(
            f"{run}: a bundled encoder may have {LARGEST_BYTES / 1e6:.0f} MB, found {size / 1e6:.1f} ({sizes}); "
            "train one with a smaller backbone, or fewer or narrower layers"
        )
    points = None
    if operating_points is not None:
        points = {"format": _FORMAT, "format_version": _FORMAT_VERSION, **operating_points}
        _check_points(points)
    refuse_unsuitable(out)
    if any(out.glob(f"model-*/{WEIGHTS}")):
        raise FileError(f"{out} holds an encoder with its torch weights, which would be lost; choose a new folder")
    try:
        # First, so that no encoder ever stands beside the points of another.
        (out / POINTS).unlink(missing_ok=True)
        write_folder(out, described, models)
        if points is not None:
            with whole_file(out / POINTS) as unfinished:
                unfinished.write_text(json.dumps(points, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    except OSError as problem:
        raise FileError(f"{out}: the bundle could not be written: {problem.strerror or problem}") from problem
    return out


def keep_counting_point(folder: str | Path, counting: Mapping[str, Any]) -> Path:
    """Keep the point at which recordings are counted beside an encoder, in place of an earlier one; returns the file.

    counting: as `evaluation.counting_point` gives it. Other points that are there stay.
    """
    path = Path(folder) / POINTS
    found: dict[str, Any] = {"selected_on": counting.get("selected_on"), "points": []}
    if path.exists():
        found = operating_points(folder)
    points = {**found, "format": _FORMAT, "format_version": _FORMAT_VERSION, "counting": dict(counting)}
    _check_points(points)
    try:
        with whole_file(path) as unfinished:
            unfinished.write_text(json.dumps(points, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    except OSError as problem:
        raise FileError(f"{path} cannot be written: {problem.strerror or problem}") from problem
    return path


def operating_points(folder: str | Path) -> dict[str, Any]:
    """What `operating-points.json` of an encoder folder says, every entry of the right kind.

    Returns `format`, `format_version`, `selected_on` (the data by which the points were chosen), `points`, and where
    there is one, `counting`: the point at which recordings are counted, see `counting/point.py`. Each of the points
    has `name`, `method`, `similarity` and `rule` (texts), `cannot_link` (bool), `target_fpr` (0 to 1),
    `parameters` (numbers by name) and `measured` (likewise, None for what is undefined). That there is such a method
    is not checked.
    """
    path = Path(folder) / POINTS
    try:
        found = read_json(path, "a file of operating points", _FORMAT, _FORMAT_VERSION)
        _check_points(found)
    except (FileNotFoundError, NotADirectoryError):
        raise FileError(f"{path} does not exist: this encoder comes without operating points") from None
    except DataError as problem:
        raise FileError(f"{path}: {problem}") from None
    return found


def _check_points(found: Mapping[str, Any]) -> None:
    if isinstance(found, dict) and found.get("points") in ([], ()) and "counting" not in found:
        raise DataError("operating points: points must be a list with at least one entry, found []")
    rules = {"format": _is(_FORMAT), "format_version": _is(_FORMAT_VERSION), **_WHOLE}
    if isinstance(found, dict) and "counting" in found:
        rules["counting"] = "a JSON object", lambda value: isinstance(value, dict)
        _check(found["counting"], "counting", _COUNTING)
    _check(found, "operating points", rules)
    names = set()
    for number, point in enumerate(found["points"]):
        _check(point, f"points[{number}]", _POINT)
        if point["name"] in names:
            raise DataError(f"points[{number}].name must be there once, found {point['name']!r} again")
        names.add(point["name"])


_Rule = tuple[str, Callable[[Any], bool]]


def _check(found: Any, where: str, rules: Mapping[str, _Rule]) -> None:
    """Raise `DataError` unless `found` is a JSON object with exactly these entries, which keep to their rules."""
    if not isinstance(found, dict):
        raise DataError(f"{where} must be a JSON object, found {_shown(found)}")
    if unknown := sorted(str(key) for key in set(found) - set(rules)):
        raise DataError(f"{where}: {_shown(unknown[0])} is unknown; known are {', '.join(rules)}")
    for key, (expected, holds) in rules.items():
        if key not in found:
            raise DataError(f"{where}: {key} is missing; it must be {expected}")
        if not holds(found[key]):
            raise DataError(f"{where}: {key} must be {expected}, found {_shown(found[key])}")


def _is(value: Any) -> _Rule:
    return repr(value), lambda found: type(found) is type(value) and bool(found == value)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9 and math.isfinite(value)


def _numbers(value: Any, or_none: bool = False) -> bool:
    return isinstance(value, dict) and all(
        isinstance(name, str) and (_number(entry) or (or_none and entry is None)) for name, entry in value.items()
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


_TEXT: _Rule = "a text that is not empty", lambda value: isinstance(value, str) and bool(value.strip())
_WHOLE: dict[str, _Rule] = {
    "selected_on": _TEXT,
    "points": ("a list", lambda value: isinstance(value, list | tuple)),
}
_COUNTING: dict[str, _Rule] = {
    "method": _TEXT,
    "parameters": (
        "finite numbers or texts by name",
        lambda value: (
            isinstance(value, dict) and all(_number(each) or isinstance(each, str) for each in value.values())
        ),
    ),
    "cannot_link": ("true or false", lambda value: isinstance(value, bool)),
    "varied": _TEXT,
    "values": (
        "a rising list of 1 to 1000 numbers",
        lambda value: (
            isinstance(value, list | tuple)
            and 1 <= len(value) <= 1000
            and all(map(_number, value))
            and list(value) == sorted(value)
        ),
    ),
    "level": ("a number above 0 and below 1", lambda value: _number(value) and 0 < value < 1),
    "selected_on": _TEXT,
    "measured": ("finite numbers by name", _numbers),
}
_POINT: dict[str, _Rule] = {
    "name": _TEXT,
    "method": _TEXT,
    "similarity": _TEXT,
    "cannot_link": ("true or false", lambda value: isinstance(value, bool)),
    "target_fpr": ("a number from 0 to 1", lambda value: _number(value) and 0 <= value <= 1),
    "rule": _TEXT,
    "parameters": ("finite numbers by name", _numbers),
    "measured": ("finite numbers, or null, by name", lambda value: _numbers(value, or_none=True)),
}
