"""Reading many files: in several processes, with progress, and never twice.

An importer cuts its work into tasks, mostly one a video. Each gives a small corpus that is kept in the cache folder
under a key made of what went in: the reading function, its arguments, and name, size and time of change of every
input file. So an import that was interrupted goes on where it stopped, and one over an unchanged tree only looks at
file times.
"""

import contextlib
import dataclasses
import hashlib
import logging
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polypcount.corpus import Corpus, Provenance
from polypcount.errors import FileError
from polypcount.importers.problems import Problems
from polypcount.places import cache_folder
from polypcount.progress import Progress, no_progress
from polypcount.version import __version__
from polypcount.workers import in_processes

_FEW_FILES = 2000  # not worth starting processes for
_KEPT_UNUSED_SECONDS = 30 * 24 * 3600

Read = Callable[..., Corpus]


@dataclass(frozen=True)
class Task:
    """One piece of an import.

    arguments: what the reading function is called with, before the `Problems`; plain values and paths.
    inputs: files and folders that it reads; for a folder, all files directly in it.
    dated: files and folders of which only the own time of change matters.
    weight: how much work it is, roughly the number of files.
    """

    arguments: tuple[Any, ...]
    inputs: tuple[Path, ...]
    dated: tuple[Path, ...] = ()
    weight: int = 1


@dataclass
class Work:
    """How the reading is done, and what came up.

    processes: how many to use; 1 reads in this process.
    cache: keep what was read of each task, and use what was kept.
    """

    problems: Problems
    processes: int = 1
    cache: bool = True
    progress: Progress = no_progress

    def read_all(self, read: Read, tasks: Sequence[Task]) -> list[Corpus]:
        """Call `read(*task.arguments, problems)` for each task; the corpora come in the order of the tasks."""
        total = sum(task.weight for task in tasks)
        done = 0
        results: dict[int, Corpus] = {}
        for index, corpus in self._completed(read, tasks, total):
            results[index] = corpus
            done += tasks[index].weight
            self.progress(done, total)
        for index in range(len(tasks)):
            told = results[index].provenance.parameters
            self.problems.left_out += told["left_out"]
            self.problems.remarks += told["remarks"]
        return [results[index] for index in range(len(tasks))]

    def _completed(self, read: Read, tasks: Sequence[Task], total: int) -> Iterator[tuple[int, Corpus]]:
        folder = cache_folder() / "imports" if self.cache else None
        if folder:
            _remove_unused(folder)
        # The largest first, so that no process is left with a long one at the end.
        order = sorted(range(len(tasks)), key=lambda index: -tasks[index].weight)
        calls = [(tasks[index], read, self.problems.skip_bad, folder) for index in order]
        for place, corpus in in_processes(_read_task, calls, 1 if total < _FEW_FILES else self.processes):
            yield order[place], corpus


def _read_task(task: Task, read: Read, skip_bad: bool, cache: Path | None) -> Corpus:
    kept = cache / _key(task, read, skip_bad) if cache else None
    if kept:
        with contextlib.suppress(FileError, OSError):  # not there, damaged, or just being removed: read again
            corpus = Corpus.load(kept)
            os.utime(kept)
            return corpus
    problems = Problems(skip_bad)
    try:
        corpus = read(*task.arguments, problems)
    except FileError as error:
        problems.failed(error)
        corpus = Corpus(())
    told = {"left_out": problems.left_out, "remarks": problems.remarks}
    corpus = dataclasses.replace(corpus, provenance=Provenance.now("import", parameters=told))
    if kept:
        _keep(corpus, kept)
    return corpus


def _keep(corpus: Corpus, kept: Path) -> None:
    """Put a corpus into the cache, whole; a cache that cannot be written to is only a pity."""
    unfinished = kept.with_name(f".{kept.name}-{secrets.token_hex(4)}")
    try:
        corpus.save(unfinished)
        if kept.exists():  # damaged, or another process was quicker
            shutil.rmtree(kept, ignore_errors=True)
        unfinished.rename(kept)
    except (FileError, OSError) as problem:
        logging.getLogger(__name__).warning("what was read is not kept for another time: %s", problem)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _key(task: Task, read: Read, skip_bad: bool) -> str:
    digest = hashlib.sha256()
    for part in (__version__, read.__module__, read.__qualname__, skip_bad, *task.arguments):
        digest.update(f"{part!r}\n".encode())
    for line in (*_fingerprint(task.inputs), *(_seen(str(path)) for path in task.dated)):
        digest.update(f"{line}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()[:32]


def _fingerprint(inputs: Iterable[Path]) -> Iterator[str]:
    for path in inputs:
        if path.is_dir():
            folder = os.open(path, os.O_RDONLY)
            try:
                for name in sorted(os.listdir(folder)):  # noqa: PTH208 - names below an open folder
                    yield _seen(name, folder)
            finally:
                os.close(folder)
        else:
            yield _seen(str(path))


def _seen(name: str, folder: int | None = None) -> str:
    try:
        stat = os.stat(name, dir_fd=folder)
    except OSError:
        return f"{name} is not there"
    # The time of change of the file's own entry notices new permissions, and content set back to an older time.
    return f"{name} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"


def _remove_unused(folder: Path) -> None:
    """Remove what was kept of imports that nobody has repeated for a month."""
    with contextlib.suppress(OSError):  # not there, or another import is tidying up too
        for entry in folder.iterdir():
            if time.time() - entry.stat().st_mtime > _KEPT_UNUSED_SECONDS:
                shutil.rmtree(entry, ignore_errors=True)
