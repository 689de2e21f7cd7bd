"""Building a crop store: in pieces, in several processes, going on where it stopped, and never cutting twice.

    folder/crops.arrow            the store, replaced as a whole once every piece is there
    folder/parts/<key>.arrow      pieces that are cut, until then

A piece that the store at hand already holds is taken from there, and one that an interrupted build left behind, from
its file. What decides is a key of content, so another rule or changed boxes cut anew only what they change.
"""

import contextlib
import dataclasses
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus import Corpus, FrameFiles
from polypcount.errors import DataError, FileError, first_line
from polypcount.machine import available_cores
from polypcount.progress import Progress, no_progress
from polypcount.video.crop import CropRule
from polypcount.video.store import FILE_NAME, METADATA, SCHEMA, CropStore
from polypcount.video.store_part import Part, cut_part, described_store, part_key, read_part
from polypcount.whole import whole_file
from polypcount.workers import in_processes

_PART_CROPS = 1024  # of one video in one piece: some seconds of work
_FEW_CROPS = 512  # not worth starting processes for
_KEPT_SECONDS = 7 * 24 * 3600


def build_store(
    corpus: Corpus,
    rows: ArrayLike,
    rule: CropRule,
    folder: str | os.PathLike[str],
    progress: Progress = no_progress,
    *,
    processes: int | None = None,
) -> CropStore:
    """Cut the crops of these box rows, and open the store of them; only opened, where it is there already.

    rows: rows in `corpus.boxes`, in any order. progress: counts crops. processes: None for one per core.
    Whatever fails, the store that was there before stays.
    """
    place = Path(folder)
    parts = parts_of(corpus, rows, rule)
    digest = hashlib.sha256(rule.fingerprint.encode())
    for part in parts:
        digest.update(part.key.encode() + part.rows.astype("<i8").tobytes())
    key = digest.hexdigest()
    total = sum(len(part.rows) for part in parts)
    before = None
    with contextlib.suppress(FileError):
        before = CropStore.open(place / FILE_NAME)
    if before is not None and before.key == key:
        progress(total, total)
        return before
    missing = [part for part in parts if _kept(part, place, before) is None]
    left = sum(len(part.rows) for part in missing)
    progress(total - left, total)
    for count in _cut(missing, place, available_cores() if processes is None else max(1, processes)):
        left -= count
        progress(total - left, total)
    try:
        _join(parts, place, before, described_store(rule, key, parts))
    except OSError as problem:
        raise FileError(f"{place}: the crop store cannot be written: {first_line(problem)}") from None
    _tidy(place, parts)
    return CropStore.open(place / FILE_NAME)


def _checked_rows(corpus: Corpus, rows: ArrayLike) -> NDArray[np.int64]:
    given = np.asarray(rows)
    if given.size and given.dtype.kind not in "iu":
        raise DataError(f"crops: rows must be whole numbers, found {given.dtype}")
    wanted = np.unique(given).astype(np.int64)
    if len(wanted) and not 0 <= wanted[0] <= wanted[-1] < len(corpus.boxes):
        wrong = wanted[0] if wanted[0] < 0 else wanted[-1]
        raise DataError(f"crops: there is no box row {wrong}; the corpus has {len(corpus.boxes)} boxes")
    return wanted


def parts_of(corpus: Corpus, rows: ArrayLike, rule: CropRule) -> list[Part]:
    """The boxes of these rows in pieces of one video each, in the order of rows."""
    rows = _checked_rows(corpus, rows)
    parts = []
    for video in np.unique(corpus.boxes.video[rows]).tolist():
        own = rows[corpus.boxes.video[rows] == video]
        listed = corpus.files.of_video(video)
        for start in range(0, len(own), _PART_CROPS):
            chosen = own[start : start + _PART_CROPS]
            frame = corpus.boxes.frame[chosen]
            # An empty selection must not look like a video without a list, whose images count in natural order.
            needed = np.isin(corpus.files.frame[listed], frame)
            if listed.stop > listed.start and not needed.any():
                needed[0] = True
            names = corpus.files.name[listed][needed]
            files = FrameFiles(np.zeros(len(names), np.int32), corpus.files.frame[listed][needed], names)
            part = Part("", corpus.videos[video], files, frame, corpus.boxes.xyxy[chosen], chosen, rule)
            parts.append(dataclasses.replace(part, key=part_key(part)))
    return parts


def _cut(parts: list[Part], folder: Path, processes: int) -> Iterator[int]:
    """Cut all pieces; yields the number of crops of each as it is done."""
    alone = len(parts) < 2 or sum(len(part.rows) for part in parts) < _FEW_CROPS
    tasks = [(part, _path(folder, part), processes if alone else 1) for part in parts]
    for _, count in in_processes(cut_part, tasks, 1 if alone else processes):
        yield count


def _path(folder: Path, part: Part) -> Path:
    return folder / "parts" / f"{part.key}.arrow"


def _kept(part: Part, folder: Path, before: CropStore | None) -> pa.Array | pa.ChunkedArray | None:
    """Crops that the store at hand, or a file that an earlier build left, holds already."""
    crops = None if before is None else before.batch_of(part.key)
    return read_part(_path(folder, part), part) if crops is None else crops


def _join(parts: list[Part], folder: Path, before: CropStore | None, described: bytes) -> None:
    """Write the store from its pieces, one batch each."""
    schema = SCHEMA.with_metadata({METADATA: described})
    with whole_file(folder / FILE_NAME) as unfinished, pa.ipc.new_file(str(unfinished), schema) as writer:
        for part in parts:
            crops = _kept(part, folder, before)
            if crops is None:
                raise FileError(f"{_path(folder, part)} has gone while the store was built; build again")
            if isinstance(crops, pa.ChunkedArray):
                crops = crops.combine_chunks()
            writer.write_batch(pa.record_batch([pa.array(part.rows), crops], schema=schema))


def _tidy(folder: Path, parts: list[Part]) -> None:
    """Remove the pieces that are in the store now, and what builds left behind that nobody went on with."""
    joined = {_path(folder, part) for part in parts}
    with contextlib.suppress(OSError):
        for file in (folder / "parts").iterdir():
            if file in joined or time.time() - file.stat().st_mtime > _KEPT_SECONDS:
                file.unlink(missing_ok=True)
        (folder / "parts").rmdir()
