"""The summary of several procedures: one row each, polyps per colonoscopy, and the adenoma detection rate."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from polypcount.errors import FileError, first_line
from polypcount.report.count_file import read_count
from polypcount.report.histology import ADENOMAS, OTHERS, DetectionRate, adenomas, detection_rate
from polypcount.report.page import render
from polypcount.report.words import duration, interval, percent
from polypcount.storage import csv_text, read_json, write_json, write_text
from polypcount.version import __version__

FORMAT, FORMAT_VERSION = "polypcount-summary", 1
_FILES = ("summary.csv", "summary.html", "summary.json")
_LEVEL, _RESAMPLES, _SEED = 0.95, 10_000, 0
_COLUMNS = ("name", "count", "low", "high", "tracklets", "frame_count", "duration_seconds", "report", "error")


@dataclass(frozen=True)
class SummaryRow:
    """One procedure of a summary.

    Attributes:
        name: Id of its video.
        count: Number of distinct polyps; None if counting failed.
        low: Lower end of the interval; None if counting failed or gave no interval.
        high: Upper end of the interval, likewise.
        tracklets: Number of tracklets that were counted.
        frame_count: Number of frames of the recording; None if it is not known.
        duration_seconds: Length of the recording; None if it is not known.
        report: Its report.html; None if there is none.
        error: Why it could not be counted; empty if it was.
    """

    name: str
    count: int | None = None
    low: int | None = None
    high: int | None = None
    tracklets: int | None = None
    frame_count: int | None = None
    duration_seconds: float | None = None
    report: Path | None = None
    error: str = ""

    @classmethod
    def of_report(cls, folder: str | os.PathLike[str]) -> "SummaryRow":
        """The row for the report in this folder."""
        values, page = read_count(folder), Path(folder) / "report.html"
        interval = values["interval"] or {"low": None, "high": None}
        return cls(
            values["video"]["id"],
            values["count"],
            interval["low"],
            interval["high"],
            len(values["tracklets"]),
            values["video"]["frame_count"],
            values["video"]["duration_seconds"],
            page if page.exists() else None,
        )


@dataclass(frozen=True)
class PolypRate:
    """Polyps per colonoscopy: sum of the counts / number of counted procedures, including those without polyps.

    Attributes:
        mean: None if no procedure was counted.
        low: Lower end of the bootstrap percentile interval over procedures (10,000 draws); None for fewer than two.
        high: Upper end of it.
        level: Level of the interval.
        procedures: Number of counted procedures.
    """

    mean: float | None
    low: float | None
    high: float | None
    level: float
    procedures: int


def polyps_per_colonoscopy(rows: Sequence[SummaryRow]) -> PolypRate:
    """The mean count over the procedures that were counted."""
    from polypcount.evaluation import mean_of

    counts = [row.count for row in rows if row.count is not None]
    result = mean_of(counts, level=_LEVEL, resamples=_RESAMPLES, seed=_SEED)
    mean, low, high = (None if math.isnan(value) else value for value in (result.mean, result.low, result.high))
    return PolypRate(mean, low, high, _LEVEL, len(counts))


def write_summary(
    rows: Sequence[SummaryRow],
    folder: str | os.PathLike[str],
    *,
    histology: Mapping[str, Sequence[str]] | None = None,
) -> Path:
    """Write summary.csv, summary.html and summary.json; an earlier summary in the folder is replaced.

    Args:
        rows: One for each procedure.
        folder: Folder to write to.
        histology: Classes of the resected polyps by name of the procedure, from `read_histology`. Adds the adenoma
            detection rate over all procedures, counted or not: histology does not depend on the count.

    Returns:
        The folder.
    """
    home = Path(folder)
    refuse_unsuitable_summary(home, force=True)
    rate = polyps_per_colonoscopy(rows)
    adenoma = None if histology is None else detection_rate([row.name for row in rows], histology)
    values = [_values(row, home, histology) for row in rows]
    columns = (*_COLUMNS, *(() if histology is None else ("resected", "adenomas")))
    page = render(
        "summary.html.jinja",
        rows=[{**row_values, **_in_words(row, row_values)} for row, row_values in zip(rows, values, strict=True)],
        figures=list(_figures(rows, rate, adenoma)),
        adenoma=adenoma,
        version=__version__,
        adenomas=ADENOMAS,
        others=OTHERS,
    )
    try:
        write_text(home / "summary.csv", csv_text(columns, [list(row.values()) for row in values]))
        write_text(home / "summary.html", page)
        write_json(
            home / "summary.json",
            {
                "format": FORMAT,
                "format_version": FORMAT_VERSION,
                "package_version": __version__,
                "procedures": values,
                "polyps_per_colonoscopy": asdict(rate),
                "adenoma_detection_rate": adenoma and {**asdict(adenoma), "adenomas": list(ADENOMAS)},
            },
        )
    except OSError as problem:
        raise FileError(f"{home}: the summary cannot be written: {first_line(problem)}") from problem
    return home


def refuse_unsuitable_summary(folder: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raise `FileError`, before any work, if a summary would replace other files or, without force, a summary."""
    existing = [Path(folder) / name for name in _FILES if os.path.lexists(Path(folder) / name)]
    if not existing:
        return
    try:
        is_summary = read_json(Path(folder) / "summary.json")["format"] == FORMAT
    except (FileError, KeyError, TypeError):
        is_summary = False
    if not is_summary:
        raise FileError(f"{existing[0]} is not part of a summary by polypcount; move it, or choose another folder")
    if not force:
        raise FileError(f"{folder} holds a summary already; choose another folder, or replace it", mend="force")


