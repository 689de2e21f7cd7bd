"""REAL-Colon straight from its archives, whole, damaged and hostile."""

import gzip
import os
import tarfile
from pathlib import Path

import pytest

from polypcount.errors import FileError
from polypcount.importers.boxes.voc import LARGEST_BYTES

from .miniatures import archived, hostile_archive, real_colon, real_colon_xml, write
from .reading import real_colon_corpus as imported


def test_archives_give_the_same_as_folders(tmp_path: Path) -> None:
    root = real_colon(tmp_path, {"001-001": 2, "002-009": 1})
    expected = imported(root).content_hash
    for folder in list(root.glob("*_annotations")):
        archived(folder)
    assert imported(root).content_hash == expected
    assert sorted(path.name for path in root.iterdir())[0] == "001-001_annotations.tar.gz", "nothing is unpacked"


def test_hostile_archives_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "001-001_annotations.tar.gz"
    for name, kind, message in (
        ("../../001-001_0.xml", tarfile.REGTYPE, "leads outside of the archive"),
        ("/001-001_0.xml", tarfile.REGTYPE, "leads outside of the archive"),
        ("a/001-001_0.xml", tarfile.SYMTYPE, "is a link or a device"),
        ("a/001-001_0.xml", tarfile.LNKTYPE, "is a link or a device"),
        ("a/001-001_0.xml", tarfile.FIFOTYPE, "is a link or a device"),
    ):
        hostile_archive(path, name, kind)
        with pytest.raises(FileError, match=message):
            imported(tmp_path)
    hostile_archive(path, "a/001-001_0.xml", content=b" " * (LARGEST_BYTES + 1))
    with pytest.raises(FileError, match="is larger than"):
        imported(tmp_path)
    path.write_bytes(b"\x1f\x8b nothing")
    with pytest.raises(FileError, match=r"is not a readable tar\.gz archive"):
        imported(tmp_path)
    with pytest.raises(FileError, match=r"nothing of .* can be imported"):
        imported(tmp_path, skip_bad=True)


def test_a_cut_off_or_damaged_archive_is_refused(tmp_path: Path) -> None:
    root = real_colon(tmp_path, {"001-001": 3}, frames=60)
    path = archived(root / "001-001_annotations")
    whole = path.read_bytes()
    for length in range(10, len(whole) - 1, len(whole) // 8):
        path.write_bytes(whole[:length])
        with pytest.raises(FileError, match="cut short"):
            imported(root)
    for place in range(60, len(whole), len(whole) // 8):  # after the header, which no checksum covers
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(FileError, match=str(path)):
            imported(root)


def test_a_header_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    size = 40_000_000
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, size
    with gzip.open(tmp_path / "001-001_annotations.tar.gz", "wb", compresslevel=1) as file:
        file.write(header.tobuf(tarfile.GNU_FORMAT) + b"a" * size)
    with pytest.raises(FileError, match="an entry's header is larger than"):
        imported(tmp_path)


def test_archives_do_not_grow_without_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = real_colon(tmp_path, {"001-001": 1})
    archived(root / "001-001_annotations")
    for limit in ("_MOST_MEMBERS", "_MOST_BYTES"):
        with monkeypatch.context() as patch:
            patch.setattr(f"polypcount.importers.reading.archive.{limit}", 5)
            with pytest.raises(FileError, match="has more than"):
                imported(root)


def test_hidden_files_pipes_and_half_extracted_folders(tmp_path: Path) -> None:
    root = real_colon(tmp_path, {"001-001": 2})
    expected = imported(root).content_hash
    folder = root / "001-001_annotations"
    write(folder / "._001-001_3.xml", "junk")
    assert imported(root).content_hash == expected
    archived(folder)
    assert imported(root).content_hash == expected, "also inside an archive"
    folder.mkdir()
    assert imported(root).content_hash == expected, "an empty folder does not hide the archive"
    os.mkfifo(folder / "001-001_4.xml")
    with pytest.raises(FileError, match=r"001-001_4\.xml:1: not well-formed XML"):
        imported(root)
    write(root / "001-001_annotation" / "001-001_0.xml", real_colon_xml("001-001", 0))
    with pytest.raises(FileError, match="are for the same video; keep one"):
        imported(root)
