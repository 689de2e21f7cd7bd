"""The parameters that the folds of leave-one-out chose, as mean and standard deviation."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial

from polypcount.evaluation import Mean
from polypcount.evaluation.tables import Table
from polypcount.reproduce.results import Run
from polypcount.reproduce.rows import NESTED, PUBLISHED_ALPHA, ROWS
from polypcount.reproduce.tables import Spread, number, rules_of, spread_of, with_deviation
from polypcount.storage import csv_text

_NOTES = (
    "Mean over runs ± standard deviation over folds (root of the mean variance over runs), as published; then the "
    "standard deviation of the runs' means over seeds and over renders, and the lowest and highest value of any fold.",
    "Where alpha is 1, time is not used and gamma has no effect. The paper prints alpha only.",
)


def parameter_table(runs: Mapping[str, Sequence[Run]]) -> Table:
    """A line for each row, rule and parameter; `ours+`, whose methods have different ones, is told in a note."""
    rows = []
    for row, rule, name, spread in _all(runs):
        values = [video.parameters[name] for run in runs[row] for video in run.videos[rule] if name in video.parameters]
        cells = (
            *(row, rule, name, with_deviation(spread.mean, spread.videos, 4)),
            *(number(value, 4) for value in (spread.seeds, spread.renders)),
            f"{min(values):g} to {max(values):g}" if values else "-",
            str(spread.runs),
            with_deviation(*PUBLISHED_ALPHA, 4) if (row, name) == ("ours", "alpha") else "-",
        )
        rows.append(cells)
    header = ("row", "rule", "parameter", "mean ± folds", "± seeds", "± renders", "range", "runs", "published")
    return Table("Chosen parameters", header, tuple(rows), (*_NOTES, *_nested(runs)))


def parameter_csv(runs: Mapping[str, Sequence[Run]]) -> str:
    """The same with all digits; `videos` is the standard deviation over folds."""
    rows = [
        [
            row,
            rule,
            name,
            *asdict(spread).values(),
            *(PUBLISHED_ALPHA if (row, name) == ("ours", "alpha") else ("", "")),
        ]
        for row, rule, name, spread in _all(runs)
    ]
    parts = [field.name for field in fields(Spread)]
    return csv_text(["row", "rule", "parameter", *parts, "published", "published_std"], rows)


def _all(runs: Mapping[str, Sequence[Run]]) -> Iterator[tuple[str, str, str, Spread]]:
    for row in ROWS.values():
        of_row = runs.get(row.name, ())
        for rule in rules_of(of_row) if row.method != NESTED else ():
            some = [run for run in of_row if rule in run.parameters]
            for name in dict.fromkeys(name for run in some for name in run.parameters[rule]):
                yield row.name, rule, name, spread_of(some, partial(_chosen, rule, name))


def _chosen(rule: str, name: str, run: Run) -> Mean:
    return run.parameters[rule][name]


def _nested(runs: Mapping[str, Sequence[Run]]) -> Iterator[str]:
    for row in (row.name for row in ROWS.values() if row.method == NESTED):
        for rule in rules_of(runs.get(row, ())):
            chosen = Counter(name for run in runs[row] for name in run.chosen.get(rule, ()))
            if chosen:
                told = ", ".join(f"{name} in {count}" for name, count in chosen.most_common())
                yield f"{row}, `{rule}`, of {chosen.total()} folds: {told}."
