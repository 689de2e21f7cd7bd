"""The log of decisions: it only grows, several may write to it, and whatever is wrong with it is one plain line."""

import sqlite3
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from polypcount.errors import DataError, FileError
from polypcount.review import Review
from polypcount.review import decisions as d
from polypcount.review.log import DecisionLog, Stale
from tests.review.disks import fill, make_read_only, small_disk
from tests.review.results import copy_of_result

SPLIT = d.Split(kind="split", polyp=1, frame=80)
UNDO = d.Undo(kind="undo")


def run(path: Path, *statements: str) -> list[tuple[object, ...]]:
    """Run SQL statements on a file; the rows of the last one."""
    database = sqlite3.connect(path, isolation_level=None)
    try:
        for statement in statements:
            rows = database.execute(statement).fetchall()
        return rows
    finally:
        database.close()


def test_it_only_grows_and_is_private(result: Path) -> None:
    review = Review(result)
    review.decide(SPLIT, 0, "Ada")
    review.decide(UNDO, 1)
    review.decide(d.Redo(kind="redo"), 2)
    path = result / "decisions.sqlite"
    rows = run(path, "SELECT number, count, author FROM decisions")
    assert rows == [(1, review.data.digest, "Ada"), (2, review.data.digest, ""), (3, review.data.digest, "")]
    assert run(path, "PRAGMA journal_mode") == [("wal",)]
    assert run(path, "PRAGMA application_id", "PRAGMA user_version") == [(1,)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (decided, *_) = review.log.read()
    assert decided.time.endswith("Z")
    assert decided.effect.text == "split polyp 1"


def test_many_begin_it_at_once(tmp_path: Path) -> None:
    """Each number is given once, and whoever was too late knows it."""
    together, stale = threading.Barrier(8), list[str]()

    def write(person: int) -> None:
        log = DecisionLog(tmp_path, "sha256:a")
        together.wait()
        for number in range(3):
            while True:
                version = log.version
                try:
                    log.append(d.Effect(kind="hint", text=f"{person} {number}", hint=(1, None)), version)
                    break
                except Stale as problem:
                    stale.append(str(problem))

    people = [threading.Thread(target=write, args=(person,)) for person in range(8)]
    for each in people:
        each.start()
    for each in people:
        each.join(60)
    written = DecisionLog(tmp_path, "sha256:a").read()
    assert [one.number for one in written] == list(range(1, 25))
    assert len({one.effect.text for one in written}) == 24
    assert set(stale) <= {"another decision was taken meanwhile, so this one was not; look at it again"}


def test_a_beginning_that_was_cut_short(result: Path) -> None:
    """A process that is killed while it makes the file leaves it empty, or without a table."""
    path = result / "decisions.sqlite"
    path.touch()
    assert Review(result).moment.version == 0
    path.unlink()
    run(path, "PRAGMA journal_mode = WAL")
    assert path.stat().st_size > 0
    assert Review(result).moment.version == 0
    assert Review(result).decide(SPLIT, 0).version == 1


def test_decisions_about_another_count_are_kept_and_not_read(result: Path) -> None:
    other = DecisionLog(result, "sha256:other")
    other.append(d.Effect(kind="split", text="split polyp 9", moves={"t70": 9}), 0)
    review = Review(result)
    assert (review.moment.version, review.log.earlier, review.log.read()) == (0, 1, [])
    assert review.decide(SPLIT, 0).version == 2
    assert (other.version, review.log.version, other.earlier) == (1, 2, 1)


def overwrite(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:90] + b"\xff" * (path.stat().st_size - 90))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda path: path.write_text("no database at all, but some text" * 9),
            "cannot be read or written: file is not",
        ),
        (overwrite, "cannot be read or written: "),
        (lambda path: run(path, "PRAGMA user_version = 2"), "is no log of decisions that this version can read"),
        (lambda path: run(path, "PRAGMA application_id = 7"), "is no log of decisions that this version can read"),
        (lambda path: run(path, "DROP TABLE decisions"), "cannot be read or written: no such table: decisions"),
        (lambda path: run(path, "UPDATE decisions SET effect = '{'"), "decision 1 is not valid JSON"),
        (lambda path: run(path, "UPDATE decisions SET effect = x'ff'"), "decision 1"),
        (
            lambda path: run(path, """UPDATE decisions SET effect = '{"kind": "x", "text": "", "more": 1}'"""),
            "decision 1: more is unknown",
        ),
        (
            lambda path: run(path, """UPDATE decisions SET effect = '{"kind": "x", "text": "", "moves": {"t9": 1}}'"""),
            "decision 1 moves t9, which the count does not have",
        ),
    ],
)
def test_a_damaged_or_foreign_log(result: Path, damage: Callable[[Path], object], message: str) -> None:
    review = Review(result)
    review.decide(SPLIT, 0)
    path = result / "decisions.sqlite"
    damage(path)
    acts: list[Callable[[], object]] = [lambda: Review(result).moment, lambda: Review(result).decide(UNDO, 1)]
    for act in acts:
        with pytest.raises((FileError, DataError)) as problem:
            act()
        assert message in str(problem.value)
        assert "\n" not in str(problem.value)


def test_a_file_of_another_program_is_left_alone(result: Path) -> None:
    path = result / "decisions.sqlite"
    run(path, "CREATE TABLE notes (text TEXT)", "INSERT INTO notes VALUES ('mine')")
    with pytest.raises(FileError, match="is no log of decisions"):
        Review(result).decide(SPLIT, 0)
    assert run(path, "SELECT * FROM notes") == [("mine",)]


def decide_for_ever(review: Review) -> None:
    while True:
        review.decide(UNDO, review.moment.version)
        review.decide(d.Redo(kind="redo"), review.moment.version)


def test_a_disk_that_is_full_or_read_only(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        review = Review(copy_of_result(disk / "result"))
        review.decide(SPLIT, 0)
        fill(disk)
        with pytest.raises(FileError, match=r"decisions\.sqlite cannot be read or written: "):
            decide_for_ever(review)  # the log has some room of its own
        (disk / "filler").unlink()
        version = review.moment.version
        assert Review(review.folder).decide(UNDO, version).state.items_of(1) == ["t0", "t2"]
        make_read_only(disk)
        with pytest.raises(FileError) as problem:
            review.decide(SPLIT, review.moment.version)
        assert "\n" not in str(problem.value)
