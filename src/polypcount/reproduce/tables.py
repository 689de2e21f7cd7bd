"""The tables of the paper, from the runs that there are, each line beside the published numbers."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields

from polypcount.evaluation.tables import Table
from polypcount.reproduce.results import Run
from polypcount.reproduce.rows import PaperTable
from polypcount.reproduce.spread import Spread, spread_of

_RULES = ("fixed", "closest", "budget")
_HEADER = (
    *("row", "rule", "FR", "± seeds", "± renders", "FR, one polyp", "FR, more polyps"),
    *("FPR", "FPR, undefined as 0", "FPR selected at", "pair AUC", "± seeds", "± renders", "runs"),
    *("published FR", "published FPR"),
)
NOTES = (
    "FR and FPR: mean over runs ± standard deviation over videos, as published; then the standard deviation over seeds "
    "and over renders of what a run has as its mean. A difference smaller than these is noise.",
    "FPR is undefined in a video with one polyp: first the mean over the others, then with 0 for those, which is very "
    "probably what the paper prints. 'Selected at' is the FPR on the videos that the parameters were chosen on.",
    "Rules: `closest` takes the FPR nearest to the target, `budget` the lowest FR with an FPR up to it. The published "
    "code does the first; its numbers stand beside both.",
    "Pair AUC: of telling pairs of tracklets of one polyp from pairs of two by cosine, in a video; mean over videos "
    "with two polyps. It depends on the encoder alone.",
)


def rules_of(runs: Sequence[Run]) -> list[str]:
    """The rules that these runs have, in the order of tables."""
    return [rule for rule in _RULES if any(rule in run.rules for run in runs)]


def score_spread(runs: Sequence[Run], rule: str, score: str) -> Spread:
    """The spread of a score over the runs of one row; `pair_auroc` is a score, too."""
    if score == "pair_auroc":
        return spread_of(runs, lambda run: run.pair_auroc)
    return spread_of([run for run in runs if rule in run.rules], lambda run: run.rules[rule][score])


def paper_table(table: PaperTable, runs: Mapping[str, Sequence[Run]]) -> Table:
    """A table to read. runs: of each row, by its name; a row without any has `-` in its cells."""
    rows = []
    for line in table.lines:
        mine = runs.get(line.row, ())
        for rule in rules_of(mine) or [""]:
            fr, fpr, filled = (score_spread(mine, rule, name) for name in ("fr", "fpr", "fpr_zero_filled"))
            auc = score_spread(mine, rule, "pair_auroc")
            known = line.published
            rows.append(
                (
                    line.label,
                    "-" if rule in ("", "fixed") else rule,
                    _with(fr.mean, fr.videos, 2),
                    *(_number(value, 2) for value in (fr.seeds, fr.renders)),
                    *(_number(score_spread(mine, rule, f"fr_{kind}_polyp").mean, 2) for kind in ("single", "multi")),
                    _with(fpr.mean, fpr.videos, 4),
                    _with(filled.mean, filled.videos, 4),
                    _number(score_spread(mine, rule, "selected_fpr").mean, 4),
                    *(_number(value, 3) for value in (auc.mean, auc.seeds, auc.renders)),
                    str(len(mine)),
                    "-" if known is None else _with(known.fr, known.fr_std, 2),
                    "-" if known is None else _with(known.fpr, known.fpr_std, 4),
                )
            )
    return Table(table.title, _HEADER, tuple(rows), NOTES)


def paper_csv(table: PaperTable, runs: Mapping[str, Sequence[Run]]) -> str:
    """The same with all scores and all digits: a row for each line, rule and score; undefined is empty."""
    parts = [field.name for field in fields(Spread)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["row", "label", "rule", "score", *parts, "published", "published_std"])
    for line in table.lines:
        mine = runs.get(line.row, ())
        known = line.published
        published = {} if known is None else {"fr": (known.fr, known.fr_std), "fpr": (known.fpr, known.fpr_std)}
        for rule in rules_of(mine):
            names = next(run.rules[rule] for run in mine if rule in run.rules)
            for score in (*names, "pair_auroc"):
                found = score_spread(mine, rule, score)
                values = [*(getattr(found, part) for part in parts), *published.get(score, (None, None))]
                writer.writerow([line.row, line.label, rule, score, *map(_plain, values)])
    return out.getvalue()


def _with(mean: float, deviation: float | None, decimals: int) -> str:
    if deviation is None or math.isnan(mean):
        return _number(mean, decimals)
    return f"{_number(mean, decimals)} ± {_number(deviation, decimals)}"


def _number(value: float, decimals: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{decimals}f}"


def _plain(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else str(value)
