"""Every video at every point of a grid, once: the counts from which all folds and rules choose.

Results are kept in a folder, one file for each video and method, under a key of all input. So an interrupted study
continues where it stopped, and a study with another target FPR starts from these results.
"""

import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering import Grid, Method, Sweep, run_tasks
from polypcount.evaluation.pairs import SweepCounts, sweep_counts
from polypcount.evaluation.videos import StudyVideo
from polypcount.progress import Progress, no_progress
from polypcount.storage import content_key, whole_file
from polypcount.version import __version__

_VERSION = 2  # goes up with every change that gives other groups


@dataclass(frozen=True, eq=False)
class VideoSweep:
    """One video at every point of a grid: its counts, and whether the method converged, bool[points]."""

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
    """Group every video at every point, on all cores.

    Args:
        method: The method.
        videos: The videos.
        grid: The points.
        folder: Where results are kept between runs, if anywhere.
        threads: One for each core by default.
        progress: Called with grid points over all videos, weighted by the work for each video.
    """
    files = [folder and folder / f"{method.name}-{_key(method, video, grid)}.npz" for video in videos]
    swept = {row: saved for row, file in enumerate(files) if (saved := _load(file, len(grid)))}
    work = [len(video.tracklets) ** 2 + 500 for video in videos]
    done = sum(work[row] * len(grid) for row in swept)
    unfinished: dict[int, Sweep] = {}
    tasks_left: dict[int, int] = {}

    def tasks() -> Iterator[Callable[[], tuple[int, int]]]:
        for row, video in enumerate(videos):
            if row not in swept:
                unfinished[row], parts = method.prepare(video.tracklets, grid)
                parts = parts or [lambda: len(grid)]
                tasks_left[row] = len(parts)
                yield from ((lambda row=row, part=part: (row, part())) for part in parts)

    def tell() -> None:
        progress(round(done * len(videos) / max(sum(work), 1)), len(grid) * len(videos))

    tell()
    for row, points in run_tasks(tasks(), threads):
        tasks_left[row] -= 1
        if not tasks_left[row]:
            sweep = unfinished.pop(row)
            swept[row] = VideoSweep(sweep_counts(sweep.labels, videos[row].truth), sweep.converged)
            _save(files[row], swept[row])
        done += points * work[row]
        tell()
    return [swept[row] for row in range(len(videos))]


def _key(method: Method, video: StudyVideo, grid: Grid) -> str:
    """Key of all that decides a sweep."""
    tracklets = video.tracklets
    return content_key(
        "sweep",
        _VERSION,
        __version__,
        f"{type(method).__module__}.{type(method).__qualname__}",
        {name: value for name, value in method.get_params().items() if name not in grid.axes},
        {name: list(values) for name, values in grid.axes.items()},
        tracklets.duration,
        tracklets.vectors,
        tracklets.positions,
        tracklets.constraints.cannot_link,
        tracklets.constraints.must_link,
        np.unique(video.truth, return_inverse=True)[1],
    )[:20]


def _save(file: Path | None, swept: VideoSweep) -> None:
    if file:
        rows = np.array([*vars(swept.counts).values(), swept.converged], np.int64)
        with whole_file(file) as unfinished, unfinished.open("wb") as stream:
            np.savez_compressed(stream, rows=rows)


def _load(file: Path | None, points: int) -> VideoSweep | None:
    """Read a saved sweep; None if the file is missing or damaged."""
    try:
        with (file or Path()).open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            groups, *pairs, converged = arrays["rows"].reshape(6, points)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return VideoSweep(SweepCounts(groups.astype(np.int32), *pairs), converged.astype(bool))
