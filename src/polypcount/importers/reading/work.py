"""Reading many files: in several processes, with progress, and never twice.

An importer cuts its work into tasks, mostly one for each video. Each task gives a small corpus, which is kept in the
cache under a key made of everything that went in: the reading function, its arguments, and name, size and time of
change of every input file. So an interrupted import continues where it stopped, and an import of unchanged files only
checks their times. Of a folder of images mostly only the names are read. There the time of change of the folder
suffices: it changes when a file is added, removed or renamed.
"""

import contextlib
import dataclasses
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polypcount.corpus import Corpus, Provenance
from polypcount.errors import FileError
from polypcount.importers.reading.files import load_json
from polypcount.importers.reading.problems import Problems
from polypcount.progress import Progress, no_progress
from polypcount.storage import cache_folder, content_key, remove_unused, whole_folder
from polypcount.version import __version__
from polypcount.workers import in_processes

_FEW_FILES = 2000  # not worth starting processes for
_KEPT_UNUSED_DAYS = 30


@dataclass(frozen=True)
class ImportTask:
    """One part of an import.

    Attributes:
        arguments: What the reading function is called with, before the `Problems`; plain values and paths.
        inputs: Files and folders that it reads; a folder stands for all files directly in it.
        dated: Folders of which only the names of their files are read, not those of folders below. Their own time of
            change is enough, and no file in them is looked at. A file whose content is read, such as the first image
            for its size, belongs in `inputs` as well. Two changes within one tick of the disk's clock, some
            milliseconds on most, look like one.
        weight: How much work it is, roughly the number of files.
    """

    arguments: tuple[Any, ...]
    inputs: tuple[Path, ...]
    dated: tuple[Path, ...] = ()
    weight: int = 1


@dataclass
class Work:
    """How files are read.

    Attributes:
        problems: Collects the problems.
        processes: How many to use; 1 reads in this process.
        cache: Keep what was read for each task, and use what was kept.
        progress: Called with the work done and the whole work.
        parsed: Values of the JSON files that have been parsed so far.
    """

    problems: Problems
    processes: int = 1
    cache: bool = True
    progress: Progress = no_progress
    parsed: dict[Path, Any] = field(default_factory=dict)

    def load_json(self, path: Path) -> Any:
        """The value in a JSON file, which is parsed only once."""
        if path not in self.parsed:
            self.parsed[path] = load_json(path)
        return self.parsed[path]

    def read_all(self, read: Callable[..., Corpus], tasks: Sequence[ImportTask]) -> list[Corpus]:
        """Call `read(*task.arguments, problems)` for each task; the corpora come in the order of the tasks."""
        folder = cache_folder() / "imports" if self.cache else None
        if folder:
            remove_unused(folder, _KEPT_UNUSED_DAYS)
        # The largest tasks first, so that no process has a long one at the end.
        order = sorted(range(len(tasks)), key=lambda index: -tasks[index].weight)
        calls = [(tasks[index], read, self.problems.skip_bad, folder) for index in order]
        total, done = sum(task.weight for task in tasks), 0
        corpora: dict[int, Corpus] = {}
        for call, corpus in in_processes(_read_task, calls, 1 if total < _FEW_FILES else self.processes):
            corpora[order[call]] = corpus
            done += calls[call][0].weight
            self.progress(done, total)
        for index in range(len(tasks)):
            parameters = corpora[index].provenance.parameters
            self.problems.left_out += parameters["left_out"]
            self.problems.remarks += parameters["remarks"]
        return [corpora[index] for index in range(len(tasks))]


def _read_task(task: ImportTask, read: Callable[..., Corpus], skip_bad: bool, cache: Path | None) -> Corpus:
    cached = cache / _key(task, read, skip_bad) if cache else None
    if cached:
        with contextlib.suppress(FileError, OSError):  # missing, damaged, or being removed: read again
            corpus = Corpus.load(cached)
            os.utime(cached)
            return corpus
    problems = Problems(skip_bad)
    try:
        corpus = read(*task.arguments, problems)
    except FileError as error:
        problems.failed(error)
        corpus = Corpus(())
    parameters = {"left_out": problems.left_out, "remarks": problems.remarks}
    corpus = dataclasses.replace(corpus, provenance=Provenance.now("import", parameters=parameters))
    if cached:
        try:
            with whole_folder(cached) as unfinished:
                corpus.save(unfinished)
        except (FileError, OSError) as problem:  # the import itself is not harmed
            logging.getLogger(__name__).warning("what was read is not kept for another time: %s", problem)
    return corpus


def _key(task: ImportTask, read: Callable[..., Corpus], skip_bad: bool) -> str:
    called = [__version__, read.__module__, read.__qualname__, skip_bad, repr(task.arguments)]
    return content_key("import", called, list(_fingerprint(task.inputs)), [_state(str(path)) for path in task.dated])


def _fingerprint(inputs: Iterable[Path]) -> Iterator[str]:
    for path in inputs:
        if path.is_dir():
            folder = os.open(path, os.O_RDONLY)
            try:
                for name in sorted(os.listdir(folder)):  # noqa: PTH208 - names below an open folder
                    yield _state(name, folder)
            finally:
                os.close(folder)
        else:
            yield _state(str(path))


def _state(name: str, folder: int | None = None) -> str:
    try:
        stat = os.stat(name, dir_fd=folder)
    except OSError:
        return f"{name} is not there"
    # The time of change of the file's entry shows new permissions, and content whose own time was set back.
    return f"{name} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"
