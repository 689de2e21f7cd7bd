"""Texts from files: ids that can be stored, values to show in messages, and names that are safe for folders."""

import json
import re
import reprlib
from collections.abc import Iterable

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 80
_LONGEST_ID = 1000


def usable(value: object) -> str | None:
    """The value where it is a text that can be an id: neither empty nor long, and made of whole characters."""
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_ID:
        return None
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, as "\ud800" in JSON gives
        return None
    return value


def shown(value: object) -> str:
    """A value of any size and depth for a message, cut short."""
    return reprlib.repr(value)


def quoted(text: str) -> str:
    """The text itself, or in JSON quotes where it would not survive in one line of a text file."""
    plain = text.isprintable() and text == text.strip() and not text.startswith('"')
    return text if plain else json.dumps(text)


def unquoted(text: str) -> str:
    """The inverse of `quoted`."""
    if text.startswith('"'):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        if isinstance(value, str):
            return value
    return text


def safe_names(ids: Iterable[str]) -> list[str]:
    """A name for each id that is a plain file name on every system, different from all others in any case."""
    taken: set[str] = set()
    names = []
    for text in ids:
        stem = _UNSAFE.sub("_", text)[:_LONGEST_NAME].strip(".") or "video"
        name, number = stem, 1
        while name.lower() in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name.lower())
        names.append(name)
    return names
