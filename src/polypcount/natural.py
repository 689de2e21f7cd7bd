"""File names in the order in which people number them."""

import re

_DIGITS = re.compile(r"(\d{1,1000})")  # int() takes no more than 4300


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Key that sorts `a2` before `a10`: runs of digits compare as numbers, everything else as text."""
    parts = _DIGITS.split(name)
    return tuple((0, int(part), part) if index % 2 else (1, 0, part) for index, part in enumerate(parts))
