"""Building a crop store: in parts, by several processes. It continues where it stopped, and never cuts a crop twice.

    folder/crops.arrow            the store, replaced as a whole once every part is there
    folder/parts/<key>.arrow      finished parts, until then

A part that the store on disk already holds is taken from there. A part that an interrupted build left is taken from its
file. Parts are found by a key of their content, so after a change only the changed parts are cut again.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus import Corpus, FrameFiles
from polypcount.errors import DataError, FileError, first_line
from polypcount.machine import available_cores
from polypcount.progress import Progress, no_progress
from polypcount.storage import content_key, remove_unused, whole_file
from polypcount.video.crop import CropRule
from polypcount.video.store import FILE_NAME, METADATA, SCHEMA, CropStore, StoreDescription
from polypcount.video.store_part import CropPart, cut_part, read_part
from polypcount.workers import in_processes

_PART_CROPS = 1024  # some seconds of work
_FEW_CROPS = 512  # not worth starting processes for
_UNUSED_DAYS = 7


def build_store(
    corpus: Corpus,
    rows: ArrayLike,
    rule: CropRule,
    folder: str | os.PathLike[str],
    progress: Progress = no_progress,
    *,
    processes: int | None = None,
) -> CropStore:
    """Cut the crops of these box rows and open the store; a store that is already there is only opened.

    Args:
        corpus: Its videos need pixels.
        rows: Box rows in `corpus.boxes`, in any order.
        rule: How the crops are cut.
        folder: Folder of the store. If anything fails, the store that was there stays.
        progress: Counts crops.
        processes: None for one per core.
    """
    store = Path(folder) / FILE_NAME
    parts = parts_of(corpus, rows, rule)
    lengths = [(part.key, len(part.rows)) for part in parts]
    key = content_key("crop store", 2, rule.fingerprint, lengths, *(part.rows for part in parts))
    total = sum(length for _, length in lengths)
    batches: dict[str, pa.Array] = {}
    with contextlib.suppress(FileError):
        earlier = CropStore.open(store)
        if earlier.key == key:
            progress(total, total)
            return earlier
        batches = earlier.batches()
    files = {part.key: Path(folder) / "parts" / f"{part.key}.arrow" for part in parts}
    missing = [part for part in parts if part.key not in batches and read_part(files[part.key], part) is None]
    done = total - sum(len(part.rows) for part in missing)
    progress(done, total)
    for count in _cut(missing, files, available_cores() if processes is None else max(1, processes)):
        done += count
        progress(done, total)
    description = StoreDescription(rule=rule, key=key, parts=tuple(lengths))
    schema = SCHEMA.with_metadata({METADATA: description.model_dump_json()})
    try:
        with whole_file(store) as unfinished, pa.ipc.new_file(str(unfinished), schema) as writer:
            for part in parts:
                crops = batches[part.key] if part.key in batches else read_part(files[part.key], part)
                if crops is None:
                    raise FileNotFoundError(f"{files[part.key]} has gone while the store was built; build again")
                writer.write_batch(pa.record_batch([pa.array(part.rows), crops], schema=schema))
    except OSError as problem:
        with contextlib.suppress(FileError):  # another process may have finished the same store, and removed its parts
            other = CropStore.open(store)
            if other.key == key:
                return other
        raise FileError(f"{folder}: the crop store cannot be written: {first_line(problem)}") from None
    with contextlib.suppress(OSError):
        for file in files.values():
            file.unlink(missing_ok=True)
        remove_unused(store.with_name("parts"), _UNUSED_DAYS)
        store.with_name("parts").rmdir()
    return CropStore.open(store)


def parts_of(corpus: Corpus, rows: ArrayLike, rule: CropRule) -> list[CropPart]:
    """The boxes of these rows in parts of one video each, in the order of rows."""
    rows = _checked_rows(corpus, rows)
    parts = []
    for video in np.unique(corpus.boxes.video[rows]).tolist():
        own = rows[corpus.boxes.video[rows] == video]
        listed = corpus.files.of_video(video)
        for start in range(0, len(own), _PART_CROPS):
            chosen = own[start : start + _PART_CROPS]
            frame = corpus.boxes.frame[chosen]
            needed = np.isin(corpus.files.frame[listed], frame)
            needed[:1] |= not needed.any()  # without a file it would seem to be a video with unlisted images
            names = corpus.files.name[listed][needed]
            files = FrameFiles(np.zeros(len(names), np.int32), corpus.files.frame[listed][needed], names)
            parts.append(CropPart(corpus.videos[video], files, frame, corpus.boxes.xyxy[chosen], chosen, rule))
    return parts


def _checked_rows(corpus: Corpus, rows: ArrayLike) -> NDArray[np.int64]:
    asked = np.unique(np.asarray(rows))
    if asked.size and asked.dtype.kind not in "iu":
        raise DataError(f"crops: rows must be whole numbers, found {asked.dtype}")
    outside = asked[(asked < 0) | (asked >= len(corpus.boxes))]
    if outside.size:
        raise DataError(f"crops: there is no box row {outside[0]}; the corpus has {len(corpus.boxes)} boxes")
    return asked.astype(np.int64)


def _cut(parts: list[CropPart], files: dict[str, Path], processes: int) -> Iterator[int]:
    """Cut all parts; yields the number of crops of each as it is done."""
    alone = len(parts) < 2 or sum(len(part.rows) for part in parts) < _FEW_CROPS
    tasks = [(part, files[part.key], processes if alone else 1) for part in parts]
    for _, count in in_processes(cut_part, tasks, 1 if alone else processes):
        yield count
