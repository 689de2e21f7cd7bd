"""Folders that verbs write to."""

from pathlib import Path


def refuse_existing(out: Path, force: bool) -> None:
    """Raise `FileError`, before any work, if a corpus cannot be saved or would replace another without force."""
    from polypcount.corpus import is_corpus, refuse_unsuitable
    from polypcount.errors import FileError

    refuse_unsuitable(out)
    if is_corpus(out) and not force:
        raise FileError(f"{out} holds a corpus already; choose another folder, or replace it", mend="force")
