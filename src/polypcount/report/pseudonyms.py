"""Pseudonyms of recordings, and the file that keeps which is which."""

import re
from pathlib import Path
from secrets import token_hex

from polypcount.errors import FileError, first_line
from polypcount.storage import csv_text, csv_value, read_rows, write_text

_COLUMNS = ["pseudonym", "recording"]


class Pseudonyms:
    """A random name for each recording, the same one each time.

    The names are random, since a hash of a file name can be found out by trying names. Keep the file with the
    recordings, not with the reports.
    """

    def __init__(self, by_recording: dict[str, str] | None = None) -> None:
        self._by_recording = dict(by_recording or {})

    @classmethod
    def load(cls, path: Path) -> "Pseudonyms":
        """Read them from a file; there are none if it does not exist."""
        if not path.exists():
            return cls()
        rows = [[csv_value(cell) for cell in cells] for _, cells in read_rows(path)]
        if not rows or rows[0] != _COLUMNS or any(len(row) != 2 or not row[0].isidentifier() for row in rows[1:]):
            raise FileError(f"{path} is not a file of pseudonyms: it must have the columns {','.join(_COLUMNS)}")
        return cls({recording: pseudonym for pseudonym, recording in rows[1:]})

    def of(self, recording: str) -> str:
        """The pseudonym of a recording; a new one if it has none."""
        return self._by_recording.setdefault(recording, f"procedure_{token_hex(4)}")

    @staticmethod
    def is_pseudonym(name: str) -> bool:
        """Whether a name is one that `of` gives."""
        return re.fullmatch(r"procedure_[0-9a-f]{8}", name) is not None

    def save(self, path: Path) -> None:
        """Write all of them."""
        try:
            write_text(path, csv_text(_COLUMNS, [row[::-1] for row in self._by_recording.items()]), private=True)
        except OSError as problem:
            raise FileError(f"{path} cannot be written: {first_line(problem)}") from None
