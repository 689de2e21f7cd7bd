"""Differences between rows, run by run: effects that a seed or a render has on both rows cancel."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from polypcount.evaluation.tables import Table
from polypcount.reproduce.results import Run
from polypcount.reproduce.rows import ROWS

# The comparisons of the paper, and ours: the first should have a lower FR and a higher AUC than the second.
PAIRS = (
    ("supervised", "self-supervised"),
    ("ours", "supervised"),
    ("ours", "ours-ap"),
    ("ours", "tpc"),
    ("ours+", "ours"),
)
_AUC = "pair AUC"  # depends only on the encoder
_SCORES: tuple[tuple[str, Callable[[Run], float]], ...] = (
    (_AUC, lambda run: run.pair_auroc.mean),
    ("FR, closest", lambda run: _fr(run, "closest")),
    ("FR, budget", lambda run: _fr(run, "budget")),
)


def differences(runs: Mapping[str, Sequence[Run]], notes: Sequence[str] = ()) -> Table:
    """The first row minus the second, over the runs (seed and render) that both have.

    The columns are: mean; s.d., the sample standard deviation over runs; range, the lowest and the highest; renders
    alike, the number of renders in which the mean over seeds has the same sign as the mean. `notes` are lines about the
    data.
    """
    rows = []
    for first, second in PAIRS:
        for name, score in _SCORES:
            if name == _AUC and ROWS[first].encoder == ROWS[second].encoder:
                continue
            if paired := _paired(runs.get(first, ()), runs.get(second, ()), score):
                rows.append((f"{first} less {second}", name, *_cells(paired)))
    header = ("rows", "score", "mean", "s.d.", "range", "renders alike", "runs")
    note = (
        "Paired: the same seed on the same render. A mean smaller than its standard deviation over the root of the "
        "number of runs, or with a sign that differs between renders, is noise."
    )
    return Table("Differences", header, tuple(rows), (*notes, note))


def _fr(run: Run, rule: str) -> float:
    return run.rules[rule]["fr"].mean if rule in run.rules else math.nan


def _paired(
    first: Sequence[Run], second: Sequence[Run], score: Callable[[Run], float]
) -> dict[tuple[str, int | None], float]:
    scores, others = ({(run.benchmark, run.seed): score(run) for run in runs} for runs in (first, second))
    paired = {key: scores[key] - others[key] for key in scores if key in others}
    return {key: value for key, value in paired.items() if not math.isnan(value)}


def _cells(paired: Mapping[tuple[str, int | None], float]) -> tuple[str, ...]:
    values = np.array(list(paired.values()))
    mean = float(values.mean())
    renders = sorted({benchmark for benchmark, _ in paired})
    means = [np.mean([value for (name, _), value in paired.items() if name == render]) for render in renders]
    alike = sum(bool(np.sign(each) == np.sign(mean)) for each in means)
    return (
        f"{mean:+.3f}",
        f"{values.std(ddof=1):.3f}" if len(values) > 1 else "-",
        f"{values.min():+.3f} to {values.max():+.3f}",
        f"{alike} of {len(renders)}",
        str(len(values)),
    )
