"""The errors that polypcount raises on purpose: each is one line that says what, where and how to mend it."""


class PolypcountError(Exception):
    """Parent of all of them. The command line prints the message alone and ends with exit code 2."""


class DataError(PolypcountError, ValueError):
    """A value breaks a rule of the type it was meant for; the message names the row or the id."""


class FileError(PolypcountError):
    """A file or folder is missing, damaged, of another kind or cannot be written; the message names it."""


class CheckFailed(PolypcountError):
    """`check` found errors in a corpus, and the caller asked for none."""
