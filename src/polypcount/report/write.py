"""The folder of a report.

report.html                     for people; one file that holds its pictures
count.json                      for programs; see `count_file.py`
polyps.csv  tracklets.csv       for spreadsheets
review/                         for `polypcount review`; see `review_file.py`
boxes-coco/  boxes-mot/  ...    the boxes with the counted polyps, if asked for
"""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from polypcount.corpus import Corpus
from polypcount.counting.result import CountReport
from polypcount.errors import FileError, first_line
from polypcount.report.count_file import COUNT_FILE, count_values, read_count
from polypcount.report.keep_review import is_of_review, review_kept
from polypcount.report.page import report_page
from polypcount.report.review_data import write_review_data
from polypcount.report.review_file import DECISIONS, REVIEW_FOLDER
from polypcount.report.tables import polyps_csv, tracklets_csv
from polypcount.report.video import ANNOTATED
from polypcount.storage import remove_leftovers, whole_folder, write_json, write_text
from polypcount.storage.leftovers import unfinished

_LITTER = (".DS_Store", "Thumbs.db", "desktop.ini")  # left by programs that show folders


def write_report(
    report: CountReport,
    folder: str | os.PathLike[str],
    *,
    force: bool = False,
    export: Iterable[str] = (),
    review: bool = True,
) -> Path:
    """Write a report to a new folder, whole or not at all.

    Args:
        report: The count.
        folder: Folder to write to.
        force: Replace the folder if it holds a report or nothing. A folder with any other file is never replaced. What
            people decided in a review of the old report is kept.
        export: Formats of `polypcount.importers` to write the boxes in as well, such as "coco", "mot" and "cvat".
        review: Whether to keep what a review needs: vectors, boxes, pictures, and privately where the recording lies.

    Returns:
        The folder.

    Raises:
        FileError: The folder exists, holds other files, or cannot be written.
    """
    refuse_unsuitable_report(folder, force=force)
    try:
        with review_kept(Path(folder)) as copy_review, whole_folder(Path(folder), replace=force) as new:
            _write_files(report, new, export, review=review)
            copy_review(new)
    except FileExistsError:  # it was not there when the counting began
        raise FileError(
            f"{folder}: another process has written a report there meanwhile; choose a new folder, or replace it",
            mend="force",
        ) from None
    except OSError as problem:
        raise FileError(f"{folder}: the report cannot be written: {first_line(problem)}") from problem
    return Path(folder)


def refuse_unsuitable_report(folder: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raise `FileError` where `write_report` would, but before any work."""
    path = Path(os.path.abspath(folder))
    for place in (path.parent, path):
        remove_leftovers(place)
    try:
        if path.is_symlink():
            raise FileError(f"{path} is a link; choose the folder that it points to, or a new one")
        if not path.exists():
            _refuse_unwritable(path)
            return
        if not path.is_dir():
            raise FileError(f"{path} is a file; a report needs a folder")
        if not force:
            raise FileError(f"{path} exists already; choose a new folder, or replace the report in it", mend="force")
        others = _other_files(path) if any(path.iterdir()) else ""
    except OSError as problem:
        raise FileError(f"{path} cannot be read: {first_line(problem)}") from None
    if others:
        raise FileError(f"{path} holds {others}, which would be deleted; move it, or choose a new folder")


def remove_report(folder: Path) -> None:
    """Remove a report, and nothing else, at once: a process that is killed meanwhile leaves no half of it.

    Raises:
        FileError: The folder holds other files, or cannot be removed.
    """
    refuse_unsuitable_report(folder, force=True)
    if (folder / DECISIONS).exists():
        raise FileError(f"{folder} holds decisions of a review, which would be deleted; move it")
    try:
        with unfinished(folder, Path.mkdir) as hidden:
            folder.rename(hidden / "removed")
    except OSError as problem:
        raise FileError(f"{folder} cannot be removed: {first_line(problem)}") from None


def _refuse_unwritable(path: Path) -> None:
    """Raise where the folder cannot be made."""
    above = next(folder for folder in path.parents if folder.exists())
    try:
        with unfinished(above / path.name, Path.mkdir):
            pass
    except OSError as problem:
        raise FileError(f"{path} cannot be written: {above}: {first_line(problem)}") from None


def _other_files(folder: Path) -> str:
    """What is in a folder besides a report, in words; empty if there is nothing else."""
    try:
        ours = {COUNT_FILE, ANNOTATED, *_LITTER, *read_count(folder)["files"]}
    except FileError:
        return "files but no report"
    entries = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    names = {path.relative_to(folder).as_posix() for path in entries} - ours
    others = sorted(name for name in names if not is_of_review(name))
    return f"{others[0]}{f' and {len(others) - 1} more' if len(others) > 1 else ''}" if others else ""


def _write_files(report: CountReport, folder: Path, export: Iterable[str], *, review: bool) -> None:
    count = count_values(report)
    write_text(folder / "report.html", report_page(report))
    write_text(folder / "polyps.csv", polyps_csv(count))
    write_text(folder / "tracklets.csv", tracklets_csv(count))
    if review:
        write_review_data(report, folder / REVIEW_FOLDER)
    for format in dict.fromkeys(export):
        _export(report, format, folder)
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    write_json(folder / COUNT_FILE, {**count, "files": files})


def _export(report: CountReport, format: str, folder: Path) -> None:
    from polypcount.importers import write_boxes

    boxes, polyps = report.counted_boxes()
    corpus = Corpus((replace(report.video, source=None),), boxes, polyps, provenance=report.provenance)
    try:
        write_boxes(corpus, format, folder / f"boxes-{format}")
    except FileError as problem:
        if isinstance(problem.__cause__, OSError):  # the message must name the folder of the report
            raise problem.__cause__ from None
        raise
