"""What the pathologist found, and the adenoma detection rate."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from polypcount.errors import DataError, FileError
from polypcount.importers.files import read_table
from polypcount.importers.texts import shown

# Conventional adenomas. Serrated lesions (SSL, TSA) are not counted in the usual definition of the adenoma detection
# rate, nor are carcinomas.
ADENOMAS = ("AD", "TA", "TVA", "VA")
OTHERS = ("HP", "SSL", "SSA", "SSP", "TSA", "CA", "NO POLYP", "OTHER")
_LEVEL = 0.95


@dataclass(frozen=True)
class DetectionRate:
    """The share of procedures with at least one adenoma.

    share: with_adenoma / procedures; None of no procedures.
    low, high: Wilson's 95 % interval of it; None likewise.
    without_rows: procedures of which the table says nothing, taken for procedures without a resected polyp.
    unknown: ids in the table that no procedure has.
    """

    share: float | None
    low: float | None
    high: float | None
    with_adenoma: int
    procedures: int
    without_rows: int
    unknown: tuple[str, ...]


def read_histology(path: str | os.PathLike[str]) -> dict[str, list[str]]:
    """The classes of the polyps that were resected, by id of the video.

    path: a CSV file with the columns `video` and `histology`, a row for each polyp resected. The class is one of
        `ADENOMAS` or `OTHERS`, in any case. A row without a class says that nothing was resected in that procedure.
    """
    place = Path(path)
    found: dict[str, list[str]] = {}
    for line, row in read_table(place, ("video", "histology")):
        video, histology = row["video"], row["histology"].upper()
        if not video:
            raise FileError(f"{place}:{line}: video is empty; it must be the id of a procedure")
        classes = found.setdefault(video, [])
        if histology:
            if histology not in (*ADENOMAS, *OTHERS):
                raise FileError(f"{place}:{line}: {_not_known(row['histology'])}")
            classes.append(histology)
    return found


def detection_rate(names: Sequence[str], histology: Mapping[str, Sequence[str]]) -> DetectionRate:
    """The adenoma detection rate of the procedures with these ids; two of one id are an error."""
    from scipy.stats import binomtest

    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise DataError(f"two procedures are called {twice}; a histology table cannot tell them apart, rename one")
    with_adenoma = sum(adenomas(histology.get(name, ())) > 0 for name in names)
    share = low = high = None
    if names:
        share = with_adenoma / len(names)
        low, high = map(float, binomtest(with_adenoma, len(names)).proportion_ci(_LEVEL, method="wilson"))
    unlisted = sum(name not in histology for name in names)
    unknown = tuple(name for name in histology if name not in set(names))
    return DetectionRate(share, low, high, with_adenoma, len(names), unlisted, unknown)


def adenomas(classes: Sequence[str]) -> int:
    """How many of these polyps are adenomas."""
    for name in classes:
        if name not in (*ADENOMAS, *OTHERS):
            raise DataError(_not_known(name))
    return sum(name in ADENOMAS for name in classes)


def _not_known(name: str) -> str:
    return f"histology must be one of {', '.join((*ADENOMAS, *OTHERS))}, found {shown(name)}; OTHER is for the rest"
