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


def earlier_reports(named: dict[Path, str], folder: Path, *, out: Path | None, force: bool) -> dict[Path, Path]:
    """Reports of these recordings under their own names, which reports under pseudonyms replace.

    Args:
        named: The pseudonym of each recording.
        folder: Where reports are written: that of the report, or for several recordings the one above.
        out: What the user gave as this folder, if anything.
        force: Whether reports may be replaced.

    Raises:
        FileError: A report under a name must not or cannot be replaced.
    """
    from polypcount.errors import FileError
    from polypcount.report import read_count, refuse_unsuitable_report
    from polypcount.report.pseudonyms import Pseudonyms

    own = {name_of(source): source for source in named}
    if len(named) == 1:  # without --out, its folder has the name in it
        entries = [] if out is not None else [Path(f"{name}-count") for name in own]
        own = {f"{name}-count": source for name, source in own.items()}
    else:
        entries = sorted(folder.iterdir()) if folder.is_dir() else []
    reports: dict[Path, Path] = {}
    for entry in entries:
        if entry.name in named.values() or Pseudonyms.is_pseudonym(entry.name) or not entry.is_dir():
            continue
        try:
            read_count(entry)
        except FileError:
            continue
        what = f"{entry} is a report under the name of its recording"
        if entry.name not in own:
            raise FileError(f"{what}; move it, or choose another folder")
        if not force and len(named) > 1:
            raise FileError(f"{what}; choose another folder, or replace it", mend="force")
        if force:
            refuse_unsuitable_report(entry, force=True)
            reports[own[entry.name]] = entry
    return reports


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
