"""Several processes, and what is kept of an import for the next."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from polypcount.errors import FileError
from polypcount.importers import read_corpus
from polypcount.importers.datasets.real_colon_frames import FrameReader

from .miniatures import real_colon, real_colon_xml, write
from .reading import real_colon_corpus as imported
from .reading import remarks


def test_unchanged_trees_are_not_read_again_and_changed_ones_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYPCOUNT_CACHE", str(tmp_path / "cache"))
    root = real_colon(tmp_path / "data", {"001-001": 2, "001-009": 1})
    first = read_corpus("real-colon", root)
    reads: list[str] = []
    original = FrameReader.read_folder

    def noted(self: FrameReader) -> None:
        reads.append(self._prefix)
        original(self)

    monkeypatch.setattr(FrameReader, "read_folder", noted)
    again = read_corpus("real-colon", root)
    assert again.content_hash == first.content_hash
    assert remarks(again) == remarks(first)
    assert reads == []
    changed = root / "001-009_annotations" / "001-009_2.xml"
    write(changed, real_colon_xml("001-009", 2))
    assert len(read_corpus("real-colon", root).boxes) == len(first.boxes) - 1
    assert reads == ["001-009_"]
    write(changed, real_colon_xml("001-009", 2).replace("2.jpg", "9.jpg"))
    read_corpus("real-colon", root)
    assert reads == ["001-009_"] * 2, "an edit that keeps the size is noticed"
    kept = next((tmp_path / "cache" / "imports").iterdir())
    (kept / "corpus.json").write_text(json.dumps({}))
    assert len(read_corpus("real-colon", root).boxes) == len(first.boxes) - 1, "a damaged cache is not trusted"
    entries = set((tmp_path / "cache" / "imports").iterdir())
    old = min(entries)
    os.utime(old, (0, 0))
    write(changed, real_colon_xml("001-009", 2))
    read_corpus("real-colon", root.with_name("data"), split="study")
    left = set((tmp_path / "cache" / "imports").iterdir())
    assert old not in left or old.stat().st_mtime > 0, "what nobody has used for a month goes"
    assert len(left & entries) >= len(entries) - 1, "and nothing else"


def test_what_was_left_out_before_is_not_taken_for_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYPCOUNT_CACHE", str(tmp_path / "cache"))
    root = real_colon(tmp_path / "data", {"001-001": 2})
    write(root / "001-001_annotations" / "001-001_2.xml", "")
    read_corpus("real-colon", root, skip_bad=True)
    with pytest.raises(FileError, match="no element found"):
        read_corpus("real-colon", root)


def test_a_cache_that_cannot_be_written_is_only_a_pity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYPCOUNT_CACHE", "/proc/nowhere")
    assert len(read_corpus("real-colon", real_colon(tmp_path, {"001-001": 2})).boxes) == 4


def test_an_interrupted_import_continues_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYPCOUNT_CACHE", str(tmp_path / "cache"))
    root = real_colon(tmp_path / "data", {f"001-00{n}": 2 for n in range(1, 5)})
    expected = imported(root)

    def stop_halfway(done: int, total: int) -> None:
        if done >= total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_corpus("real-colon", root, progress=stop_halfway)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache" / "imports").glob("*/corpus.json")}
    assert len(before) == 2
    assert read_corpus("real-colon", root).content_hash == expected.content_hash
    assert {path: path.stat().st_mtime_ns for path in before} == before, "what was read before is not read again"


def test_several_processes_give_the_same_and_may_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYPCOUNT_CACHE", str(tmp_path / "cache"))
    root = real_colon(tmp_path / "data", {f"001-00{n}": 2 for n in range(1, 4)})
    expected = imported(root, processes=1).content_hash
    monkeypatch.setattr("polypcount.importers.reading.work._FEW_FILES", 0)
    assert imported(root, processes=2).content_hash == expected
    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(read_corpus, "real-colon", root, processes=1) for _ in range(3)]
        assert [future.result().content_hash for future in running] == [expected] * 3
