"""Versioned folders: replaced in one step, whatever happens on the way, and read while they are replaced."""

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pytest

from polypcount.errors import FileError
from polypcount.storage import Manifest, VersionedFolder, folders
from polypcount.storage.leftovers import _held


class Notes(Manifest):
    FORMAT: ClassVar[str] = "polypcount-notes"
    VERSION: ClassVar[int] = 2
    KIND: ClassVar[str] = "the description of notes"

    title: str
    tables: str


NOTES = VersionedFolder("notes", Notes, "notes.json", "tables")


def save(folder: Path, title: str) -> None:
    def fill(part: Path) -> None:
        (part / "text").write_text(title)

    NOTES.write(folder, fill, {"title": title})


def load(folder: Path) -> tuple[str, str]:
    return NOTES.read(folder, lambda described, part: (described.title, (part / "text").read_text()))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_replaced_folder_holds_the_new_content_only(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    for title in ("first", "second"):
        save(folder, title)
        assert load(folder) == (title, title)
    described = json.loads((folder / "notes.json").read_text())
    assert described["format"] == "polypcount-notes"
    assert described["format_version"] == 2
    assert names(folder) == ["notes.json", described["tables"]]
    assert names(folder / described["tables"]) == ["text"]


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "tables-of-mine").mkdir()
    (tmp_path / "case.mp4").touch()
    save(tmp_path, "first")
    save(tmp_path, "second")
    assert {"tables-of-mine", "case.mp4"} < set(names(tmp_path))


STEPS = ("mkdir", "write_text", "flush", "rename", "replace", "flush of the folder")


def break_at(step: str, monkeypatch: pytest.MonkeyPatch, folder: Path, error: BaseException) -> None:
    """Make one step of saving fail, before it is done; the flush of the folder comes after the change."""

    def patched(owner: Any, name: str, breaks: Any) -> None:
        original = getattr(owner, name)

        def call(path: Path, *arguments: Any, **named: Any) -> Any:
            if breaks(path):
                raise error
            return original(path, *arguments, **named)

        monkeypatch.setattr(owner, name, call)

    if step == "flush":
        patched(folders, "flush", lambda path: path.name == "text")
    elif step == "flush of the folder":
        patched(folders, "flush", lambda path: path == folder)
    elif step == "replace":
        patched(Path, "replace", lambda path: path.name == "notes.json")
    else:
        patched(Path, step, lambda path: ".tables-" in str(path))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["error", "interrupted"])
