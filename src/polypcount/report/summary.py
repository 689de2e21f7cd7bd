"""Several procedures: one row each, polyps per colonoscopy, and the adenoma detection rate."""

import json
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
from polypcount.report.tables import csv_text
from polypcount.report.words import Clock, interval, percent
from polypcount.version import __version__
from polypcount.whole import whole_file

FORMAT, FORMAT_VERSION = "polypcount-summary", 1
_FILES = ("summary.csv", "summary.html", "summary.json")
_LEVEL, _RESAMPLES, _SEED = 0.95, 10_000, 0
_COLUMNS = ("name", "count", "low", "high", "tracklets", "frame_count", "duration_seconds", "report", "error")


@dataclass(frozen=True)
class Procedure:
    """One procedure of a summary.

    name: id of its video.
    count, low, high: distinct polyps, and the interval; None where counting failed.
    tracklets: that were counted. frame_count, fps: of the recording; None where they are not known.
    report: its report.html; None where there is none.
    error: the line that says why it could not be counted; empty where it was.
    """

    name: str
    count: int | None = None
    low: int | None = None
    high: int | None = None
    tracklets: int | None = None
    frame_count: int | None = None
    fps: float | None = None
    report: Path | None = None
    error: str = ""

    @classmethod
    def of_report(cls, folder: str | os.PathLike[str]) -> "Procedure":
        """The procedure whose report is in this folder."""
        found, page = read_count(folder), Path(folder) / "report.html"
        return cls(
            found["video"]["id"],
            found["count"],
            found["interval"]["low"],
            found["interval"]["high"],
            len(found["tracklets"]),
            found["video"]["frame_count"],
            found["video"]["fps"],
            page if page.exists() else None,
        )

    @property
    def duration_seconds(self) -> float | None:
        """Length of the recording; None where it is not known."""
        return None if self.frame_count is None or self.fps is None else self.frame_count / self.fps


@dataclass(frozen=True)
class Rate:
    """Polyps per colonoscopy: the sum of counts / procedures counted, with the procedures that have none.

    mean: None where no procedure was counted.
    low, high: bootstrap percentile interval over procedures (10,000 draws), at the level; None of fewer than two.
    """

    mean: float | None
    low: float | None
    high: float | None
    level: float
    procedures: int


def polyps_per_colonoscopy(procedures: Sequence[Procedure]) -> Rate:
    """The mean count over the procedures that could be counted."""
    from polypcount.evaluation import mean_of

    counts = [one.count for one in procedures if one.count is not None]
    found = mean_of(counts, level=_LEVEL, resamples=_RESAMPLES, seed=_SEED)
    mean, low, high = (None if math.isnan(value) else value for value in (found.mean, found.low, found.high))
    return Rate(mean, low, high, _LEVEL, len(counts))


def write_summary(
    procedures: Sequence[Procedure],
    folder: str | os.PathLike[str],
    *,
    histology: Mapping[str, Sequence[str]] | None = None,
) -> Path:
    """Write summary.csv, summary.html and summary.json to a folder, in place of those of an earlier summary there.

    histology: classes of resected polyps by name of the procedure, from `read_histology`; adds the adenoma detection
        rate, over all procedures, counted or not, since histology does not depend on the count.
    """
    home = Path(folder)
    refuse_unsuitable_summary(home, force=True)
    rate = polyps_per_colonoscopy(procedures)
    adenoma = None if histology is None else detection_rate([one.name for one in procedures], histology)
    rows = [_row(one, home, histology) for one in procedures]
    texts = (
        csv_text(list(rows[0]) if rows else _COLUMNS, [list(row.values()) for row in rows]),
        render("summary.html.jinja", **_page(procedures, rows, rate, adenoma)),
        json.dumps(_values(rows, rate, adenoma), indent=1, allow_nan=False) + "\n",
    )
    try:
        for name, text in zip(_FILES, texts, strict=True):
            with whole_file(home / name) as unfinished:
                unfinished.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    except OSError as problem:
        raise FileError(f"{home}: the summary cannot be written: {first_line(problem)}") from problem
    return home


def refuse_unsuitable_summary(folder: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raise, before any work, where a summary would replace another file, or, without force, an earlier summary."""
    taken = [Path(folder) / name for name in _FILES if os.path.lexists(Path(folder) / name)]
    try:
        ours = json.loads((Path(folder) / _FILES[-1]).read_bytes())["format"] == FORMAT
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        ours = False
    if taken and not ours:
        raise FileError(f"{taken[0]} is there and not of a summary by polypcount; move it, or choose another folder")
    if taken and not force:
        raise FileError(f"{folder} holds a summary already; choose another folder, or replace it with --force")


def _row(one: Procedure, home: Path, histology: Mapping[str, Sequence[str]] | None) -> dict[str, Any]:
    row = {name: getattr(one, name) for name in _COLUMNS}
    row["report"] = None if one.report is None else _relative(one.report, home)
    if histology is not None:
        classes = histology.get(one.name)
        row["resected"] = None if classes is None else len(classes)
        row["adenomas"] = None if classes is None else adenomas(classes)
    return row


def _relative(page: Path, home: Path) -> str:
    try:
        return Path(os.path.relpath(page, home)).as_posix()
    except ValueError:  # on another drive of Windows
        return Path(os.path.abspath(page)).as_posix()


def _values(rows: Sequence[Mapping[str, Any]], rate: Rate, adenoma: DetectionRate | None) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "package_version": __version__,
        "procedures": list(rows),
        "polyps_per_colonoscopy": asdict(rate),
        "adenoma_detection_rate": None if adenoma is None else {**asdict(adenoma), "adenomas": list(ADENOMAS)},
    }


def _page(
    procedures: Sequence[Procedure], rows: Sequence[Mapping[str, Any]], rate: Rate, adenoma: DetectionRate | None
) -> dict[str, Any]:
    shown = [
        {
            **row,
            "interval": interval(row["low"], row["high"]) if row["count"] is not None else "",
            "duration": "" if one.frame_count is None else Clock(one.fps).span(one.frame_count),
            "link": row["report"] and quote(row["report"]),
        }
        for one, row in zip(procedures, rows, strict=True)
    ]
    figures = list(_figures(procedures, rate, adenoma))
    lists = {"adenomas": ADENOMAS, "others": OTHERS}
    return {"rows": shown, "figures": figures, "adenoma": adenoma, "version": __version__, **lists}


def _figures(
    procedures: Sequence[Procedure], rate: Rate, adenoma: DetectionRate | None
) -> Iterator[tuple[str, str, str]]:
    """Number, name and explanation of each figure at the top."""
    failed = sum(bool(one.error) for one in procedures)
    yield str(rate.procedures), "procedures counted", f"{failed} could not be counted." if failed else ""
    if rate.mean is None:
        yield "-", "polyps per colonoscopy", "Not defined: no procedure was counted."
    else:
        over = f"Mean count over {rate.procedures} procedures."
        spread = " An interval needs two procedures."
        if rate.low is not None and rate.high is not None:
            spread = f" {percent(rate.level)} interval {rate.low:.2f} to {rate.high:.2f}, by bootstrap over procedures."
        yield f"{rate.mean:.2f}", "polyps per colonoscopy", over + spread
    if adenoma is not None and adenoma.share is not None and adenoma.low is not None and adenoma.high is not None:
        told = f"{adenoma.with_adenoma} of {adenoma.procedures} procedures have an adenoma; 95 % interval "
        told += f"{percent(adenoma.low)} to {percent(adenoma.high)} (Wilson)."
        yield percent(adenoma.share), "adenoma detection rate", told
