"""How long work tells its caller how far it is, without knowing about terminals."""

from typing import Protocol


class Progress(Protocol):
    """Called now and then from long work with the number of items done so far and their total."""

    def __call__(self, done: int, total: int) -> None:
        """Take note; quick enough to be called for every item."""


def no_progress(done: int, total: int) -> None:
    """The `Progress` of callers who do not want to hear of it."""