def remove_summary(folder: str | os.PathLike[str]) -> None:
    """Remove the summary in a folder, so that it is not taken for that of a later run that was stopped."""
    refuse_unsuitable_summary(folder, force=True)
    for name in _FILES:
        (Path(folder) / name).unlink(missing_ok=True)


def _values(row: SummaryRow, home: Path, histology: Mapping[str, Sequence[str]] | None) -> dict[str, Any]:
    """The values of a row, by column."""
    values = {name: getattr(row, name) for name in _COLUMNS}
    values["report"] = None if row.report is None else _relative(row.report, home)
    if histology is not None:
        classes = histology.get(row.name)
        values["resected"] = None if classes is None else len(classes)
        values["adenomas"] = None if classes is None else adenomas(classes)
    return values


def _relative(page: Path, home: Path) -> str:
    try:
        return Path(os.path.relpath(page, home)).as_posix()
    except ValueError:  # on another drive of Windows
        return Path(os.path.abspath(page)).as_posix()


def _in_words(row: SummaryRow, values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "interval": "none" if row.low is None or row.high is None else interval(row.low, row.high),
        "duration": "" if row.frame_count is None else duration(row.duration_seconds, row.frame_count),
        "link": values["report"] and quote(values["report"]),
    }


def _figures(
    rows: Sequence[SummaryRow], rate: PolypRate, adenoma: DetectionRate | None
) -> Iterator[tuple[str, str, str]]:
    """Number, name and explanation of each figure at the top of the page."""
    failed = sum(bool(row.error) for row in rows)
    yield str(rate.procedures), "procedures counted", f"{failed} could not be counted." if failed else ""
    if rate.mean is None:
        yield "-", "polyps per colonoscopy", "Not defined: no procedure was counted."
    else:
        spread = "An interval needs two procedures."
        if rate.low is not None and rate.high is not None:
            spread = f"{percent(rate.level)} interval {rate.low:.2f} to {rate.high:.2f}, by bootstrap over procedures."
        text = f"Mean count over {rate.procedures} procedures. {spread}"
        yield f"{rate.mean:.2f}", "polyps per colonoscopy", text
    if adenoma is not None and adenoma.share is not None and adenoma.low is not None and adenoma.high is not None:
        text = f"{adenoma.with_adenoma} of {adenoma.procedures} procedures have an adenoma; 95 % interval "
        text += f"{percent(adenoma.low)} to {percent(adenoma.high)} (Wilson)."
        yield percent(adenoma.share), "adenoma detection rate", text
