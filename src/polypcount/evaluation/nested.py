"""Leave one video out, and choose the parameters and the method on the others."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polypcount.clustering import Grid, Method, PairProbability, ProbabilityLinkage, fit_pair_probability
from polypcount.corpus import Embeddings, Provenance
from polypcount.errors import DataError
from polypcount.evaluation.candidates import Candidate
from polypcount.evaluation.folds import Means, Swept, rule_study
from polypcount.evaluation.leave_one_out import parts_of
from polypcount.evaluation.pairs import Rates
from polypcount.evaluation.selection import RULES, TIE, FprAverage, check_target, choose, lowest_of
from polypcount.evaluation.study import Fold, RuleStudy, defined, fold_values
from polypcount.evaluation.sweeps import sweep_videos
from polypcount.evaluation.videos import StudyVideo, kept_in_study, refuse_too_few, study_videos
from polypcount.progress import Progress, no_progress


@dataclass(frozen=True, eq=False)
class NestedStudy:
    """The result of a study in which the method is chosen on other videos too.

    Attributes:
        settings: Target FPR, how FPR is averaged, shortest tracklet, and the candidates with their grids.
        rules: The folds of each rule and their means. `parameters` is empty where folds chose different candidates,
            since their parameters cannot be compared.
        chosen: For each rule, the name of the candidate of each fold.
        inner: For each rule float64[folds, candidates, 2], the FR and FPR by which the candidate was chosen.
        probabilities: For each fold the coefficients of `ProbabilityLinkage`; empty where no candidate has any.
        embeddings_hash: Content hash of the embeddings.
        encoder: Fingerprint of the encoder that made them.
        provenance: How the study was made.
    """

    settings: Mapping[str, Any]
    rules: tuple[RuleStudy, ...]
    chosen: Mapping[str, tuple[str, ...]]
    inner: Mapping[str, Rates]
    probabilities: tuple[PairProbability, ...]
    embeddings_hash: str
    encoder: str
    provenance: Provenance

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON values; undefined is None."""
        names = [candidate["name"] for candidate in self.settings["candidates"]]
        return defined(
            {
                "settings": self.settings,
                "embeddings": {"content_hash": self.embeddings_hash, "encoder": self.encoder},
                "probabilities": [asdict(probability) for probability in self.probabilities],
                "rules": [
                    {
                        "rule": rule.rule,
                        "scores": {name: asdict(mean) for name, mean in rule.scores.items()},
                        "parameters": {name: asdict(mean) for name, mean in rule.parameters.items()},
                        "selected_fpr": asdict(rule.selected_fpr),
                        "folds": [
                            {
                                "chosen": chosen,
                                "inner": {
                                    name: {"fr": fr, "fpr": fpr} for name, (fr, fpr) in zip(names, inner, strict=True)
                                },
                                **fold_values(fold),
                            }
                            for fold, chosen, inner in zip(
                                rule.folds, self.chosen[rule.rule], self.inner[rule.rule].tolist(), strict=True
                            )
                        ],
                    }
                    for rule in self.rules
                ],
                "provenance": self.provenance.to_dict(),
            }
        )


