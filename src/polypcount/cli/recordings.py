"""What recordings are called, which boxes belong to which, and where their reports go."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_BESIDE = (".csv", ".json")  # boxes with one of these suffixes are found beside a recording
_BOX_FILES = (*_BESIDE, ".txt", ".xml")


@dataclass(frozen=True)
class Target:
    """One recording to count.

    Attributes:
        source: The recording, or a corpus folder.
        video: Id of the video in a corpus; None for the only one.
        plain_name: Name of the file, or id of the video.
        name: What the report calls it: the plain name, or a pseudonym.
    """

    source: Path
    video: str | None
    plain_name: str
    name: str

    @property
    def folder_name(self) -> str:
        """The name as the name of a folder."""
        return as_folder_name(self.name)


def as_folder_name(name: str) -> str:
    """A name as the name of a folder; ids of videos may hold anything."""
    flat = name.replace("/", "_").replace("\\", "_").replace("\0", "_")
    return flat if flat.strip(".") else f"_{flat}"


def name_of(source: Path) -> str:
    """The name of a file without its suffix, or of a folder."""
    resolved = Path(os.path.abspath(source))
    return resolved.name if resolved.is_dir() else resolved.stem


def list_targets(
    sources: Sequence[Path], *, only: str | None, all_videos: bool, pseudonyms: Path | None, by_name: bool
) -> list[Target]:
    """The recordings to count.

    Two recordings of one name would write to one report, so they need pseudonyms.

    Args:
        sources: Recordings and corpus folders.
        only: Id of the one video to count in a corpus or a file of boxes.
        all_videos: Whether every video of each corpus folder is counted.
        pseudonyms: The file that keeps pseudonyms; None for names of files.
        by_name: Whether other files, such as boxes, are matched to recordings by name. Then the file names must differ
            even with pseudonyms.
    """
    from polypcount.corpus import Corpus, is_corpus
    from polypcount.errors import DataError
    from polypcount.report.pseudonyms import Pseudonyms

    listed: list[tuple[Path, str | None, str]] = []
    for source in sources:
        if all_videos:
            if not is_corpus(source):
                raise DataError(f"--all is for corpus folders, and {source} is none")
            listed += [(source, video.id, video.id) for video in Corpus.load(source).videos]
        else:
            listed.append((source, only, only if only is not None and is_corpus(source) else name_of(source)))
    _refuse_equal_names(listed, by_name=by_name, pseudonyms=pseudonyms is not None)
    if pseudonyms is None:
        return [Target(source, video, name, name) for source, video, name in listed]
    keys = Pseudonyms.load(pseudonyms)
    whole = [os.path.abspath(source) + (f"#{video}" if all_videos else "") for source, video, _ in listed]
    targets = [
        Target(source, video, name, keys.of(key)) for key, (source, video, name) in zip(whole, listed, strict=True)
    ]
    keys.save(pseudonyms)
    return targets


def _refuse_equal_names(listed: Sequence[tuple[Path, str | None, str]], *, by_name: bool, pseudonyms: bool) -> None:
    from polypcount.errors import DataError

    first_of_name: dict[str, Path] = {}
    for source, _, name in listed:
        other = first_of_name.setdefault(name, source)
        if other is not source and os.path.abspath(other) == os.path.abspath(source):
            raise DataError(f"{source} is given twice")
        if other is not source and (by_name or not pseudonyms):
            way = "" if by_name else ", or use --pseudonyms"
            raise DataError(f"{other} and {source} are both called {name!r}; rename one{way}")


def earlier_reports(targets: Sequence[Target], folder: Path | None, *, force: bool) -> dict[Target, Path]:
    """Reports of these recordings under their own names, which reports under pseudonyms replace.

    Args:
        targets: The recordings, with pseudonyms as names.
        folder: Folder of the reports of several recordings. For one recording, what the user gave as folder of its
            report; None for the default, which has the name in it.
        force: Whether reports may be replaced.

    Raises:
        FileError: A report under a name must not or cannot be replaced.
    """
    from polypcount.errors import FileError
    from polypcount.report import read_count, refuse_unsuitable_report
    from polypcount.report.pseudonyms import Pseudonyms

    single = folder is None
    own = {as_folder_name(target.plain_name) + "-count" * single: target for target in targets}
    entries = [Path(name) for name in own] if folder is None else sorted(folder.iterdir()) if folder.is_dir() else []
    reports: dict[Target, Path] = {}
    for entry in entries:
        if Pseudonyms.is_pseudonym(entry.name) or not entry.is_dir():
            continue
        try:
            read_count(entry)
        except FileError:
            continue
        what = f"{entry} is a report under the name of its recording"
        if entry.name not in own:
            raise FileError(f"{what}; move it, or choose another folder")
        if not force and not single:
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
    candidates = [
        entry
        for entry in entries
        if os.path.abspath(entry) != itself and (entry.is_dir() or entry.suffix.lower() in _BOX_FILES)
    ]
    if len(candidates) != 1:
        names = ", ".join(entry.name for entry in candidates) or "none"
        raise FileError(f"{folder} must have one file of boxes called {name}.json, .txt, .csv or so, found {names}")
    return candidates[0]


def boxes_beside(source: Path) -> Path | None:
    """The boxes that lie beside a recording under its name, as case.csv or case.json; None for a corpus or no file."""
    from polypcount.corpus import is_corpus
    from polypcount.errors import DataError

    if is_corpus(source):
        return None
    place = Path(os.path.abspath(source)).parent
    files = [place / f"{name_of(source)}{suffix}" for suffix in _BESIDE]
    beside = [file for file in files if file.is_file()]
    if len(beside) > 1:
        raise DataError(f"{beside[0]} and {beside[1].name} are both beside the recording; take one", mend="boxes")
    return beside[0] if beside else None
