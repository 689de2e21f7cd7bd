"""The errors that polypcount raises on purpose: each is one line that says what, where and how to mend it."""

from collections.abc import Sequence


class PolypcountError(Exception):
    """Parent of all of them. The command line prints the message alone and ends with exit code 2."""


class DataError(PolypcountError, ValueError):
    """A value breaks a rule of the type it was meant for; the message names the row or the id."""


class DataErrors(DataError):
    """Several of them at once, such as the bad keys of a recipe: one line each."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = tuple(lines)


class FileError(PolypcountError):
    """A file or folder is missing, damaged, of another kind or cannot be written; the message names it."""


class CheckFailed(PolypcountError):
    """`check` found errors in a corpus, and the caller asked for none."""


def first_line(problem: BaseException) -> str:
    """What an error of another library says, as one line; its kind, where it says nothing."""
    text = getattr(problem, "strerror", None) or str(problem)
    return (str(text).strip() or type(problem).__name__).splitlines()[0]
