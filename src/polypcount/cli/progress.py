"""Progress of long work: a bar on a terminal, a plain line every few seconds elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from polypcount.progress import Progress, no_progress

_SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def show_progress(task: str, note: Callable[[], str] = str, *, quiet: bool = False) -> Iterator[Progress]:
    """Show the progress of the work inside the `with` block, on standard error.

    Args:
        task: What is being done, such as "simulating procedures".
        note: Gives a text to show beside it, such as the current loss.
        quiet: Show nothing.
    """
    if quiet:
        yield no_progress
    elif sys.stderr.isatty():
        yield from _bar(task, note)
    else:
        yield _plain_lines(task, note)


def _bar(task: str, note: Callable[[], str]) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    width = 40 if note is str else 10  # a note needs room beside it
    columns = (TextColumn("{task.description}"), BarColumn(width), MofNCompleteColumn(), TimeElapsedColumn())
    beside = TextColumn("{task.fields[note]}")
    bar = Bar(*columns, TimeRemainingColumn(), beside, console=Console(stderr=True), transient=True)
    row = bar.add_task(task, total=None, note="")

    def show(done: int, total: int) -> None:
        # The bar draws itself from a thread; work that forks processes does so before its first progress.
        bar.start()
        bar.update(row, completed=done, total=total, note=note())

    try:
        yield show
    finally:
        bar.stop()


def _plain_lines(task: str, note: Callable[[], str]) -> Progress:
    first: tuple[float, int] | None = None
    last = 0.0

    def show(done: int, total: int) -> None:
        nonlocal first, last
        now = time.monotonic()
        if first is None:  # work of an earlier run says nothing about the speed of this one
            first, last = (now, done), now
        elif now - last >= _SECONDS_BETWEEN_LINES and done > first[1]:
            last = now
            left = (now - first[0]) / (done - first[1]) * (total - done)
            beside = f", {note()}" if note() else ""
            sys.stderr.write(f"{task}: {done:,} of {total:,}{beside}, about {left:.0f} s left\n")
            sys.stderr.flush()

    return show