@pytest.mark.parametrize("before", [True, False], ids=["replaced", "new"])
def test_a_failed_save_leaves_the_old_or_the_new_content_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException, before: bool
) -> None:
    if before:
        save(tmp_path, "old")
    with monkeypatch.context() as patch:
        break_at(step, patch, tmp_path, error)
        with pytest.raises(FileError if isinstance(error, OSError) else KeyboardInterrupt) as caught:
            save(tmp_path, "new")
    if isinstance(error, OSError):
        assert str(caught.value) == f"{tmp_path}: the notes could not be saved: disk full"
    after_change = step == "flush of the folder"
    assert NOTES.holds(tmp_path) == (before or after_change)
    if before or after_change:
        title = "new" if after_change else "old"
        assert load(tmp_path) == (title, title)
    # Once the manifest is replaced, the old subfolder is removed by the next save.
    assert len(names(tmp_path)) == 2 * before + after_change * (2 - before)


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_save_leaves_the_old_or_the_new_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A killed process removes nothing: what it leaves is removed by the next process that saves."""
    save(tmp_path, "old")
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", lambda *_, **__: None)
        break_at(step, patch, tmp_path, KeyboardInterrupt())
        with contextlib.suppress(KeyboardInterrupt):
            save(tmp_path, "new")
    assert load(tmp_path)[0] in ("old", "new")
    monkeypatch.setattr("polypcount.storage.leftovers._looked_at", set())  # as in a new process
    save(tmp_path, "newest")
    assert load(tmp_path) == ("newest", "newest")
    assert len(names(tmp_path)) == 2


def test_the_subfolder_of_a_save_at_work_is_left_alone(tmp_path: Path) -> None:
    left = (".tables-00000001.00000000.unfinished", "tables-00000002")
    at_work = (".tables-00000003.00000000.unfinished", "tables-00000004")
    for name in (*left, *at_work):
        (tmp_path / name).mkdir()
    with contextlib.ExitStack() as locks:
        for name in at_work:
            locks.enter_context(_held(tmp_path / name))
        save(tmp_path, "first")
    assert set(names(tmp_path)) - {NOTES.describe(tmp_path).tables} == {*at_work, "notes.json"}


def test_replaced_while_it_is_read(tmp_path: Path) -> None:
    """The subfolder goes between the manifest and the content; reading starts again with the new manifest."""
    save(tmp_path, "old")
    titles: list[str] = []

    def read(described: Notes, part: Path) -> str:
        titles.append(described.title)
        if len(titles) == 1:
            save(tmp_path, "new")
        if not part.exists():
            raise FileError(f"{part} is missing")
        return (part / "text").read_text()

    assert NOTES.read(tmp_path, read) == "new"
    assert titles == ["old", "new"]


def test_many_saving_and_reading_at_once(tmp_path: Path) -> None:
    """Whatever the order of their steps, no save fails, and a reader gets the content of one save."""

    def read(described: Notes, part: Path) -> tuple[str, str]:
        try:
            return described.title, (part / "text").read_text()
        except OSError as problem:
            raise FileError(str(problem)) from None

    def work(title: str) -> None:
        for _ in range(10):
            save(tmp_path, title)
            described, text = NOTES.read(tmp_path, read)
            assert described == text

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, "abcd"))
    assert load(tmp_path)[0] in "abcd"


@pytest.mark.parametrize("manifest", [True, False])
def test_damaged_content_is_an_error_once(tmp_path: Path, manifest: bool) -> None:
    save(tmp_path, "old")

    def read(*_: Any) -> None:
        if not manifest:
            (tmp_path / "notes.json").unlink()
        raise FileError("the text is damaged")

    with pytest.raises(FileError, match="the text is damaged"):
        NOTES.read(tmp_path, read)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"format": "other"}, "polypcount-notes"),
        ({"format_version": 3}, "upgrade polypcount"),
        ({"format_version": 0}, "format_version"),
        ({"format_version": True}, "format_version"),
        ({"title": 3}, "title must be text, found 3"),
        ({"colour": 3}, "colour is unknown"),
        ({"tables": "../elsewhere"}, "tables must be a name"),
        ({"tables": ".tables-00000001"}, "tables must be a name"),
    ],
)
def test_a_manifest_that_is_refused(tmp_path: Path, change: dict[str, Any], expected: str) -> None:
    save(tmp_path, "old")
    path = tmp_path / "notes.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(FileError) as caught:
        NOTES.describe(tmp_path)
    assert str(caught.value).startswith(str(path))
    assert expected in str(caught.value)
    assert not NOTES.holds(tmp_path)
    with pytest.raises(FileError, match="it is not replaced"):
        NOTES.refuse_unsuitable(tmp_path)


def test_what_holds_no_notes(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for path, expected in (
        (tmp_path / "missing", "does not exist"),
        (tmp_path / ("x" * 300), "does not exist"),
        (tmp_path, "notes.json"),
        (tmp_path / "file", "is not a folder"),
    ):
        with pytest.raises(FileError, match=expected):
            NOTES.describe(path)
    for path in (tmp_path / "file", tmp_path / "link"):
        with pytest.raises(FileError, match=path.name):
            NOTES.refuse_unsuitable(path)
    NOTES.refuse_unsuitable(tmp_path / "missing")
    NOTES.refuse_unsuitable(tmp_path)
