"""Caches: keys of content, arrays that are whole or missing, and what is removed."""

import os
from pathlib import Path

import numpy as np
import pytest

from polypcount.errors import FileError
from polypcount.storage import cache_folder, content_key, csv_text, open_array, remove_unused, write_array


def test_equal_content_has_an_equal_key() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    parts = ("crops, 1", {"b": [1, 2.5, None], "a": "é"}, array, b"\x00\x01")
    again = ("crops, 1", {"a": "é", "b": [1, 2.5, None]}, np.asfortranarray(array), bytes([0, 1]))
    assert content_key(*parts) == content_key(*again)
    assert len(content_key()) == 64


def test_any_difference_gives_another_key() -> None:
    array = np.arange(6, dtype=np.int32)
    different = [
        (),
        (array,),
        (array[::-1],),
        (array.reshape(2, 3),),
        (array.astype(np.float32),),
        (array.astype(">i4"),),
        (array.tobytes(),),
        (array.tolist(),),
        (array[:3], array[3:]),
        ([0, 1, 2], [3, 4, 5]),
        (b"ab",),
        (b"a", b"b"),
        (b"b", b"a"),
        ("ab",),
        ("a", "b"),
        ("1",),
        (1,),
        (1.0,),
        (True,),
        (None,),
    ]
    assert len({content_key(*parts) for parts in different}) == len(different)


def test_no_key_of_what_has_no_fixed_bytes() -> None:
    for part in (np.array(["a"], dtype=object), object()):
        with pytest.raises(TypeError):
            content_key(part)


@pytest.mark.parametrize("rows", [5, 0])
def test_an_array_is_written_in_pieces_and_mapped(tmp_path: Path, rows: int) -> None:
    values = np.random.default_rng(1).normal(size=(rows, 3)).astype(np.float32)
    write_array(tmp_path / "a.npy", (rows, 3), (values[k : k + 2] for k in range(0, rows, 2)))
    mapped = open_array(tmp_path / "a.npy", (rows, 3))
    assert mapped is not None
    np.testing.assert_array_equal(mapped, values)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), values)


def test_an_array_that_is_not_as_expected_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    write_array(path, (2, 3), [np.ones((2, 3), np.float32)])
    assert open_array(tmp_path / "b.npy", (2, 3)) is None
    assert open_array(path, (3, 2)) is None
    path.write_bytes(path.read_bytes()[:-1])
    assert open_array(path, (2, 3)) is None
    np.save(path, np.ones((2, 3)))
    assert open_array(path, (2, 3)) is None


def test_an_array_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match=r"a\.npy"):
        write_array(tmp_path / "file" / "a.npy", (0, 3), [])


def test_the_folder_of_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYPCOUNT_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("POLYPCOUNT_CACHE")
    assert cache_folder().name == "polypcount"


def test_old_entries_of_a_cache_are_removed(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / f"{name}.npy").touch()
        (tmp_path / name).mkdir()
        (tmp_path / name / "part").touch()
    for name in ("old", "old.npy"):
        os.utime(tmp_path / name, (1, 1))
    remove_unused(tmp_path, days=1)
    remove_unused(tmp_path / "missing", days=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "new.npy"]


def test_a_table_for_spreadsheets() -> None:
    rows: list[list[object]] = [
        ["=1+1", "+a", "-a", "@a", "\ta", "\na"],
        ["-1.5", "+3", -2, None, float("nan"), np.float32("nan")],
    ]
    assert csv_text(["id", 'a"b'], rows).split("\n", 1)[1] == "'=1+1,'+a,'-a,'@a,'\ta,\"'\na\"\n-1.5,+3,-2,,,\n"
