"""Run sweeps on all cores: threads, since the compiled work leaves Python's lock alone and shares its matrices."""

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from polypcount.clustering.base import Method, Sweep, Task
from polypcount.clustering.grid import Grid
from polypcount.clustering.scene import Scene
from polypcount.errors import DataError
from polypcount.machine import available_cores
from polypcount.progress import Progress, no_progress


def sweep(
    method: Method, scene: Scene, grid: Grid, *, threads: int | None = None, progress: Progress = no_progress
) -> Sweep:
    """Group the tracklets of one video at every point of a grid. threads: as many as there are cores, if not given."""
    unfilled, tasks = method.prepare(scene, grid)
    done = 0
    for points in run_tasks(tasks, threads):
        done += points
        progress(done, len(unfilled.labels))
    return unfilled


def run_tasks(tasks: Iterable[Task], threads: int | None = None) -> Iterator[int]:
    """Run tasks, taking each from its iterable only when a thread is about to be free, and yield what each returned.

    An error, or a caller who stops listening, ends the work after the tasks at hand.
    """
    if threads is not None and threads < 1:
        raise DataError(f"threads must be at least 1, found {threads}")
    workers = threads or available_cores()
    pool = ThreadPoolExecutor(workers)
    waiting: set[Future[int]] = set()
    try:
        for task in tasks:
            waiting.add(pool.submit(task))
            if len(waiting) > workers:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
