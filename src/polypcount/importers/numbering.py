"""File names that count: their rank, and the number at the end of a name."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polypcount.natural import natural_key

# A frame number may be written as a decimal, 123.0; the extension is gone by then.
_LAST_NUMBER = re.compile(r"(?<!\d)0*(\d{1,9})(?:\.0)?$")


def last_number(stem: str) -> int | None:
    """The number with which a name without its extension ends; None where it ends otherwise."""
    match = _LAST_NUMBER.search(stem)
    return int(match[1]) if match else None


def frames_by_number(stems: Sequence[str]) -> NDArray[np.int32] | None:
    """Frame of each name, its number less the lowest one; None where a name has no number or two have the same."""
    numbers = [last_number(stem) for stem in stems]
    known = [number for number in numbers if number is not None]
    if len(known) < len(stems) or len(set(known)) < len(known):
        return None
    return np.array(known, np.int64).astype(np.int32) - np.int32(min(known, default=0))


def frames_by_rank(stems: Sequence[str]) -> NDArray[np.int32]:
    """Frame of each name, its rank in natural order."""
    order = sorted(range(len(stems)), key=lambda index: natural_key(stems[index]))
    rank = np.empty(len(stems), np.int32)
    rank[order] = np.arange(len(stems))
    return rank
