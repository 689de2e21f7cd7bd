"""The folder of a report.

report.html                     for people; one file, with its pictures inside
count.json                      for programs; see `count_file.py`
polyps.csv  tracklets.csv       for spreadsheets
boxes-coco/  boxes-mot/  ...    the boxes with the polyps that were counted, where they were asked for
"""

import json
import os
import secrets
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from polypcount.corpus import Corpus
from polypcount.counting.result import CountReport
from polypcount.errors import FileError, first_line
from polypcount.report.count_file import COUNT_FILE, count_values, read_count
from polypcount.report.page import report_page
from polypcount.report.tables import polyps_csv, tracklets_csv
from polypcount.report.video import ANNOTATED
from polypcount.whole import flush

_LITTER = (".DS_Store", "Thumbs.db", "desktop.ini")  # left behind by programs that show folders


def write_report(
    report: CountReport, folder: str | os.PathLike[str], *, force: bool = False, export: Iterable[str] = ()
) -> Path:
    """Write a report to a new folder, whole or not at all; returns the folder.

    force: replace a report, or an empty folder, that is there. A folder with anybody's other files is left alone.
    export: formats of `polypcount.importers` that boxes are also written in, such as "coco", "mot" and "cvat".
    """
    place = Path(os.path.abspath(folder))
    refuse_unsuitable_report(place, force=force)
    unfinished = place.with_name(f".{place.name[:100]}.{secrets.token_hex(4)}")
    try:
        unfinished.mkdir(parents=True)
        _write_all(report, unfinished, export)
        _put_in_place(unfinished, place)
    except OSError as problem:
        raise FileError(f"{place}: the report cannot be written: {first_line(problem)}") from problem
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return Path(folder)


def refuse_unsuitable_report(folder: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raise, before any work, where a report cannot be written, or would replace something that it must not."""
    place = Path(os.path.abspath(folder))
    try:
        if place.is_symlink():
            raise FileError(f"{place} is a link; give the folder that it leads to, or a new one")
        if not place.exists():
            return
        if not place.is_dir():
            raise FileError(f"{place} is a file; a report is written to a folder")
        if not force:
            raise FileError(f"{place} exists already; choose a new folder, or replace the report in it with --force")
        if not any(place.iterdir()):
            return
        others = _others(place)
    except OSError as problem:
        raise FileError(f"{place} cannot be read: {first_line(problem)}") from None
    if others:
        raise FileError(f"{place} holds {others}, which a report would delete; move it, or choose a new folder")


def _others(folder: Path) -> str:
    """What is in a folder besides a report, in words; empty where there is nothing else."""
    try:
        ours = {COUNT_FILE, ANNOTATED, *_LITTER, *read_count(folder)["files"]}
    except FileError:
        return "files and no report"
    found = []
    for above, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(above, name))]
        found += [Path(above, name).relative_to(folder).as_posix() for name in (*files, *links)]
    others = sorted(name for name in found if name not in ours)
    return f"{others[0]}{f' and {len(others) - 1} more' if len(others) > 1 else ''}" if others else ""


def _write_all(report: CountReport, folder: Path, export: Iterable[str]) -> None:
    count = count_values(report)
    texts = {"report.html": report_page(report), "polyps.csv": polyps_csv(count), "tracklets.csv": tracklets_csv(count)}
    for name, text in texts.items():
        _write(folder / name, text)
    for format in dict.fromkeys(export):
        _export(report, format, folder)
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    _write(folder / COUNT_FILE, json.dumps({**count, "files": files}, indent=1, allow_nan=False) + "\n")
    flush(folder)


def _write(path: Path, text: str) -> None:
    # Names of files that are no valid text on this system come with half characters, which UTF-8 has no place for.
    path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    flush(path)


def _export(report: CountReport, format: str, folder: Path) -> None:
    from polypcount.importers import write_boxes

    boxes, polyps = report.counted_boxes()
    corpus = Corpus((replace(report.video, source=None),), boxes, polyps, provenance=report.provenance)
    try:
        write_boxes(corpus, format, folder / f"boxes-{format}")
    except FileError as problem:
        if isinstance(problem.__cause__, OSError):  # told in the name of the report's own folder
            raise problem.__cause__ from None
        raise


def _put_in_place(finished: Path, place: Path) -> None:
    """Give the folder its name, in one step where nothing has that name, else after moving that aside."""
    if not place.exists():
        finished.rename(place)
    else:
        replaced = finished.with_name(f"{finished.name}.old")
        place.rename(replaced)
        try:
            finished.rename(place)
        except OSError:
            replaced.rename(place)
            raise
        shutil.rmtree(replaced, ignore_errors=True)
    flush(place.parent)
