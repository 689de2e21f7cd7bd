"""Work in several processes, which always end with the process that started them."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, get_context, parent_process
from typing import Any, TypeVar

from polypcount.errors import PolypcountError

Result = TypeVar("Result")
_SECONDS_TO_STOP = 10.0  # a task in compiled code cannot clean up before that code returns


def in_processes(
    function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]], processes: int
) -> Iterator[tuple[int, Result]]:
    """Call a function for each task, and give (number of the task, result) as tasks are finished.

    With one process or one task, everything runs in this process, in order.

    Args:
        function: A function that can be pickled.
        tasks: Arguments of each call.
        processes: How many run at once.

    Raises:
        PolypcountError: A process has died. Errors of the function are raised as they are.
    """
    if processes <= 1 or len(tasks) < 2:
        for number, task in enumerate(tasks):
            yield number, function(*task)
        return
    # Forking is fast, but only safe while no other thread holds a lock.
    method = "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"
    context = get_context(method)
    asked_to_stop, ask = context.Pipe(duplex=False)
    with (
        asked_to_stop,
        ask,
        ProcessPoolExecutor(min(processes, len(tasks)), context, _begin, (asked_to_stop,)) as pool,
    ):
        numbers: dict[Future[Result], int] = {}
        try:
            for number, task in enumerate(tasks):
                numbers[pool.submit(_call, function, task)] = number
            for future in as_completed(numbers):
                yield numbers.pop(future), future.result()
        except BrokenProcessPool:
            raise PolypcountError(
                "a working process has died. A script needs `if __name__ == '__main__':` around its work, or "
                "processes=1; otherwise run it again, it continues where it stopped"
            ) from None
        finally:
            if numbers:  # nobody wants the rest, and the tasks at work may take long
                ask.send_bytes(b"stop")
            pool.shutdown(cancel_futures=True)


def _begin(asked_to_stop: connection.Connection) -> None:
    """Set up a working process."""
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, _stop)
    sys.unraisablehook = _end_if_stopped
    threading.Thread(target=_watch, args=(asked_to_stop,), daemon=True).start()


def _stop(*_: object) -> None:
    """After Ctrl-C, or when another process has died: clean up, then end without a traceback."""
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, lambda *_: None)  # with SIG_IGN, a signal already on its way could swallow the exit
    sys.exit(1)


def _end_if_stopped(lost: Any) -> None:
    """Where Python would print and drop the exit, since it came in a callback of the garbage collector, end at once."""
    if isinstance(lost.exc_value, SystemExit):
        os._exit(1)
    sys.__unraisablehook__(lost)


def _call(function: Callable[..., Result], task: tuple[Any, ...]) -> Result:
    try:
        return function(*task)
    except SystemExit:
        # Everything is cleaned up. If the process stayed alive, it would take the next task from the queue.
        os._exit(1)


def _watch(asked_to_stop: connection.Connection) -> None:
    """Stop this process when it is asked to, or when the one that started it has ended, even by a kill."""
    parent = parent_process()
    assert parent is not None
    if parent.sentinel not in connection.wait([parent.sentinel, asked_to_stop]):
        os.kill(os.getpid(), signal.SIGTERM)
        connection.wait([parent.sentinel], _SECONDS_TO_STOP)
    os._exit(1)
