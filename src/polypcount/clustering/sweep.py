"""Run sweeps on all cores. Threads suffice: the compiled work releases Python's lock, and threads share matrices."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from polypcount.clustering.base import Method
from polypcount.clustering.grid import Grid
from polypcount.clustering.grouping import Sweep
from polypcount.clustering.grouping_input import GroupingInput
from polypcount.errors import DataError
from polypcount.machine import available_cores
from polypcount.progress import Progress, no_progress

T = TypeVar("T")


def sweep(
    method: Method,
    tracklets: GroupingInput,
    grid: Grid,
    *,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> Sweep:
    """Group the tracklets of one video at every point of a grid, on this many threads (default: one for each core)."""
    unfilled, tasks = method.prepare(tracklets, grid)
    done = 0
    for points in run_tasks(tasks, threads):
        done += points
        progress(done, len(unfilled.labels))
    return unfilled


def run_tasks(tasks: Iterable[Callable[[], T]], threads: int | None = None) -> Iterator[T]:
    """Run tasks and yield what each returned.

    A task is taken from its iterable only when a thread is about to be free. An error, or a caller that stops
    iterating, ends the work after the tasks that are running.
    """
    if threads is not None and threads < 1:
        raise DataError(f"threads must be at least 1, found {threads}")
    workers = threads or available_cores()
    pool = ThreadPoolExecutor(workers)
    running: set[Future[T]] = set()
    try:
        for task in tasks:
            running.add(pool.submit(task))
            if len(running) > workers:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
