"""How a long task reports its progress, without knowing about terminals."""

from typing import Protocol


class Progress(Protocol):
    """Called during a long task with the number of items done so far and their total."""

    def __call__(self, done: int, total: int) -> None:
        """Report progress; must be quick enough to be called for every item."""


def no_progress(done: int, total: int) -> None:
    """Report nothing."""
