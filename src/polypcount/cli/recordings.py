"""What recordings are called, and which boxes belong to which."""

import os
from pathlib import Path


def name_of(source: Path) -> str:
    """The name of a file without its ending, or of a folder."""
    resolved = Path(os.path.abspath(source))
    return resolved.name if resolved.is_dir() else resolved.stem


def name_recordings(sources: list[Path], pseudonyms: Path | None, *, by_name: bool) -> dict[Path, str]:
    """What to call each recording; two of one name would have one report, so only pseudonyms can tell them apart.

    by_name: whether files that come along know recordings by their names, which then must differ in any case.
    """
    from polypcount.errors import DataError
    from polypcount.report.pseudonyms import Pseudonyms

    seen: dict[str, Path] = {}
    for source in sources:
        name, other = name_of(source), seen.setdefault(name_of(source), source)
        if other is not source and os.path.abspath(other) == os.path.abspath(source):
            raise DataError(f"{source} is given twice")
        if other is not source and (by_name or pseudonyms is None):
            way = "" if by_name else ", or use --pseudonyms"
            raise DataError(f"{other} and {source} are both called {name!r}; rename one{way}")
    if pseudonyms is None:
        return {source: name_of(source) for source in sources}
    keys = Pseudonyms.load(pseudonyms)
    found = {source: keys.of(os.path.abspath(source)) for source in sources}
    keys.save(pseudonyms)
    return found


def boxes_for(source: Path, folder: Path) -> Path:
    """The one file or folder in there that has the recording's name."""
    from polypcount.errors import FileError

    name, itself = name_of(source), os.path.abspath(source)
    if not folder.is_dir():
        raise FileError(f"{folder} is not a folder; it was given as --boxes-dir")
    named = sorted(entry for entry in folder.iterdir() if name in (entry.stem, entry.name))
    found = [entry for entry in named if os.path.abspath(entry) != itself]
    if len(found) != 1:
        told = "none" if not found else ", ".join(entry.name for entry in found)
        raise FileError(f"{folder} must have one file of boxes called {name}.json, .txt, .csv or so, found {told}")
    return found[0]
