"""Numbers in files: read strictly, and written with as few digits as float32 needs."""

import math
import re

import numpy as np
from numpy.typing import NDArray

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DIGITS = re.compile(r"[+-]?[0-9]{1,18}")
_LONGEST = 64


def decimal(text: str) -> float | None:
    """The finite number that a text is, with or without space around it; None where it is none."""
    text = text.strip()
    if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def whole(text: str) -> int | None:
    """The whole number that a text is, also where it is written as 12.0; None where it is none."""
    text = text.strip()
    if _DIGITS.fullmatch(text):
        return int(text)
    number = decimal(text)
    return int(number) if number is not None and number.is_integer() else None


def json_decimal(value: object) -> float | None:
    """The finite number that a JSON value is; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def json_whole(value: object) -> int | None:
    """The whole number that a JSON value is, also where it is written as 12.0; None where it is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    number = json_decimal(value)
    return int(number) if number is not None and number.is_integer() else None


def shortest(column: NDArray[np.float32]) -> list[str]:
    """Each number [n] in the fewest digits that read back as the same float32."""
    return [text.removesuffix(".0") for text in column.astype("U32").tolist()]


def extents(low: NDArray[np.float32], high: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Starts and lengths [n] of the spans from low to high, whose sum reads back as the same float32 `high`."""
    start = np.array(shortest(low), np.float64)
    length = np.array(shortest(high), np.float64) - start
    rounded = np.round(length, 4)
    same = (rounded > 0) & ((start + rounded).astype(np.float32) == high)
    return start, np.where(same, rounded, length)
