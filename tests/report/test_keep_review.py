"""A new count of a recording keeps what people decided about the old one."""

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import polypcount.report.write
from polypcount.errors import FileError
from polypcount.report import remove_report, write_report
from polypcount.report.keep_review import is_of_review
from polypcount.review import Review
from polypcount.review import decisions as d
from polypcount.review.export import export
from polypcount.review.log import Stale
from tests.review.results import copy_of_result, report

SPLIT = d.Split(kind="split", polyp=1, frame=80)
MERGE = d.Merge(kind="merge", polyp=3, other=4)


@pytest.fixture
def result(tmp_path: Path) -> Path:
    return copy_of_result(tmp_path / "result")


def test_the_same_count_again_keeps_decisions_in_force(result: Path) -> None:
    old = Review(result)
    old.decide(SPLIT, 0, "Ada")
    export(old, old.moment, ("coco",), "Ada")
    files = {path.relative_to(result) for path in (result / "corrected").rglob("*")}
    write_report(report(), result, force=True)
    assert old.is_outdated()
    new = Review(result)
    assert (new.data.digest, new.log.earlier, new.moment.version) == (old.data.digest, 0, 1)
    assert new.moment.state.members() == old.moment.state.members()
    assert [decided.author for decided in new.log.read()] == ["Ada"]
    assert {path.relative_to(result) for path in (result / "corrected").rglob("*")} == files
    assert new.decide(MERGE, 1).version == 2


def test_decisions_about_an_older_count_are_kept_apart(result: Path) -> None:
    Review(result).decide(SPLIT, 0)
    basis = report().basis
    assert basis is not None
    changed = [replace(one, vectors=one.vectors + np.float32(0.01)) for one in basis.evidence]
    write_report(replace(report(), basis=replace(basis, evidence=changed)), result, force=True)
    new = Review(result)
    assert (new.log.earlier, new.moment.version, new.moment.count) == (1, 0, 4)
    assert new.decide(MERGE, 0).count == 3
    write_report(report(), result, force=True)
    again = Review(result)
    assert (again.log.earlier, again.moment.count) == (1, 5)


@pytest.mark.parametrize("decided", [True, False])
def test_a_decision_during_a_new_count_is_refused_and_not_lost(result: Path, decided: bool) -> None:
    """The page that decides has read the old count; it waits until the new one is there, and is told."""
    review = Review(result)
    if decided:
        review.decide(SPLIT, 0)
    problems: list[Exception] = []

    def decide() -> None:
        try:
            review.decide(MERGE, int(decided))
        except Stale as problem:
            problems.append(problem)

    person = threading.Thread(target=decide)
    files = polypcount.report.write._write_files

    def write_slowly(*arguments: object, **options: object) -> None:
        person.start()  # while the folder is locked
        files(*arguments, **options)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(polypcount.report.write, "_write_files", write_slowly)
        write_report(report(), result, force=True)
    person.join(60)
    assert [str(problem) for problem in problems] == [
        "the recording was counted again meanwhile, so this decision was not taken; look again"
    ]
    new = Review(result)
    assert new.moment.version == int(decided)
    assert new.decide(MERGE, int(decided)).count == 4 if decided else 3


def test_a_count_that_cannot_be_written_changes_nothing(result: Path) -> None:
    review = Review(result)
    review.decide(SPLIT, 0)

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(polypcount.report.write, "_write_files", fail)
        with pytest.raises(FileError, match="No space left on device"):
            write_report(report(), result, force=True)
    assert not review.is_outdated()
    assert review.decide(MERGE, 1).version == 2
    (result / "decisions.sqlite").write_text("something else")
    with pytest.raises(FileError, match=r"decisions\.sqlite cannot be read: .*; the report is not replaced"):
        write_report(report(), result, force=True)
    assert (result / "decisions.sqlite").read_text() == "something else"
    assert not review.is_outdated()


def test_a_report_with_decisions_is_not_removed(result: Path) -> None:
    Review(result).decide(SPLIT, 0)
    with pytest.raises(FileError, match="holds decisions of a review, which would be deleted; move it"):
        remove_report(result)
    assert Review(result).moment.version == 1
    (result / "decisions.sqlite").unlink()
    remove_report(result)
    assert not result.exists()


def test_a_name_that_is_no_text_is_not_kept(tmp_path: Path) -> None:
    basis = report().basis
    assert basis is not None
    write_report(replace(report(), basis=replace(basis, source="/videos/caf\udce9.mp4")), tmp_path / "result")
    assert not (tmp_path / "result" / "review" / "recording.json").exists()
    assert Review(tmp_path / "result").moment.count == 4


def test_what_is_of_a_review() -> None:
    ours = ("decisions.sqlite", "decisions.sqlite-wal", "decisions.sqlite-shm", "corrected/report/count.json")
    assert [is_of_review(name) for name in ours] == [True] * 4
    assert not any(
        is_of_review(name) for name in ("corrected", "decisions.sqlite.bak", "notes.txt", "review/notes.txt")
    )