def nested_leave_one_out(
    embeddings: Embeddings,
    candidates: Sequence[Candidate],
    *,
    target_fpr: float = 0.05,
    min_frames: int = 30,
    drop_unlabelled: bool = False,
    fpr_average: FprAverage = "defined",
    folder: Path | str | None = None,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> NestedStudy:
    """Judge on each video what the other videos choose: a candidate, and its parameters.

    For each video v, under each rule of `selection.choose`:

    1. Every candidate goes through a leave-one-out over the other videos: for each w of them, a point is chosen on all
       videos but v and w, and judged on w. Means over w are the candidate's inner FR and FPR.
    2. Of the candidates whose inner FPR is at most the target, or equal to the lowest where none is, the one with the
       lowest inner FR is chosen; of equals the first.
    3. Its point is chosen on all videos but v, and judged on v.

    Nothing of v takes part in 1, 2 or the choice in 3. The coefficients of `ProbabilityLinkage` are fitted once for the
    fold, on all videos but v. So in 1 they were fitted on w too. This favours that candidate a little when candidates
    are compared, but not when v is judged.

    Args:
        embeddings: Tracklets with known polyps.
        candidates: Ways of grouping to choose from.
        target_fpr: False positive rate to work at.
        min_frames: Tracklets with fewer boxes are left out.
        drop_unlabelled: Leave out tracklets without a known polyp.
        fpr_average: How the FPR of several videos becomes one, for points and for candidates.
        folder: Where sweeps are kept, except those of `ProbabilityLinkage`, which are many and quickly made.
        threads: One for each core by default.
        progress: Called with grid points over all videos and candidates.
    """
    check_target(target_fpr, fpr_average)
    names = [candidate.name for candidate in candidates]
    if not names or len(set(names)) < len(names):
        raise DataError(f"candidates need names, each a different one, found {', '.join(names) or 'no candidate'}")
    grids = [candidate.points() for candidate in candidates]
    studied = kept_in_study(embeddings, min_frames=min_frames, drop_unlabelled=drop_unlabelled)
    videos = {linked: study_videos(studied, cannot_link=linked) for linked in (True, False)}
    refuse_too_few(videos[False], 3, fpr_average)
    count = len(videos[False])
    fitted = any(candidate.method is None for candidate in candidates)
    probabilities = tuple(_fit_without(videos[False], row) for row in range(count)) if fitted else ()
    methods = [
        [candidate.method] if candidate.method else [ProbabilityLinkage(**asdict(one)) for one in probabilities]
        for candidate in candidates
    ]
    runs = [(method, len(grid)) for same, grid in zip(methods, grids, strict=True) for method in same]
    work = [points * count * method.point_cost for method, points in runs]
    parts = iter(parts_of(progress, work, sum(points for _, points in runs) * count))

    def sweep(candidate: Candidate, method: Method, grid: Grid) -> Swept:
        linked = videos[candidate.cannot_link]
        keep = Path(folder) if folder and candidate.method else None
        sweeps = sweep_videos(method, linked, grid, folder=keep, threads=threads, progress=next(parts))
        return Swept(method, grid, linked, sweeps, fpr_average)

    swept = [  # of each candidate for each fold; without coefficients to fit, all folds share one
        [sweep(candidate, method, grid) for method in same] * (count // len(same))
        for candidate, grid, same in zip(candidates, grids, methods, strict=True)
    ]

    folds: dict[str, list[Fold]] = {rule: [] for rule in RULES}
    best: dict[str, list[int]] = {rule: [] for rule in RULES}
    inner: dict[str, list[Rates]] = {rule: [] for rule in RULES}
    for row in range(count):
        by_candidate = np.array([_inner(of_fold[row].means, row, target_fpr) for of_fold in swept])
        for rule, rates in zip(RULES, by_candidate.swapaxes(0, 1), strict=True):
            inner[rule].append(rates)
            best[rule].append(_best(rates[:, 0], rates[:, 1], target_fpr))
            winner = swept[best[rule][-1]][row]
            fr, fpr = winner.means.without(row)
            point = choose(fr, fpr, target_fpr, rule)
            folds[rule].append(winner.fold(row, point, (float(fr[point]), float(fpr[point]))))
    options = {
        "target_fpr": target_fpr,
        "min_frames": min_frames,
        "drop_unlabelled": drop_unlabelled,
        "fpr_average": fpr_average,
    }
    return NestedStudy(
        settings={**options, "candidates": [candidate.to_dict() for candidate in candidates]},
        rules=tuple(
            rule_study(rule, folds[rule], grids[best[rule][0]].axes if len(set(best[rule])) == 1 else ())
            for rule in RULES
        ),
        chosen={rule: tuple(names[row] for row in rows) for rule, rows in best.items()},
        inner={rule: np.array(rates) for rule, rates in inner.items()},
        probabilities=probabilities,
        embeddings_hash=embeddings.content_hash,
        encoder=embeddings.encoder,
        provenance=Provenance.now(
            "nested study",
            parameters={**options, "candidates": names},
            parents=(embeddings.provenance,),
        ),
    )


def _inner(means: Means, left_out: int, target_fpr: float) -> list[tuple[float, float]]:
    """Mean FR and FPR of a leave-one-out over all videos but one, for each rule."""
    others = [row for row in range(len(means.fr)) if row != left_out]
    rates = [means.without(left_out, row) for row in others]
    return [means.at(others, [choose(*pair, target_fpr, rule) for pair in rates]) for rule in RULES]


def _best(fr: Rates, fpr: Rates, target_fpr: float) -> int:
    """The candidate with the lowest FR [candidates] among those within the target FPR, or else with the lowest FPR."""
    within = np.flatnonzero(fpr <= max(target_fpr, fpr.min()) + TIE)
    return int(lowest_of(within, fr)[0])


def _fit_without(videos: Sequence[StudyVideo], left_out: int) -> PairProbability:
    others = [video for row, video in enumerate(videos) if row != left_out]
    return fit_pair_probability([video.tracklets for video in others], [video.truth for video in others])
