"""How the program starts, and how it ends when somebody stops it: with one line, and the usual exit code."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

_SECONDS_UNTIL_AGAIN = 0.05
_not_said: list[KeyboardInterrupt] = []  # stops that have not been printed yet


class Terminated(KeyboardInterrupt):
    """SIGTERM, as a service manager or a batch system sends it. It ends the work as Ctrl-C does."""


def main() -> None:
    """Run the program. Signals are answered before anything large is imported."""
    _open_standard_streams()
    try:
        with stoppable():
            from polypcount.cli.main import main as run

            run()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is done: a late Ctrl-C ends the process without a traceback


def _open_standard_streams() -> None:
    """Open what the caller has closed (`2>&-`). Else the next file that is opened takes the place of standard error."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Answer Ctrl-C and SIGTERM inside the block: the program ends with one line."""
    usual: dict[signal.Signals, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    own = [kind for kind, handler in usual.items() if signal.getsignal(kind) == handler]  # others are left as they are
    if threading.current_thread() is not threading.main_thread():
        own = []
    for kind in own:
        signal.signal(kind, _stop)
    hook, sys.unraisablehook = sys.unraisablehook, _stop_again
    try:
        yield
    except KeyboardInterrupt as stop:
        sys.exit(say_stopped(stop))
    except SystemExit as end:
        if end.code == 128 + signal.SIGINT and _not_said:  # typer ends without a word if it was not yet in a verb
            sys.exit(say_stopped(_not_said[0]))
        raise
    finally:
        sys.unraisablehook = hook
        _not_said.clear()
        for kind in own:
            signal.signal(kind, usual[kind])


@contextlib.contextmanager
def continuable() -> Iterator[None]:
    """Say that the same command continues, where the work inside the block is stopped."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise type(stop)("stopped; the same command continues from here") from None


def raise_if_stopped() -> None:
    """Raise the stop that a library has turned into an error of its own, as one that is being imported does."""
    if _not_said:
        raise _not_said[0]


def say_stopped(stop: KeyboardInterrupt) -> int:
    """Print what the stop means, in one line; gives the exit code."""
    _not_said.clear()
    with contextlib.suppress(OSError):  # nobody reads it any more
        sys.stderr.write(f"polypcount: {str(stop) or 'stopped'}\n")
        sys.stderr.flush()
    return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)


def _stop(kind: int, _: object) -> None:
    _not_said[:] = [Terminated() if kind == signal.SIGTERM else KeyboardInterrupt()]
    raise _not_said[0]


def _stop_again(lost: Any) -> None:
    """Where Python would print and drop a stop, since it came in a callback of the garbage collector, stop again."""
    if isinstance(lost.exc_value, KeyboardInterrupt):
        kind = signal.SIGTERM if isinstance(lost.exc_value, Terminated) else signal.SIGINT
        again = threading.Timer(_SECONDS_UNTIL_AGAIN, os.kill, (os.getpid(), kind))
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(lost)
