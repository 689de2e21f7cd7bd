"""Functions that numba compiles."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator: compile a function when it is first called, and keep the result for other processes.

    Numba keeps it beside the source or in the user's cache folder. Where neither can be written, as for a service
    without a home folder or on a full disk, every process compiles anew.

    Args:
        options: Those of `numba.njit`.
    """

    def compile_when_called(function: Callable[..., Any]) -> Any:
        try:
            dispatcher = njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:  # numba finds no folder that it may write
            return njit(nogil=True, **options)(function)
        if (cache := getattr(dispatcher, "_cache", None)) is not None:
            keep = cache.save_overload

            def keep_if_possible(*compilation: Any) -> None:
                with suppress(OSError):  # a full disk must not stop the work
                    keep(*compilation)

            cache.save_overload = keep_if_possible
        return dispatcher

    return compile_when_called
