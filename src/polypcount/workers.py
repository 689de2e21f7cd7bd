"""Work in several processes, which end when they are not needed any more, whatever happens."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, get_context, parent_process
from typing import Any, TypeVar

from polypcount.errors import PolypcountError

Result = TypeVar("Result")


def in_processes(
    function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]], processes: int
) -> Iterator[tuple[int, Result]]:
    """Call the function with the arguments of each task; gives (number of the task, result) as they are done.

    With one process or one task it is done here, in order.
    """
    if processes <= 1 or len(tasks) < 2:
        for number, task in enumerate(tasks):
            yield number, function(*task)
        return
    # Forking starts at once, but is only safe while no other thread holds a lock.
    method = "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"
    with ProcessPoolExecutor(min(processes, len(tasks)), get_context(method), _begin) as pool:
        try:
            numbers = {pool.submit(_call, function, task): number for number, task in enumerate(tasks)}
            for future in as_completed(numbers):
                yield numbers.pop(future), future.result()
        except BrokenProcessPool:
            raise PolypcountError(
                "a working process has died. A script needs `if __name__ == '__main__':` around its work, or "
                "processes=1; otherwise run it again, it goes on where it stopped"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Set up a working process."""
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, _stop)
    _end_with_parent()


def _stop(*_: object) -> None:
    """At Ctrl-C, or when another process has died: end without a traceback, once what was begun is undone."""
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, lambda *_: None)  # with SIG_IGN, a signal already on its way could swallow the exit
    sys.exit(1)


def _call(function: Callable[..., Result], task: tuple[Any, ...]) -> Result:
    try:
        return function(*task)
    except SystemExit:
        # Stopped, and what was begun is undone. Left alive, it would take on what waits in the queue.
        os._exit(1)


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, also by a kill; otherwise it would wait for ever."""
    parent = parent_process()
    if parent is not None:

        def wait() -> None:
            connection.wait([parent.sentinel])
            os._exit(1)

        threading.Thread(target=wait, daemon=True).start()
