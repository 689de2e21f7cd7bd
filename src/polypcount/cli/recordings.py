"""What recordings are called, and which boxes belong to which."""

import os
from pathlib import Path


def name_of(source: Path) -> str:
    """The name of a file without its suffix, or of a folder."""
    resolved = Path(os.path.abspath(source))
    return resolved.name if resolved.is_dir() else resolved.stem


def name_recordings(sources: list[Path], pseudonyms: Path | None, *, by_name: bool) -> dict[Path, str]:
    """What to call each recording.

    Two recordings of one name would write to one report, so they need pseudonyms.

    Args:
        sources: The recordings.
        pseudonyms: The file that keeps pseudonyms; None for names of files.
        by_name: Whether other files, such as boxes, are matched to recordings by name. Then the file names must differ
            even with pseudonyms.
    """
    from polypcount.errors import DataError
    from polypcount.report.pseudonyms import Pseudonyms

    first_of_name: dict[str, Path] = {}
    for source in sources:
        name = name_of(source)
        other = first_of_name.setdefault(name, source)
        if other is not source and os.path.abspath(other) == os.path.abspath(source):
            raise DataError(f"{source} is given twice")
        if other is not source and (by_name or pseudonyms is None):
            way = "" if by_name else ", or use --pseudonyms"
            raise DataError(f"{other} and {source} are both called {name!r}; rename one{way}")
    if pseudonyms is None:
        return {source: name_of(source) for source in sources}
    keys = Pseudonyms.load(pseudonyms)
    names = {source: keys.of(os.path.abspath(source)) for source in sources}
    keys.save(pseudonyms)
    return names


def boxes_for(source: Path, folder: Path) -> Path:
    """The one file or folder of boxes that has the recording's name."""
    from polypcount.errors import FileError

    name, itself = name_of(source), os.path.abspath(source)
    entries = sorted(entry for entry in folder.iterdir() if name in (entry.stem, entry.name))
    candidates = [entry for entry in entries if os.path.abspath(entry) != itself]
    if len(candidates) != 1:
        names = ", ".join(entry.name for entry in candidates) or "none"
        raise FileError(f"{folder} must have one file of boxes called {name}.json, .txt, .csv or so, found {names}")
    return candidates[0]
