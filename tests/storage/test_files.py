"""Files and folders that are there whole or not at all, and JSON from any source."""

from pathlib import Path

import pytest

from polypcount.errors import FileError
from polypcount.storage import read_json, whole_file, whole_folder, write_json, write_text


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_there_once_the_block_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a.txt"
    with whole_file(path) as unfinished:
        unfinished.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    assert names(path.parent) == ["a.txt"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write() -> None:
        with whole_file(path) as unfinished:
            unfinished.write_text("half")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127])
def test_a_name_as_long_as_the_system_allows(tmp_path: Path, name: str) -> None:
    write_text(tmp_path / name, "text")
    assert names(tmp_path) == [name]


def test_half_characters_are_escaped(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "case\udcff\n")
    assert (tmp_path / "a.txt").read_bytes() == b"case\\udcff\n"


def test_json_is_read_back(tmp_path: Path) -> None:
    values = {"count": 3, "ids": ["a", "é"], "fps": None, "share": 0.1}
    write_json(tmp_path / "a.json", values)
    assert read_json(tmp_path / "a.json") == values


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_no_number_is_written_that_json_does_not_have(tmp_path: Path, value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", [value])
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"{", "not valid JSON"),
        (b"[NaN]", "NaN"),
        (b"[-Infinity]", "Infinity"),
        (b"[" * 100_000, "not valid JSON"),
        (b"\xff\xfe\xfd", "not valid JSON"),
        (b" " * 101, "too large"),
    ],
    ids=["cut short", "NaN", "infinity", "deep", "no text", "large"],
)
def test_json_that_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(FileError) as caught:
        read_json(path, largest=100 if content.startswith(b" ") else 1 << 20)
    assert str(caught.value).startswith(str(path))
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("name", "expected"), [("missing", "does not exist"), (".", "is not a file"), ("x" * 300, "does not exist")]
)
def test_what_is_no_json_file(tmp_path: Path, name: str, expected: str) -> None:
    with pytest.raises(FileError, match=expected):
        read_json(tmp_path / name)


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "out"
    for content in ("first", "second"):
        with whole_folder(target) as unfinished:
            (unfinished / content).write_text(content)
        assert names(target) == [content]
    assert names(tmp_path) == ["out"]


def test_the_target_of_a_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with whole_folder(tmp_path / "link") as unfinished:
        (unfinished / "a").touch()
    assert names(tmp_path) == ["link", "real"]
    assert names(tmp_path / "real") == ["a"]


@pytest.mark.parametrize("failing", ["the block", "the first rename", "the second rename"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failed_replacement_leaves_the_old_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, error: type[BaseException]
) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "old").touch()
    rename, renames = Path.rename, []

    def failing_rename(path: Path, to: Path) -> Path:
        renames.append(path)
        if len(renames) == {"the first rename": 1, "the second rename": 2}.get(failing):
            raise error
        return rename(path, to)

    monkeypatch.setattr(Path, "rename", failing_rename)

    def write() -> None:
        with whole_folder(target) as unfinished:
            (unfinished / "new").touch()
            if failing == "the block":
                raise error

    with pytest.raises(error):
        write()
    assert names(target) == ["old"]
    assert names(tmp_path) == ["out"]
