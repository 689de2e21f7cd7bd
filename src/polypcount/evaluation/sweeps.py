"""Every video at every point of a grid, once: the numbers from which all folds and rules choose.

What is found is kept in a folder, one file for each video and method, under a key of everything that went in. So a
study that was interrupted goes on where it was, and one with another target FPR starts from what is there.
"""

import hashlib
import json
import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering import Grid, Method, run_tasks
from polypcount.clustering.base import Task
from polypcount.evaluation.pairs import SweepCounts, sweep_counts
from polypcount.evaluation.scenes import StudyVideo
from polypcount.progress import Progress, no_progress
from polypcount.version import __version__
from polypcount.whole import whole_file

_FORMAT = "polypcount sweep 1"  # goes up with every change that gives other groups
_COUNTS = ("groups", "true_positive", "false_positive", "false_negative", "true_negative")


@dataclass(frozen=True, eq=False)
class VideoSweep:
    """One video at every point of a grid: its counts, and whether the method came to rest, bool[points]."""

    counts: SweepCounts
    converged: NDArray[np.bool_]


def sweep_videos(
    method: Method,
    videos: Sequence[StudyVideo],
    grid: Grid,
    *,
    folder: Path | None = None,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> list[VideoSweep]:
    """Group every video at every point, on all cores. folder: where sweeps are kept from run to run, if anywhere.

    Progress is told in grid points over all videos, weighed by the work that a video's points are, so that the time
    left can be told from it.
    """
    found: list[VideoSweep | None] = [None] * len(videos)
    files = [folder / f"{method.name}-{_key(method, video, grid)}.npz" if folder else None for video in videos]
    for place, file in enumerate(files):
        found[place] = _load(file, len(grid)) if file else None
    work = [len(video.scene) ** 2 + 500 for video in videos]
    total = len(grid) * len(videos)
    done = sum(work[place] * len(grid) for place, known in enumerate(found) if known)

    def tasks() -> Iterator[Task]:
        for place, video in enumerate(videos):
            if found[place] is None:
                yield from _tasks_of(method, video, grid, work[place], _keeper(found, place, files[place]))

    for weighed in chain([0], run_tasks(tasks(), threads)):
        done += weighed
        progress(round(done * len(videos) / max(sum(work), 1)), total)
    return [known for known in found if known is not None]


def _tasks_of(
    method: Method, video: StudyVideo, grid: Grid, work: int, keep: Callable[[VideoSweep], None]
) -> Iterator[Task]:
    """The tasks of one video; the one that ends last scores the video and hands the result on."""
    sweep, tasks = method.prepare(video.scene, grid)
    left, lock = len(tasks), threading.Lock()

    def finish() -> int:
        keep(VideoSweep(sweep_counts(sweep.labels, video.truth), sweep.converged))
        return len(grid) * work

    def counted(task: Task) -> Task:
        def run() -> int:
            nonlocal left
            points = task()
            with lock:
                left -= 1
                last = left == 0
            if last:
                finish()
            return points * work

        return run

    if not tasks:
        yield finish
    yield from map(counted, tasks)


def _keeper(found: list[VideoSweep | None], place: int, file: Path | None) -> Callable[[VideoSweep], None]:
    def keep(result: VideoSweep) -> None:
        if file:
            _save(file, result)
        found[place] = result

    return keep


def _key(method: Method, video: StudyVideo, grid: Grid) -> str:
    """Hash of all that decides a sweep."""
    settings = {name: value for name, value in method.get_params().items() if name not in grid.axes}
    head = [
        _FORMAT,
        __version__,
        f"{type(method).__module__}.{type(method).__qualname__}",
        settings,
        video.scene.duration,
        {name: list(values) for name, values in grid.axes.items()},
    ]
    digest = hashlib.sha256(json.dumps(head, sort_keys=True, default=str).encode())
    scene = video.scene
    truth = np.unique(video.truth, return_inverse=True)[1]
    for part in (scene.vectors, scene.positions, scene.constraints.cannot_link, scene.constraints.must_link, truth):
        column = np.ascontiguousarray(part)
        digest.update(f"\n{column.dtype.str} {column.shape}\n".encode())
        digest.update(column.tobytes())
    return digest.hexdigest()[:20]


def _save(file: Path, result: VideoSweep) -> None:
    with whole_file(file) as unfinished, unfinished.open("wb") as stream:
        columns = {name: getattr(result.counts, name) for name in _COUNTS}
        np.savez_compressed(stream, converged=result.converged, **columns)


def _load(file: Path, points: int) -> VideoSweep | None:
    """What was kept; None where there is nothing, or nothing that can be used."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as kept:
            columns = {name: kept[name] for name in (*_COUNTS, "converged")}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    if any(column.shape != (points,) or column.dtype.kind not in "ib" for column in columns.values()):
        return None
    converged = columns.pop("converged").astype(bool)
    return VideoSweep(SweepCounts(**columns), converged)
