"""Pseudonyms, and the file that keeps them."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polypcount.errors import FileError
from polypcount.report.pseudonyms import Pseudonyms


def test_a_recording_keeps_its_pseudonym(tmp_path: Path) -> None:
    path = tmp_path / "key.csv"
    keys = Pseudonyms.load(path)
    one, other = keys.of("/data/Müller, Anna.mp4"), keys.of("/data/b.mp4")
    assert one != other
    assert keys.of("/data/Müller, Anna.mp4") == one
    keys.save(path)
    again = Pseudonyms.load(path)
    assert (again.of("/data/Müller, Anna.mp4"), again.of("/data/b.mp4")) == (one, other)
    assert again.of("/data/c.mp4") not in (one, other)


@given(
    st.lists(
        st.sampled_from(["", "'", "=", "+", "-", "@", "\t", "\r"]).flatmap(
            lambda begin: st.text(st.characters(exclude_categories=["Cs"]), max_size=5).map(lambda end: begin + end)
        ),
        unique=True,
    )
)
def test_any_name_is_kept(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "key.csv"
        keys = Pseudonyms()
        chosen = {name: keys.of(name) for name in names}
        keys.save(path)
        again = Pseudonyms.load(path)
        assert {name: again.of(name) for name in names} == chosen


def test_only_the_owner_can_read_the_key(tmp_path: Path) -> None:
    path = tmp_path / "key.csv"
    for _ in range(2):  # new, and replaced
        Pseudonyms({"a": "b"}).save(path)
        assert path.stat().st_mode & 0o777 == 0o600


def test_they_tell_nothing_and_differ_each_time() -> None:
    assert Pseudonyms().of("a") != Pseudonyms().of("a")


@pytest.mark.parametrize("content", ["", "a,b\n", "pseudonym,recording\nx\n", "pseudonym,recording\n../x,y\n", "\xff"])
def test_another_file_is_refused_and_stays(tmp_path: Path, content: str) -> None:
    path = tmp_path / "key.csv"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(FileError, match=r"key\.csv"):
        Pseudonyms.load(path)
    assert path.read_bytes() == content.encode("latin-1")


def test_where_it_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="cannot be written"):
        Pseudonyms({"a": "b"}).save(tmp_path / "file" / "key.csv")
