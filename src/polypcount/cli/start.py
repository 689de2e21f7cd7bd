"""How the program starts, and how it ends when somebody stops it: with one line, and the usual exit code."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator


class Terminated(KeyboardInterrupt):
    """SIGTERM, as a service manager or a batch system sends it. It ends the work as Ctrl-C does."""


def main() -> None:
    """Run the program. Signals are answered before anything large is imported."""
    try:
        with stoppable():
            from polypcount.cli.main import main as run

            run()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is done: a late Ctrl-C ends the process without a traceback


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Answer SIGTERM inside the block, and end the program with one line where it or Ctrl-C stops the work."""
    own = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if own:
        signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    except KeyboardInterrupt as stop:
        sys.exit(say_stopped(stop))
    finally:
        if own:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def continuable() -> Iterator[None]:
    """Say that the same command continues, where the work inside the block is stopped."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise type(stop)("stopped; the same command continues from here") from None


def say_stopped(stop: KeyboardInterrupt) -> int:
    """Print what the stop means, in one line; gives the exit code."""
    with contextlib.suppress(OSError):  # nobody reads it any more
        sys.stderr.write(f"polypcount: {str(stop) or 'stopped'}\n")
        sys.stderr.flush()
    return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)


def _terminate(*_: object) -> None:
    raise Terminated
