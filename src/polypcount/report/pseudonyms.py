"""Pseudonyms of recordings, and the file that keeps which is which."""

import csv
import secrets
from pathlib import Path

from polypcount.errors import FileError, first_line
from polypcount.whole import whole_file

_COLUMNS = ["pseudonym", "recording"]


class Pseudonyms:
    """A name that tells nothing for each recording, the same one whenever it is asked for.

    They are random: a hash of a file's name could be found by trying names. The file belongs with the recordings, not
    with the reports.
    """

    def __init__(self, known: dict[str, str] | None = None) -> None:
        self._known = dict(known or {})

    @classmethod
    def load(cls, path: Path) -> "Pseudonyms":
        """Those that a file has; none, where there is no file yet."""
        if not path.exists():
            return cls()
        try:
            with path.open(newline="", encoding="utf-8") as file:
                rows = list(csv.reader(file))
        except (OSError, ValueError, csv.Error) as problem:
            raise FileError(f"{path} cannot be read: {first_line(problem)}") from None
        if not rows or rows[0] != _COLUMNS or any(len(row) != 2 or not row[0].isidentifier() for row in rows[1:]):
            raise FileError(f"{path} is not a file of pseudonyms: it must have the columns {','.join(_COLUMNS)}")
        return cls({recording: pseudonym for pseudonym, recording in rows[1:]})

    def of(self, recording: str) -> str:
        """The pseudonym of a recording; a new one, where it has none."""
        return self._known.setdefault(recording, f"procedure_{secrets.token_hex(4)}")

    def save(self, path: Path) -> None:
        """Write all of them."""
        try:
            with whole_file(path) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(_COLUMNS)
                writer.writerows([pseudonym, recording] for recording, pseudonym in self._known.items())
        except OSError as problem:
            raise FileError(f"{path} cannot be written: {first_line(problem)}") from None
