"""Progress of long work: a bar on a terminal, now and then a plain line elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from polypcount.progress import Progress

_SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def show_progress(task: str) -> Iterator[Progress]:
    """Show how far the work inside the `with` is, on standard error.

    task: what is being done, such as "simulating procedures".
    """
    if sys.stderr.isatty():
        yield from _bar(task)
    else:
        yield _plain_lines(task)


def _bar(task: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
    row = bar.add_task(task, total=None)

    def tell(done: int, total: int) -> None:
        # The bar draws itself from a thread; work that forks processes does so before it first tells.
        bar.start()
        bar.update(row, completed=done, total=total)

    try:
        yield tell
    finally:
        bar.stop()


def _plain_lines(task: str) -> Progress:
    first: tuple[float, int] | None = None
    last = 0.0

    def tell(done: int, total: int) -> None:
        nonlocal first, last
        now = time.monotonic()
        if first is None:  # what was done before this run began says nothing of its speed
            first, last = (now, done), now
        elif now - last >= _SECONDS_BETWEEN_LINES and done > first[1]:
            last = now
            left = (now - first[0]) / (done - first[1]) * (total - done)
            sys.stderr.write(f"{task}: {done:,} of {total:,}, about {left:.0f} s left\n")
            sys.stderr.flush()

    return tell
