"""Tables of a study as Markdown, LaTeX and CSV."""

import math
from dataclasses import dataclass

from polypcount.evaluation.scores import DERIVED, MEASURED
from polypcount.evaluation.study import MethodStudy, RuleStudy, Study
from polypcount.evaluation.summary import Mean
from polypcount.storage import csv_text

_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
    }
)


@dataclass(frozen=True)
class Table:
    """Cells as text. The first column holds names, the others numbers."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def to_markdown(self) -> str:
        """Title, table and notes."""
        lines = [f"## {_one_line(self.title)}", ""]
        for row in (self.header, ("---", *("---:" for _ in self.header[1:])), *self.rows):
            lines.append(
                "| " + " | ".join(_one_line(cell).replace("\\", "\\\\").replace("|", "\\|") for cell in row) + " |"
            )
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes)]) + "\n"

    def to_latex(self) -> str:
        """A `table` for the booktabs package."""
        # Braces first: LaTeX would take a bracket or star at the start of a row as an option of the row before.
        head, *rows = (
            "{}" + " & ".join(_one_line(cell).translate(_LATEX) for cell in row) + r" \\"
            for row in (self.header, *self.rows)
        )
        caption = " ".join((f"{self.title}.", *self.notes)).translate(_LATEX)
        columns = "l" + "r" * (len(self.header) - 1)
        begin = [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule"]
        end = [r"\bottomrule", r"\end{tabular}", rf"\caption{{{caption}}}", r"\end{table}"]
        return "\n".join([*begin, *rows, *end]) + "\n"


def summary_table(study: Study) -> Table:
    """One row for each method and rule: FR and FPR."""
    header = ("method", "rule", "FR", "95 % interval", "FPR", "FPR, undefined as 0", "FPR selected at")
    rows = tuple(
        (
            method.method,
            rule.rule.replace("fixed", "-"),
            _spread(rule.scores["fr"]),
            f"{_number(rule.scores['fr'].low)} to {_number(rule.scores['fr'].high)}",
            _spread(rule.scores["fpr"], 4),
            _spread(rule.scores["fpr_zero_filled"], 4),
            _number(rule.selected_fpr.mean, 4),
        )
        for method, rule in _rules(study)
    )
    title = "Leave-one-out over videos" if _chosen(study) else "Means over videos, with fixed parameters"
    return Table(title, header, rows, _summary_notes(study))


_DETAILS = {
    "fr_single_polyp": "FR, one polyp",
    "fr_multi_polyp": "FR, more polyps",
    "fr_all": "FR, all annotated",
    "tpr": "TPR",
    "exact_count": "exact counts",
    "count_error": "count error",
    "absolute_count_error": "count off by",
    "adjusted_rand": "adjusted Rand",
    "v_measure": "V-measure",
    "bcubed_f1": "B-cubed F1",
}


def detail_table(study: Study) -> Table:
    """One row for each method and rule: other scores, and the parameters that were chosen."""
    rows = tuple(
        (
            method.method,
            rule.rule.replace("fixed", "-"),
            *(_number(rule.scores[name].mean) for name in _DETAILS),
            ", ".join(f"{name} {_spread(mean)}" for name, mean in rule.parameters.items()) or "-",
        )
        for method, rule in _rules(study)
    )
    any_scores = study.methods[0].rules[0].scores
    counts = ", ".join(f"{title} {any_scores[name].count}" for name, title in _DETAILS.items())
    notes = (f"Means over videos in which the score is defined: {counts}.",)
    return Table("More scores", ("method", "rule", *_DETAILS.values(), "chosen"), rows, notes)


def video_table(study: Study) -> Table:
    """One row for each video, with FR and FPR of each method under `closest`, or under its only rule."""
    first = [(method, method.rules[0]) for method in study.methods]
    header = ["video", "tracklets", "polyps", "annotated"]
    for method, _ in first:
        header += [f"{method.method} FR", f"{method.method} FPR"]
    rows = []
    for place, video in enumerate(study.videos):
        row = [str(video[name]) for name in ("video", "tracklets", "polyps", "annotated_polyps")]
        for _, rule in first:
            scores = rule.folds[place].scores
            row += [_number(scores.fr), _number(scores.fpr, 4)]
        rows.append(tuple(row))
    title, note = "Each video", "All parameters were fixed."
    if _chosen(study):
        title, note = "Each video, held out", "Parameters chosen on the other videos by the rule `closest`."
    return Table(title, tuple(header), tuple(rows), (note, "FPR is undefined (-) with one polyp."))


def vector_table(study: Study) -> Table:
    """How well the vectors separate polyps, before any grouping."""
    search, pairs, within = study.retrieval, study.reidentification, study.reidentification_within
    rows = (
        ("search over all videos: mAP", _number(search.mean_average_precision, 3), f"{search.queries} queries"),
        ("search over all videos: HR@1", _number(search.hit_rate_1, 3), f"{search.queries} queries"),
        ("search over all videos: HR@5", _number(search.hit_rate_5, 3), f"{search.queries} queries"),
        *(
            row
            for where, scores in (("pairs of all videos", pairs), ("pairs within a video", within))
            for row in (
                (f"{where}: AUROC", _number(scores.auroc, 3), f"{scores.positive_pairs:,} of one polyp"),
                (f"{where}: AUPR", _number(scores.aupr, 3), f"{scores.negative_pairs:,} of two polyps"),
            )
        ),
    )
    left_out = (f"Left out of the search: {search.queries_left_out} with no other tracklet of their polyp.",)
    return Table("The vectors alone", ("score", "value", "over"), rows, left_out if search.queries_left_out else ())


def summary_csv(study: Study) -> str:
    """One row for each method, rule and quantity: mean, std, interval, and over how many videos."""
    rows = [
        [method.method, rule.rule, name, *(getattr(mean, part) for part in _MEAN)]
        for method, rule in _rules(study)
        for name, mean in (
            *rule.scores.items(),
            ("selected_fpr", rule.selected_fpr),
            *((f"chosen_{name}", mean) for name, mean in rule.parameters.items()),
        )
    ]
    return csv_text(["method", "rule", "score", *_MEAN], rows)


def video_csv(study: Study) -> str:
    """One row for each method, rule and video, with all scores and the chosen parameters."""
    counted = ["tracklets", "groups", "polyps", "annotated_polyps"]
    pairs = ["true_positive", "false_positive", "false_negative", "true_negative"]
    chosen = sorted({name for method in study.methods for name in method.grid})
    header = ["method", "rule", "video", *counted, *pairs, *DERIVED, *MEASURED, "selected_fr", "selected_fpr"]
    rows = []
    for method, rule in _rules(study):
        for fold in rule.folds:
            scores = [getattr(fold.scores, name) for name in counted]
            scores += [getattr(fold.scores.pairs, name) for name in pairs]
            scores += [getattr(fold.scores, name) for name in (*DERIVED, *MEASURED)]
            values = [*scores, fold.selected_fr, fold.selected_fpr, fold.converged]
            values += [fold.parameters.get(name, math.nan) for name in chosen]
            rows.append([method.method, rule.rule, fold.video, *values])
    return csv_text([*header, "converged", *chosen], rows)


_MEAN = ("mean", "std", "low", "high", "count", "total")


def _rules(study: Study) -> list[tuple[MethodStudy, RuleStudy]]:
    return [(method, rule) for method in study.methods for rule in method.rules]


def _summary_notes(study: Study) -> tuple[str, ...]:
    defined = study.methods[0].rules[0].scores["fpr"]
    annotated = sum(video["annotated_polyps"] for video in study.videos)
    polyps = sum(video["polyps"] for video in study.videos)
    tracklets = sum(video["tracklets"] for video in study.videos)
    return (
        f"{len(study.videos)} videos, {tracklets:,} tracklets of at least {study.settings['min_frames']} boxes, "
        f"{polyps} polyps that have one, {annotated} annotated.",
        "Mean ± sample standard deviation over videos; the interval is a bootstrap over videos.",
        f"FPR is a mean over the {defined.count} of {defined.total} videos with two polyps or more."
        + (
            f" The target over the videos chosen on is {study.settings['target_fpr']:g} "
            f"(average: {study.settings['fpr_average']}), and 'selected at' is the FPR there."
            if _chosen(study)
            else ""
        ),
    )


def _chosen(study: Study) -> bool:
    """Whether any parameter was chosen on other videos."""
    return any(rule.rule != "fixed" for _, rule in _rules(study))


def _spread(mean: Mean, decimals: int = 2) -> str:
    return f"{_number(mean.mean, decimals)} ± {_number(mean.std, decimals)}"


def _number(value: float, decimals: int = 2) -> str:
    return "-" if math.isnan(value) else f"{value:.{decimals}f}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
