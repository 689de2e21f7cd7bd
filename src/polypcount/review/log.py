"""The log of decisions: an SQLite file in the folder of the count, which only ever grows.

A decision is on the disk before the page is told that it is saved. The file outlives a new count of the recording:
each decision names the count that it belongs to.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from polypcount.errors import FileError, PolypcountError, first_line
from polypcount.report.keep_review import held
from polypcount.report.review_file import DECISIONS
from polypcount.review.decisions import Effect
from polypcount.review.state import Decided
from polypcount.storage import check, parse_json

_FORMAT = 0x706F6C79  # "poly": SQLite keeps it in the file's header as the application's id
_VERSION = 1
_SECONDS_TO_WAIT = 20.0
_TABLE = """
CREATE TABLE decisions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    count TEXT NOT NULL,
    time TEXT NOT NULL,
    author TEXT NOT NULL,
    effect TEXT NOT NULL
)
"""


class Stale(PolypcountError):
    """A decision was taken on a view that is no longer the newest."""


class DecisionLog:
    """The decisions about one count.

    The file is opened for each use, so a folder that is replaced meanwhile is noticed.

    Args:
        folder: Folder of the count.
        count: Digest of the count; decisions about others are kept, and not read.
    """

    def __init__(self, folder: Path, count: str) -> None:
        self._path = folder / DECISIONS
        self._count = count

    @property
    def version(self) -> int:
        """Number of the last decision, 0 without one."""
        if not self._path.exists():
            return 0
        with self._open() as database:
            return self._last(database)

    @property
    def earlier(self) -> int:
        """How many decisions belong to other counts of the recording."""
        if not self._path.exists():
            return 0
        with self._open() as database:
            (number,) = database.execute("SELECT count(*) FROM decisions WHERE count != ?", (self._count,)).fetchone()
            return int(number)

    def read(self) -> list[Decided]:
        """The decisions, in order."""
        if not self._path.exists():
            return []
        with self._open() as database:
            rows = database.execute(
                "SELECT number, time, author, effect FROM decisions WHERE count = ? ORDER BY number", (self._count,)
            ).fetchall()
        return [
            Decided(int(number), str(time), str(author), self._effect(str(effect), int(number)))
            for number, time, author, effect in rows
        ]

    def append(
        self, effect: Effect, version: int, author: str = "", *, is_outdated: Callable[[], bool] = lambda: False
    ) -> Decided:
        """Write a decision to the disk.

        Args:
            effect: What it changes.
            version: Number of the last decision that whoever takes it has seen.
            author: Who takes it.
            is_outdated: Whether the folder holds another count by now.

        Raises:
            Stale: Another decision has been taken since, or the recording was counted again.
            FileError: It cannot be written.
        """
        time = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        with self._open() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                if is_outdated():
                    raise Stale("the recording was counted again meanwhile, so this decision was not taken; look again")
                if self._last(database) != version:
                    raise Stale("another decision was taken meanwhile, so this one was not; look at it again")
                row = database.execute(
                    "INSERT INTO decisions (count, time, author, effect) VALUES (?, ?, ?, ?)",
                    (self._count, time, author, effect.model_dump_json(exclude_defaults=True)),
                )
                number = int(row.lastrowid or 0)
                database.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    database.execute("ROLLBACK")
                raise
        return Decided(number, time, author, effect)

    def _last(self, database: sqlite3.Connection) -> int:
        (number,) = database.execute("SELECT max(number) FROM decisions WHERE count = ?", (self._count,)).fetchone()
        return int(number or 0)

    def _effect(self, text: str, number: int) -> Effect:
        where = f"{self._path}: decision {number}"
        return check(Effect, parse_json(text, where), where)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            for alone in (False, True):
                with held(self._path.parent, alone=alone), self._connected() as database:
                    if _is_empty(database):
                        if not alone:
                            continue  # nobody else may use it while it is made
                        self._path.chmod(0o600)  # decisions name people
                        _create(database)
                    (form,) = database.execute("PRAGMA application_id").fetchone()
                    (version,) = database.execute("PRAGMA user_version").fetchone()
                    if form != _FORMAT or version > _VERSION:
                        raise FileError(f"{self._path} is no log of decisions that this version can read")
                    database.execute("PRAGMA synchronous = FULL")
                    yield database
                    return
        except (sqlite3.Error, OSError) as problem:
            raise FileError(f"{self._path} cannot be read or written: {first_line(problem)}") from None

    def _connected(self) -> "contextlib.closing[sqlite3.Connection]":
        return contextlib.closing(sqlite3.connect(self._path, timeout=_SECONDS_TO_WAIT, isolation_level=None))


def _is_empty(database: sqlite3.Connection) -> bool:
    """Whether it is new, or was made by a process that was killed before it was done."""
    (form,) = database.execute("PRAGMA application_id").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return int(form) == 0 and int(tables) == 0


def _create(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("BEGIN IMMEDIATE")
    database.execute(_TABLE)
    database.execute(f"PRAGMA application_id = {_FORMAT}")
    database.execute(f"PRAGMA user_version = {_VERSION}")
    database.execute("COMMIT")
