"""The errors of polypcount: each is one line that says what is wrong, where, and how to mend it."""

from collections.abc import Sequence


class PolypcountError(Exception):
    """Parent of all errors.

    The message speaks of data and files.

    Attributes:
        mend: Keywords of the library that would help, such as "min_frames"; the command line shows them as options.
    """

    def __init__(self, message: str, *, mend: str | Sequence[str] = ()) -> None:
        super().__init__(message)
        self.mend = (mend,) if isinstance(mend, str) else tuple(mend)


class DataError(PolypcountError, ValueError):
    """A value breaks a rule of its type; the message names the row or the id."""


class DataErrors(DataError):
    """Several errors at once, such as the bad keys of a recipe: one line each."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = tuple(lines)


class FileError(PolypcountError):
    """A file or folder is missing, damaged, of another kind or cannot be written; the message names it."""


class CheckFailed(PolypcountError):
    """`check` found errors in a corpus."""


def first_line(problem: BaseException) -> str:
    """The first line of an error from another library, or its type if it has no text."""
    text = getattr(problem, "strerror", None) or str(problem)
    return (str(text).strip() or type(problem).__name__).splitlines()[0]
