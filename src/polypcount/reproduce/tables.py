"""The tables of the paper from the runs so far: means, their spread, and the published numbers beside them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from polypcount.evaluation import Mean
from polypcount.evaluation.tables import Table
from polypcount.reproduce.results import Run
from polypcount.reproduce.rows import PaperTable
from polypcount.storage import csv_text

_RULES = ("fixed", "closest", "budget")
_HEADER = (
    *("row", "rule", "FR", "± seeds", "± renders", "FR, one polyp", "FR, more polyps"),
    *("FPR", "FPR, undefined as 0", "FPR selected at", "pair AUC", "± seeds", "± renders", "runs", "steps", "images"),
    *("published FR", "published FPR"),
)
NOTES = (
    "FR and FPR: mean over runs ± standard deviation over videos, as published; then the standard deviation of the "
    "runs' means over seeds and over renders. A difference smaller than these is noise.",
    "FPR is undefined in a video with one polyp: first the mean over the other videos, then with 0 for these, which is "
    "very probably what the paper prints. 'Selected at' is the FPR on the videos that the parameters were chosen on.",
    "Rules: `closest` takes the FPR nearest to the target, `budget` the lowest FR with an FPR up to it. The published "
    "code does the first; its numbers are beside both.",
    "Pair AUC: AUC of telling pairs of tracklets of one polyp from pairs of two by cosine, in a video; mean over "
    "videos with two polyps. It depends only on the encoder.",
    "Steps and images: of the training of the encoder; an image counts each time that it is seen. At equal steps, SFE, "
    "whose views are single frames, sees an eighth of the images of the others.",
)


@dataclass(frozen=True)
class Spread:
    """A score over runs. Each run is the mean over the videos of one benchmark with one seed.

    Attributes:
        mean: Over all runs in which it is defined; NaN for none.
        videos: sqrt(mean over runs of the sample variance over videos); for one run, what the paper prints after ±.
        seeds: sqrt(mean over benchmarks of the sample variance over seeds); NaN if none has two seeds.
        renders: Sample standard deviation over benchmarks of the mean over seeds; NaN for fewer than two. It includes
            the effect of the seeds on the means.
        low: Mean over runs of the lower end of the bootstrap interval over videos.
        high: The same for the upper end.
        least: The lowest run.
        most: The highest run.
        runs: Number of runs in which it is defined.
    """

    mean: float
    videos: float
    seeds: float
    renders: float
    low: float
    high: float
    least: float
    most: float
    runs: int


def spread_of(runs: Sequence[Run], score: Callable[[Run], Mean]) -> Spread:
    """The spread of a score that is a mean over videos."""
    scores = [(run.benchmark, score(run)) for run in runs]
    defined = [mean for _, mean in scores if not math.isnan(mean.mean)]
    values = [mean.mean for mean in defined]
    groups: dict[str, list[float]] = {}
    for benchmark, mean in scores:
        if not math.isnan(mean.mean):
            groups.setdefault(benchmark, []).append(mean.mean)
    return Spread(
        mean=_mean(values),
        videos=_pooled([mean.std for mean in defined]),
        seeds=_pooled([_std(group) for group in groups.values()]),
        renders=_std([_mean(group) for group in groups.values()]),
        low=_mean([mean.low for mean in defined]),
        high=_mean([mean.high for mean in defined]),
        least=min(values, default=math.nan),
        most=max(values, default=math.nan),
        runs=len(values),
    )


def rules_of(runs: Sequence[Run]) -> list[str]:
    """The rules of these runs, in the order of the tables."""
    return [rule for rule in _RULES if any(rule in run.rules for run in runs)]


def score_spread(runs: Sequence[Run], rule: str, score: str) -> Spread:
    """The spread of a score, or of `pair_auroc`, over the runs of one row."""
    if score == "pair_auroc":
        return spread_of(runs, lambda run: run.pair_auroc)
    return spread_of([run for run in runs if rule in run.rules], lambda run: run.rules[rule][score])


def paper_table(table: PaperTable, runs: Mapping[str, Sequence[Run]]) -> Table:
    """A table to read.

    Args:
        table: Its lines.
        runs: Runs of each row, by its name; a row without runs has `-` in its cells.
    """
    rows = []
    for line in table.lines:
        of_row, published = runs.get(line.row, ()), line.published
        for rule in rules_of(of_row) or [""]:
            fr, fpr, filled = (score_spread(of_row, rule, name) for name in ("fr", "fpr", "fpr_zero_filled"))
            auc = score_spread(of_row, rule, "pair_auroc")
            by_polyps = [score_spread(of_row, rule, f"fr_{kind}_polyp").mean for kind in ("single", "multi")]
            cells = (
                line.label,
                "-" if rule in ("", "fixed") else rule,
                _with(fr.mean, fr.videos, 2),
                *(_number(value, 2) for value in (fr.seeds, fr.renders, *by_polyps)),
                _with(fpr.mean, fpr.videos, 4),
                _with(filled.mean, filled.videos, 4),
                _number(score_spread(of_row, rule, "selected_fpr").mean, 4),
                *(_number(value, 3) for value in (auc.mean, auc.seeds, auc.renders)),
                str(len(of_row)),
                *(_amount([getattr(run, name) for run in of_row]) for name in ("steps", "images")),
                "-" if published is None else _with(published.fr, published.fr_std, 2),
                "-" if published is None else _with(published.fpr, published.fpr_std, 4),
            )
            rows.append(cells)
    return Table(table.title, _HEADER, tuple(rows), NOTES)


def paper_csv(table: PaperTable, runs: Mapping[str, Sequence[Run]]) -> str:
    """The same with all scores and digits: a row for each line, rule and score; undefined is empty."""
    parts = [field.name for field in fields(Spread)]
    rows: list[list[Any]] = []
    for line in table.lines:
        of_row, published = runs.get(line.row, ()), asdict(line.published) if line.published else {}
        for rule in rules_of(of_row):
            names = next(run.rules[rule] for run in of_row if rule in run.rules)
            for score in (*names, "pair_auroc"):
                values = asdict(score_spread(of_row, rule, score)).values()
                printed = (published.get(score), published.get(f"{score}_std"))
                rows.append([line.row, line.label, rule, score, *values, *printed])
    return csv_text(["row", "label", "rule", "score", *parts, "published", "published_std"], rows)


def _with(mean: float, deviation: float | None, decimals: int) -> str:
    if deviation is None or math.isnan(mean):
        return _number(mean, decimals)
    return f"{_number(mean, decimals)} ± {_number(deviation, decimals)}"


def _amount(values: Sequence[int | None]) -> str:
    """A whole number, or the lowest and the highest of several."""
    known = sorted({value for value in values if value is not None})
    return "-" if not known else " to ".join(f"{value:,}" for value in dict.fromkeys((known[0], known[-1])))


def _number(value: float, decimals: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{decimals}f}"


def _mean(values: Sequence[float]) -> float:
    defined = [value for value in values if not math.isnan(value)]
    return float(np.mean(defined)) if defined else math.nan


def _std(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def _pooled(deviations: Sequence[float]) -> float:
    """Root of the mean square of the defined values."""
    return math.sqrt(_mean([deviation**2 for deviation in deviations]))
