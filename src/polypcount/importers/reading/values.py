"""Numbers and texts in files: read strictly, written with as few characters as needed."""

import json
import math
import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from polypcount.natural import natural_key

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DIGITS = re.compile(r"[+-]?[0-9]{1,18}")
# A frame number may be written as a decimal, 123.0; the extension is gone by then.
_LAST_NUMBER = re.compile(r"(?<!\d)0*(\d{1,9})(?:\.0)?$")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NUMBER = 64
_LONGEST_NAME = 80
_LONGEST_ID = 1000


def decimal(text: str) -> float | None:
    """Parse a finite number, with or without space around it; None if the text is not one."""
    text = text.strip()
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    return json_decimal(float(text))


def decimals(texts: Iterable[str]) -> tuple[float, ...]:
    """Parse finite numbers; empty if one of the texts is not one."""
    numbers = [decimal(text) for text in texts]
    finite = tuple(number for number in numbers if number is not None)
    return finite if len(finite) == len(numbers) else ()


def whole(text: str) -> int | None:
    """Parse a whole number, which may be written as 12.0; None if the text is not one."""
    text = text.strip()
    return int(text) if _DIGITS.fullmatch(text) else json_whole(decimal(text))


def json_decimal(value: object) -> float | None:
    """A JSON value as a finite number; None if it is not one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def json_whole(value: object) -> int | None:
    """A JSON value as a whole number, which may be written as 12.0; None if it is not one."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    number = json_decimal(value)
    return int(number) if number is not None and number.is_integer() else None


def shortest(column: NDArray[np.float32]) -> list[str]:
    """Each number of float32[n] in the fewest digits that read back as the same float32."""
    return [text.removesuffix(".0") for text in column.astype("U32").tolist()]


def corners_and_sides(xyxy: NDArray[np.float32]) -> list[list[float]]:
    """Boxes float32[n, 4] as x, y, width, height, from which x2 and y2 read back as the same float32."""
    corner, end = np.array([shortest(column) for column in xyxy.T], np.float64).reshape(2, 2, -1)
    side = end - corner
    rounded = np.round(side, 4)
    same = (rounded > 0) & ((corner + rounded).astype(np.float32) == xyxy.T[2:])
    boxes: list[list[float]] = np.vstack([corner, np.where(same, rounded, side)]).T.tolist()
    return boxes


def usable(value: object) -> str | None:
    """The value if it is a text that can be an id: not empty, not too long, and without half characters."""
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_ID:
        return None
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, as "\ud800" in JSON gives
        return None
    return value


def quoted(text: str) -> str:
    """The text itself, or in JSON quotes if one line of a text file cannot hold it unchanged."""
    plain = text.isprintable() and text == text.strip() and not text.startswith('"')
    return text if plain else json.dumps(text)


def unquoted(text: str) -> str:
    """The inverse of `quoted`."""
    try:
        value = json.loads(text) if text.startswith('"') else text
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str) else text


def safe_names(ids: Iterable[str]) -> list[str]:
    """A plain file name for each id, distinct even on systems that ignore upper and lower case."""
    names: dict[str, str] = {}
    for text in ids:
        name = stem = _UNSAFE.sub("_", text)[:_LONGEST_NAME].strip(".") or "video"
        number = 1
        while name.lower() in names:
            number += 1
            name = f"{stem}-{number}"
        names[name.lower()] = name
    return list(names.values())


def last_number(stem: str) -> int | None:
    """The number at the end of a file name without its extension; None where it ends in something else."""
    match = _LAST_NUMBER.search(stem)
    return int(match[1]) if match else None


def frames_by_number(stems: Sequence[str]) -> list[int] | None:
    """Frame of each name, its number minus the lowest one; None where a name has no number or two have the same."""
    numbers = [number for stem in stems if (number := last_number(stem)) is not None]
    if len(set(numbers)) < len(stems):
        return None
    return [number - min(numbers) for number in numbers]


def frames_by_rank(stems: Sequence[str]) -> list[int]:
    """Frame of each name, its rank in natural order."""
    rank = {index: rank for rank, index in enumerate(sorted(range(len(stems)), key=lambda i: natural_key(stems[i])))}
    return [rank[index] for index in range(len(stems))]
