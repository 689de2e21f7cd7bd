"""Histology of resected polyps, and the adenoma detection rate."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from polypcount.errors import DataError, FileError
from polypcount.storage import read_table, shown

# Conventional adenomas. The usual definition of the adenoma detection rate does not count serrated lesions (SSL, TSA)
# or carcinomas.
ADENOMAS = ("AD", "TA", "TVA", "VA")
OTHERS = ("HP", "SSL", "SSA", "SSP", "TSA", "CA", "NO POLYP", "OTHER")
_LEVEL = 0.95


@dataclass(frozen=True)
class DetectionRate:
    """The share of procedures with at least one adenoma.

    Attributes:
        share: with_adenoma / procedures; None without procedures.
        low: Lower end of its Wilson interval at 95 %; None without procedures.
        high: Upper end of it.
        with_adenoma: Procedures with at least one adenoma.
        procedures: All procedures.
        without_rows: Procedures that are not in the table; they count as procedures without a resected polyp.
        unknown: Ids in the table that no procedure has.
    """

    share: float | None
    low: float | None
    high: float | None
    with_adenoma: int
    procedures: int
    without_rows: int
    unknown: tuple[str, ...]


def read_histology(path: str | os.PathLike[str]) -> dict[str, list[str]]:
    """Read the classes of the resected polyps, by id of the video.

    Args:
        path: A CSV file with the columns `video` and `histology`, and one row for each resected polyp. The class is
            one of `ADENOMAS` or `OTHERS`, in upper or lower case. A row without a class says that nothing was resected.

    Raises:
        FileError: The file is missing or damaged, or a row has no video or an unknown class.
    """
    classes: dict[str, list[str]] = {}
    for line, row in read_table(Path(path), ("video", "histology")):
        if not row["video"]:
            raise FileError(f"{path}:{line}: video is empty; it must be the id of a procedure")
        resected = [row["histology"].upper()] if row["histology"] else []
        try:
            adenomas(resected)
        except DataError as problem:
            raise FileError(f"{path}:{line}: {problem}") from None
        classes.setdefault(row["video"], []).extend(resected)
    return classes


def detection_rate(names: Sequence[str], histology: Mapping[str, Sequence[str]]) -> DetectionRate:
    """The adenoma detection rate of the procedures with these ids.

    Raises:
        DataError: Two procedures have the same id, or a class is unknown.
    """
    from scipy.stats import binomtest

    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise DataError(f"two procedures have the name {twice}; the histology table needs different names, rename one")
    with_adenoma = sum(adenomas(histology.get(name, ())) > 0 for name in names)
    share = low = high = None
    if names:
        share = with_adenoma / len(names)
        low, high = map(float, binomtest(with_adenoma, len(names)).proportion_ci(_LEVEL, method="wilson"))
    without_rows = sum(name not in histology for name in names)
    unknown = tuple(name for name in histology if name not in set(names))
    return DetectionRate(share, low, high, with_adenoma, len(names), without_rows, unknown)


def adenomas(classes: Sequence[str]) -> int:
    """How many of these polyps are adenomas."""
    for name in classes:
        if name not in (*ADENOMAS, *OTHERS):
            allowed = ", ".join((*ADENOMAS, *OTHERS))
            raise DataError(f"histology must be one of {allowed}, found {shown(name)}; use OTHER for any other class")
    return sum(name in ADENOMAS for name in classes)
