"""Leave one video out, and choose on the others not only the parameters but the method too."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering import Grid, PairProbability, ProbabilityLinkage, fit_pair_probability
from polypcount.corpus import Embeddings, Provenance
from polypcount.errors import DataError
from polypcount.evaluation.candidates import Candidate, checked_grids, default_candidates, told
from polypcount.evaluation.folds import FprAverage, Means, Swept, check_average, rule_study
from polypcount.evaluation.leave_one_out import parts_of
from polypcount.evaluation.scenes import StudyVideo, kept_in_study, study_videos
from polypcount.evaluation.selection import RULES, TIE, check_target, choose, lowest_of
from polypcount.evaluation.study import Fold, RuleStudy, defined, fold_values
from polypcount.evaluation.sweeps import sweep_videos
from polypcount.progress import Progress, no_progress

__all__ = ["Candidate", "NestedStudy", "default_candidates", "nested_leave_one_out"]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NestedStudy:
    """What came out where the method was chosen on other videos too.

    settings: target FPR, how FPR is averaged, shortest tracklet, and the candidates with their grids.
    rules: the folds of each rule and their means. `parameters` has means where all folds chose one candidate, and is
        empty where they did not, since a threshold of one is not that of another.
    chosen: for each rule, the name of the candidate of each fold.
    inner: for each rule float64[folds, candidates, 2], the FR and FPR by which the candidate was chosen.
    probabilities: for each fold the coefficients of `ProbabilityLinkage`; empty where no candidate has any.
    """

    settings: Mapping[str, Any]
    rules: tuple[RuleStudy, ...]
    chosen: Mapping[str, tuple[str, ...]]
    inner: Mapping[str, Floats]
    probabilities: tuple[PairProbability, ...]
    embeddings_hash: str
    encoder: str
    provenance: Provenance

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON values; undefined is None."""
        names = [candidate["name"] for candidate in self.settings["candidates"]]
        plain = {
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
        return defined(plain)  # type: ignore[no-any-return]


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
    2. Of the candidates whose inner FPR is at most the target, or at most the lowest of all where none keeps to it, the
       one with the lowest inner FR is chosen; of equals the first.
    3. Its point is chosen on all videos but v, and judged on v.

    Nothing of v takes part in 1, 2 or the choice in 3. The coefficients of `ProbabilityLinkage` are fitted on all
    videos but v, once for the fold. So in 1 they have seen w, which makes that candidate look a little better than it
    is when candidates are compared, but not when v is judged.

    fpr_average: how the FPR of several videos becomes one, for points and for candidates; see `leave_one_out`, which
        has the other options too.
    folder: where sweeps are kept; not those of `ProbabilityLinkage`, which are many and quickly made.
    """
    check_target(target_fpr)
    check_average(fpr_average)
    grids = checked_grids(candidates)
    kept = kept_in_study(embeddings, min_frames=min_frames, drop_unlabelled=drop_unlabelled)
    videos = {linked: study_videos(kept, cannot_link=linked) for linked in (True, False)}
    _refuse_unsuitable(videos[False], fpr_average)
    places = range(len(videos[False]))
    fitted = any(candidate.method is None for candidate in candidates)
    probabilities = tuple(_fit_without(videos[False], place) for place in places) if fitted else ()
    swept = _sweep(candidates, grids, videos, probabilities, fpr_average, folder, threads, progress)

    folds: dict[str, list[Fold]] = {rule: [] for rule in RULES}
    best: dict[str, list[int]] = {rule: [] for rule in RULES}
    inner: dict[str, list[Floats]] = {rule: [] for rule in RULES}
    for place in places:
        by_candidate = np.array([_inner(fold_of[place].means, place, target_fpr) for fold_of in swept])
        for rule, rates in zip(RULES, by_candidate.swapaxes(0, 1), strict=True):
            inner[rule].append(rates)
            best[rule].append(_best(rates[:, 0], rates[:, 1], target_fpr))
            winner = swept[best[rule][-1]][place]
            fr, fpr = winner.means.without(place)
            point = choose(fr, fpr, target_fpr, rule)
            folds[rule].append(winner.fold(place, point, (float(fr[point]), float(fpr[point]))))
    options = {
        "target_fpr": target_fpr,
        "min_frames": min_frames,
        "drop_unlabelled": drop_unlabelled,
        "fpr_average": fpr_average,
    }
    return NestedStudy(
        settings={**options, "candidates": [told(one, grid) for one, grid in zip(candidates, grids, strict=True)]},
        rules=tuple(
            rule_study(rule, folds[rule], grids[best[rule][0]].axes if len(set(best[rule])) == 1 else ())
            for rule in RULES
        ),
        chosen={rule: tuple(candidates[row].name for row in rows) for rule, rows in best.items()},
        inner={rule: np.array(rates) for rule, rates in inner.items()},
        probabilities=probabilities,
        embeddings_hash=embeddings.content_hash,
        encoder=embeddings.encoder,
        provenance=Provenance.now(
            "nested study",
            parameters={**options, "candidates": [candidate.name for candidate in candidates]},
            parents=(embeddings.provenance,),
        ),
    )


def _inner(means: Means, left_out: int, target_fpr: float) -> list[tuple[float, float]]:
    """Mean FR and FPR of a leave-one-out over all videos but one, for each rule."""
    others = [place for place in range(len(means.fr)) if place != left_out]
    seen = [means.without(left_out, place) for place in others]
    return [means.at(others, [choose(*rates, target_fpr, rule) for rates in seen]) for rule in RULES]


def _best(fr: Floats, fpr: Floats, target_fpr: float) -> int:
    """The candidate with the lowest FR among those within the target FPR, or with the lowest FPR; the first of equals.

    fr, fpr: [candidates].
    """
    within = np.flatnonzero(fpr <= max(target_fpr, fpr.min()) + TIE)
    return int(lowest_of(within, fr)[0])


def _sweep(
    candidates: Sequence[Candidate],
    grids: Sequence[Grid],
    videos: Mapping[bool, Sequence[StudyVideo]],
    probabilities: Sequence[PairProbability],
    fpr_average: FprAverage,
    folder: Path | str | None,
    threads: int | None,
    progress: Progress,
) -> list[list[Swept]]:
    """What each candidate makes of all videos, as each fold sees it; without coefficients to fit, all see the same."""
    count = len(videos[False])
    methods = [
        [candidate.method] if candidate.method else [ProbabilityLinkage(**asdict(one)) for one in probabilities]
        for candidate in candidates
    ]
    runs = [(method, len(grid)) for same, grid in zip(methods, grids, strict=True) for method in same]
    work = [points * count * method.point_cost for method, points in runs]
    parts = iter(parts_of(progress, work, sum(points for _, points in runs) * count))
    found = []
    for candidate, grid, same in zip(candidates, grids, methods, strict=True):
        seen = videos[candidate.cannot_link]
        keep = Path(folder) if folder is not None and candidate.method else None
        each = [
            Swept(
                method,
                grid,
                seen,
                sweep_videos(method, seen, grid, folder=keep, threads=threads, progress=next(parts)),
                fpr_average,
            )
            for method in same
        ]
        found.append(each * count if candidate.method else each)
    return found


def _fit_without(videos: Sequence[StudyVideo], left_out: int) -> PairProbability:
    others = [video for place, video in enumerate(videos) if place != left_out]
    return fit_pair_probability([video.scene for video in others], [video.truth for video in others])


def _refuse_unsuitable(videos: Sequence[StudyVideo], fpr_average: FprAverage) -> None:
    """Raise where, without two videos, no point could be chosen."""
    fewest = 1 if fpr_average == "zero-filled" else 2
    suitable = sum(video.polyps >= fewest for video in videos)
    if suitable < 3:
        what = "a polyp" if fewest == 1 else "two polyps"
        raise DataError(
            f"choosing a method on other videos takes three videos with tracklets of {what}, found {suitable}: "
            "add videos, or study one method (leave_one_out)"
        )
