"""Several processes, and what is kept of an import for the next."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from polypcount.errors import FileError
from polypcount.importers import read_corpus
from polypcount.importers.datasets.real_colon_frames import FrameReader
from polypcount.importers.reading import first_file, list_files

from .miniatures import image, ldpolypvideo, polypsset, real_colon, real_colon_xml, sun, write
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


def with_images(root: Path) -> Path:
    for number in range(12):
        image(root / "001-001_frames" / f"001-001_{number}.jpg")
    return real_colon(root, {"001-001": 2})


def dataset(name: str, root: Path) -> Path:
    return {"real-colon": with_images, "ldpolypvideo": ldpolypvideo, "sun": sun, "polypsset": polypsset}[name](root)


def pictures(root: Path) -> list[Path]:
    return sorted(root.rglob("*.jpg"))


@pytest.mark.parametrize("name", ["real-colon", "ldpolypvideo", "sun", "polypsset"])
def test_a_second_start_looks_at_no_image_but_the_first_of_a_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYPCOUNT_CACHE", str(tmp_path / "cache"))
    root = dataset(name, tmp_path / "data")
    for folder in {picture.parent for picture in pictures(root)}:
        image(folder / ".hidden.jpg")
    first = read_corpus(name, root, processes=1)
    looked_at: set[str] = set()
    original = os.stat

    def noted(path: Any, *args: Any, **options: Any) -> os.stat_result:
        looked_at.add(os.path.basename(path) if isinstance(path, str | os.PathLike) else "")
        return original(path, *args, **options)

    monkeypatch.setattr(os, "stat", noted)
    assert read_corpus(name, root, processes=1).content_hash == first.content_hash
    monkeypatch.undo()
    firsts = {file.name for folder in root.rglob("*") if folder.is_dir() and (file := first_file(folder, [".jpg"]))}
    images = {looked for looked in looked_at if looked.endswith(".jpg")}
    assert looked_at, "calls are counted"
    assert images <= (firsts if name in ("ldpolypvideo", "sun") else set())


@pytest.mark.parametrize(
    ("name", "text", "old", "new"),
    [
        ("real-colon", "001-001_annotations/001-001_2.xml", ">10.0<", ">11.0<"),
        ("ldpolypvideo", "TrainValid/Annotations/1/2.txt", "20 60", "21 60"),
        ("sun", "positive/annotation_txt/case1.txt", ",5,", ",6,"),
        ("polypsset", "val2019/Annotation/10/10.xml", ">12<", ">13<"),
    ],
)
def test_removed_and_added_images_and_edited_annotations_are_noticed(
    name: str, text: str, old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYPCOUNT_CACHE", str(tmp_path / "cache"))
    root = dataset(name, tmp_path / "data")

    def content() -> str:
        kept, fresh = (read_corpus(name, root, skip_bad=True, cache=cache) for cache in (True, False))
        assert (kept.content_hash, remarks(kept)) == (fresh.content_hash, remarks(fresh))
        return kept.content_hash

    whole = content()
    picture = next(file for file in pictures(root) if "train2019" not in file.parts)
    picture.rename(tmp_path / "aside.jpg")
    assert content() != whole, "an image is gone"
    (tmp_path / "aside.jpg").rename(picture)
    assert content() == whole, "it is back"
    edited = (root / text).read_text().replace(old, new)
    (root / text).write_text(edited)
    assert content() != whole, "an edit in place"


@pytest.mark.parametrize("name", ["ldpolypvideo", "sun"])
def test_a_first_image_of_another_size_is_noticed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYPCOUNT_CACHE", str(tmp_path / "cache"))
    root = dataset(name, tmp_path / "data")
    before = read_corpus(name, root)
    folder = Path(before.videos[0].source or "")
    first = first_file(folder, [".jpg"])
    assert first == list_files(folder, [".jpg"])[0]
    image(first, (600, 500))
    after = read_corpus(name, root).videos[0]
    assert (after.width, after.height) == (600, 500) != (before.videos[0].width, before.videos[0].height)
