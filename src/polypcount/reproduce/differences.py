"""Differences between rows, run by run: what a seed and a render have in common drops out."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from polypcount.evaluation.tables import Table
from polypcount.reproduce.results import Run
from polypcount.reproduce.rows import ROWS

# The comparisons of the paper, and ours: what is asked to be lower (FR) or higher (AUC), and than what.
PAIRS = (
    ("supervised", "self-supervised"),
    ("ours", "supervised"),
    ("ours", "ours-ap"),
    ("ours", "tpc"),
    ("ours+", "ours"),
)
_AUC = "pair AUC"  # of an encoder, whatever groups
_SCORES: tuple[tuple[str, Callable[[Run], float]], ...] = (
    (_AUC, lambda run: run.pair_auroc.mean),
    ("FR, closest", lambda run: _fr(run, "closest")),
    ("FR, budget", lambda run: _fr(run, "budget")),
)


def differences(runs: Mapping[str, Sequence[Run]]) -> Table:
    """The first row less the second, over the runs (seed and render) that both have.

    mean; s.d.: sample standard deviation over runs; range: lowest and highest; renders: in how many of them the mean
    over seeds has the sign of the mean.
    """
    rows = []
    for first, second in PAIRS:
        for name, score in _SCORES:
            if name == _AUC and ROWS[first].encoder == ROWS[second].encoder:
                continue
            paired = _paired(runs.get(first, ()), runs.get(second, ()), score)
            if paired:
                rows.append((f"{first} less {second}", name, *_cells(paired)))
    header = ("rows", "score", "mean", "s.d.", "range", "renders alike", "runs")
    note = (
        "Paired: the same seed on the same render. A mean that is smaller than its standard deviation over the root of "
        "the number of runs, or that renders do not share the sign of, is noise."
    )
    return Table("Differences", header, tuple(rows), (note,))


def _fr(run: Run, rule: str) -> float:
    return run.rules[rule]["fr"].mean if rule in run.rules else math.nan


def _paired(
    first: Sequence[Run], second: Sequence[Run], score: Callable[[Run], float]
) -> dict[tuple[str, int | None], float]:
    others = {(run.benchmark, run.seed): score(run) for run in second}
    found = {
        (run.benchmark, run.seed): score(run) - others[run.benchmark, run.seed]
        for run in first
        if (run.benchmark, run.seed) in others
    }
    return {place: value for place, value in found.items() if not math.isnan(value)}


def _cells(paired: Mapping[tuple[str, int | None], float]) -> tuple[str, ...]:
    values = np.array(list(paired.values()))
    mean = float(values.mean())
    renders = sorted({benchmark for benchmark, _ in paired})
    means = [np.mean([value for (place, _), value in paired.items() if place == render]) for render in renders]
    alike = sum(bool(np.sign(each) == np.sign(mean)) for each in means)
    return (
        f"{mean:+.3f}",
        f"{values.std(ddof=1):.3f}" if len(values) > 1 else "-",
        f"{values.min():+.3f} to {values.max():+.3f}",
        f"{alike} of {len(renders)}",
        str(len(values)),
    )
