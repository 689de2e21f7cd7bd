"""Whether JSON values from elsewhere have the fields and types that they should."""

import math
from dataclasses import dataclass
from typing import Any

from polypcount.errors import FileError
from polypcount.importers.texts import shown

_NAMES = {int: "a whole number", float: "a number", str: "a text", dict: "an object"}


@dataclass(frozen=True)
class Maybe:
    """The shape of a value that may be null."""

    shape: Any


def refuse_other_shape(value: Any, shape: Any, where: str) -> None:
    """Raise a `FileError` that names the field where a value is not of a shape.

    shape: int, float (or whole), str or dict; a list with the shape of its items; a dict with the shapes of the fields
        that must be there; or one of these as `Maybe`.
    """
    if isinstance(shape, Maybe):
        if value is not None:
            refuse_other_shape(value, shape.shape, where)
    elif isinstance(shape, dict):
        _refuse(isinstance(value, dict), where, "an object", value)
        for name, inside in shape.items():
            if name not in value:
                raise FileError(f"{where}: {name} is missing")
            refuse_other_shape(value[name], inside, f"{where}: {name}")
    elif isinstance(shape, list):
        _refuse(isinstance(value, list), where, "a list", value)
        for row, item in enumerate(value):
            refuse_other_shape(item, shape[0], f"{where}[{row}]")
    elif shape is float:
        usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        _refuse(usable, where, _NAMES[shape], value)
    else:
        _refuse(type(value) is shape, where, _NAMES[shape], value)


def _refuse(right: bool, where: str, expected: str, found: Any) -> None:
    if not right:
        raise FileError(f"{where} must be {expected}, found {shown(found)}")
