"""Texts as users type them, and texts from files as a terminal may show them."""

import re

from polypcount.errors import DataError


def parse_size(text: str) -> tuple[int, int]:
    """Width and height from a text such as `1240x1080`."""
    if not (match := re.fullmatch(r"(\d{1,5})x(\d{1,5})", text)) or not int(match[1]) or not int(match[2]):
        raise DataError(f"--size must be width x height in pixels, such as 1240x1080, found {text!r}")
    return int(match[1]), int(match[2])


def harmless(text: str) -> str:
    """One line without control characters, which could make a terminal do things."""
    return "".join(c if c.isprintable() else " " if c.isspace() else repr(c)[1:-1] for c in text)
