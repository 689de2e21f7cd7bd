"""Nested selection, against a plain and slow calculation that runs `leave_one_out` again and again."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polypcount.clustering import (
    Grid,
    GroupingInput,
    Method,
    ProbabilityLinkage,
    TemporalAgglomerative,
    Threshold,
    fit_pair_probability,
)
from polypcount.corpus import Embeddings
from polypcount.errors import DataError
from polypcount.evaluation import (
    Candidate,
    Fold,
    NestedStudy,
    RuleStudy,
    Study,
    default_candidates,
    leave_one_out,
    nested_leave_one_out,
)
from tests.evaluation.embedded import embedded

HUGE: Any = "huge"
COUNTS = [[4, 3], [5], [2, 3, 2], [5, 2], [1, 1, 3]]
CANDIDATES = (
    Candidate("threshold", Threshold(similarity="cosine"), "coarse", False),
    Candidate("probability, apart", None, "coarse", True),
    Candidate("probability", None, Grid({"threshold": (0.2, 0.4, 0.5, 0.6, 0.8)}), False),
    Candidate("relative", Threshold(similarity="minmax-euclidean"), "coarse", False),
    Candidate("linkage, apart", TemporalAgglomerative(), Grid({"threshold": (0.5, 0.7, 0.9)}), True),
)


def together(base: Embeddings, every: int = 3) -> Embeddings:
    """The same with some neighbours of different polyps, or of one, seen in one frame."""
    rows = [row for row in range(0, len(base) - 1, every) if base.video[row] == base.video[row + 1]]
    stop = base.stop_frame.copy()
    stop[rows] = base.start_frame[np.array(rows) + 1] + 10
    return changed(base, stop_frame=stop, together=[[row, row + 1] for row in rows])


def changed(base: Embeddings, **columns: Any) -> Embeddings:
    names = ("videos", "polyps", "video", "start_frame", "stop_frame", "box_count", "polyp", "vectors", "together")
    return Embeddings(**{**{name: getattr(base, name) for name in names}, **columns})


def fitted(others: Embeddings) -> ProbabilityLinkage:
    scenes, truths = [], []
    for place, video in enumerate(others.videos):
        rows = others.of_video(place)
        scenes.append(GroupingInput.of(others.vectors[rows], others.start_frame[rows], duration=video.frame_count))
        truths.append(others.polyp[rows])
    found = fit_pair_probability(scenes, truths)
    return ProbabilityLinkage(intercept=found.intercept, looks=found.looks, time=found.time)


def plain_nested(
    embeddings: Embeddings, target: float, average: Any
) -> dict[str, list[tuple[str, list[tuple[float, float]], Fold]]]:
    """For each rule and video the chosen candidate, the inner FR and FPR of all, and the fold; all written out."""
    score = "fpr_zero_filled" if average == "zero-filled" else "fpr"

    def study(of: Embeddings, method: Method, candidate: Candidate) -> list[RuleStudy]:
        grid, linked = candidate.grid, candidate.cannot_link
        found = leave_one_out(of, method, grid=grid, cannot_link=linked, target_fpr=target, fpr_average=average)
        return list(found.methods[0].rules)

    whole = [one.method and study(embeddings, one.method, one) for one in CANDIDATES]
    found: dict[str, list[tuple[str, list[tuple[float, float]], Fold]]] = {"closest": [], "budget": []}
    for place, video in enumerate(embeddings.videos):
        others = embeddings.select(videos=[other.id for other in embeddings.videos if other is not video])
        methods = [one.method or fitted(others) for one in CANDIDATES]
        inner = [study(others, method, one) for method, one in zip(methods, CANDIDATES, strict=True)]
        for row, rule in enumerate(("closest", "budget")):
            scores = [rules[row].scores for rules in inner]
            rates = [(one["fr"].mean, one[score].mean) for one in scores]
            limit = max(target, min(fpr for _, fpr in rates)) + 1e-9
            allowed = [k for k, (_, fpr) in enumerate(rates) if fpr <= limit]
            best = min(allowed, key=lambda k: (round(rates[k][0], 9), k))
            outer = whole[best] or study(embeddings, methods[best], CANDIDATES[best])
            found[rule].append((CANDIDATES[best].name, rates, outer[row].folds[place]))
    return found


@pytest.mark.parametrize(("seed", "target", "average"), [(0, 0.05, "defined"), (2, 0.1, "zero-filled")])
def test_it_equals_the_plain_calculation(seed: int, target: float, average: Any) -> None:
    embeddings = together(embedded(COUNTS, seed=seed, noise=0.9))
    study = nested_leave_one_out(embeddings, CANDIDATES, target_fpr=target, fpr_average=average)
    assert [rule.rule for rule in study.rules] == ["closest", "budget"]
    plain = plain_nested(embeddings, target, average)
    for rule in study.rules:
        expected = plain[rule.rule]
        assert study.chosen[rule.rule] == tuple(name for name, _, _ in expected)
        for inner, fold, (_, rates, plain_fold) in zip(study.inner[rule.rule], rule.folds, expected, strict=True):
            assert inner.tolist() == [pytest.approx(pair) for pair in rates]
            assert_same_fold(fold, plain_fold)
        assert rule.scores["fr"].mean == pytest.approx(np.mean([fold.scores.fr for _, _, fold in expected]))


def assert_same_fold(mine: Fold, theirs: Fold) -> None:
    assert (mine.video, mine.point, mine.parameters) == (theirs.video, theirs.point, theirs.parameters)
    assert (mine.selected_fr, mine.selected_fpr) == pytest.approx((theirs.selected_fr, theirs.selected_fpr))
    assert mine.labels.tolist() == theirs.labels.tolist()
    assert mine.scores.to_dict() == theirs.scores.to_dict()
    assert mine.converged == theirs.converged


def test_the_case_is_one_in_which_candidates_differ() -> None:
    names = set()
    for seed in range(3):
        study = nested_leave_one_out(together(embedded(COUNTS, seed=seed, noise=0.9)), CANDIDATES, target_fpr=0.1)
        names |= {name for chosen in study.chosen.values() for name in chosen}
    assert len(names) >= 3, "or the tests above compare little"


@pytest.mark.parametrize("place", [0, 4])
def test_with_one_candidate_it_is_leave_one_out(place: int) -> None:
    embeddings = together(embedded(COUNTS, seed=5))
    candidate = CANDIDATES[place]
    assert candidate.method is not None
    nested = nested_leave_one_out(embeddings, [candidate], target_fpr=0.1)
    study: Study = leave_one_out(
        embeddings, candidate.method, grid=candidate.grid, cannot_link=candidate.cannot_link, target_fpr=0.1
    )
    for mine, theirs in zip(nested.rules, study.methods[0].rules, strict=True):
        assert nested.chosen[mine.rule] == (candidate.name,) * len(COUNTS)
        assert mine.rule == theirs.rule
        assert str(mine.scores) == str(theirs.scores)  # as text, since NaN is not equal to itself
        assert (mine.parameters, mine.selected_fpr) == (theirs.parameters, theirs.selected_fpr)
        for fold, other in zip(mine.folds, theirs.folds, strict=True):
            assert_same_fold(fold, other)


def choice(study: NestedStudy, place: int) -> list[object]:
    """All that was decided for a video before it was judged."""
    made: list[object] = [study.probabilities[place]]
    for rule in study.rules:
        fold = rule.folds[place]
        made += [study.chosen[rule.rule][place], study.inner[rule.rule][place].tolist()]
        made += [fold.point, fold.parameters, fold.selected_fr, fold.selected_fpr]
    return made


@pytest.mark.parametrize("place", [0, 1, 4])
def test_a_video_has_no_say_in_what_it_is_judged_by(place: int) -> None:
    base = together(embedded(COUNTS, seed=7, noise=0.9))
    rng = np.random.default_rng(place)
    own = np.flatnonzero(base.video == place)
    vectors, polyp = base.vectors.copy(), base.polyp.copy()
    vectors[own] = 50 * rng.normal(size=vectors[own].shape)
    polyp[own] = polyp[own][::-1]
    elsewhere = base.together[base.video[base.together[:, 0]] != place]
    before = nested_leave_one_out(base, CANDIDATES, target_fpr=0.1)
    others = [other for other in range(len(COUNTS)) if other != place]
    for columns in (
        {"polyp": polyp},
        {"vectors": vectors, "polyp": polyp, "together": elsewhere},
    ):
        after = nested_leave_one_out(changed(base, **columns), CANDIDATES, target_fpr=0.1)
        assert choice(after, place) == choice(before, place)
    assert any(choice(after, other) != choice(before, other) for other in others), "but in that of others it has"


def without_time(study: NestedStudy) -> dict[str, Any]:
    told = study.to_dict()
    told["provenance"].pop("created")
    return told


def test_same_input_same_study_whatever_the_threads_and_what_is_kept(tmp_path: Path) -> None:
    embeddings = together(embedded(COUNTS, seed=8))
    first = without_time(nested_leave_one_out(embeddings, CANDIDATES, threads=1))
    assert without_time(nested_leave_one_out(embeddings, CANDIDATES, threads=3, folder=tmp_path)) == first
    kept = sorted(tmp_path.iterdir())
    assert {file.name.split("-")[0] for file in kept} == {"threshold", "temporal"}
    times = [file.stat().st_mtime_ns for file in kept]
    assert without_time(nested_leave_one_out(embeddings, CANDIDATES, folder=tmp_path)) == first
    assert [file.stat().st_mtime_ns for file in sorted(tmp_path.iterdir())] == times, "what was kept was used"


def test_it_can_be_written_as_json() -> None:
    study = nested_leave_one_out(embedded([*COUNTS, [2]], seed=1), CANDIDATES[:2])
    told = json.loads(json.dumps(study.to_dict(), allow_nan=False))
    assert [one["name"] for one in told["settings"]["candidates"]] == ["threshold", "probability, apart"]
    assert told["settings"]["candidates"][1]["method"] == "probability-linkage"
    assert len(told["probabilities"]) == 6
    for rule, plain in zip(study.rules, told["rules"], strict=True):
        assert tuple(fold["chosen"] for fold in plain["folds"]) == study.chosen[rule.rule]
        fold = plain["folds"][2]
        inner = [list(fold["inner"][name].values()) for name in ("threshold", "probability, apart")]
        assert inner == study.inner[rule.rule][2].tolist()
        assert fold["scores"]["fr"] == rule.folds[2].scores.fr
    assert told["embeddings"]["encoder"] == "made up"


def test_of_equal_candidates_the_first_is_chosen_and_parameters_are_averaged_where_they_mean_the_same() -> None:
    twins = [Candidate(name, Threshold(), "coarse", False) for name in ("one", "two")]
    study = nested_leave_one_out(embedded(COUNTS, seed=2), twins)
    assert set(study.chosen["closest"]) | set(study.chosen["budget"]) == {"one"}
    assert list(study.rules[0].parameters) == ["threshold"]
    mixed = nested_leave_one_out(together(embedded(COUNTS, seed=1, noise=0.9)), CANDIDATES, target_fpr=0.2)
    for rule in mixed.rules:
        assert bool(rule.parameters) == (len(set(mixed.chosen[rule.rule])) == 1)


def test_videos_without_tracklets_are_scored_and_have_no_say() -> None:
    base = together(embedded(COUNTS, seed=4))
    counts = np.where(base.video == 1, 10, base.box_count)
    study = nested_leave_one_out(changed(base, box_count=counts), CANDIDATES)
    assert study.rules[0].folds[1].scores.tracklets == 0
    assert study.rules[0].scores["fr"].count == 4
    assert math.isnan(study.rules[0].folds[1].scores.fr)
    assert np.isfinite(study.inner["budget"]).all()


def test_the_default_candidates_run_and_progress_reaches_the_end() -> None:
    told: list[tuple[int, int]] = []
    candidates = default_candidates()
    embeddings = together(embedded(COUNTS, seed=6))
    study = nested_leave_one_out(embeddings, candidates, progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1] == 5 * 2 * (275 + 275 + 525 + 5 * 101)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert [candidate.cannot_link for candidate in candidates] == [True, False] * 4
    linked = {candidate.name for candidate in candidates if candidate.cannot_link}
    for rule in study.rules:
        for place, (fold, name) in enumerate(zip(rule.folds, study.chosen[rule.rule], strict=True)):
            first = embeddings.of_video(place).start
            for i, j in embeddings.together[embeddings.video[embeddings.together[:, 0]] == place] - first:
                assert name not in linked or fold.labels[i] != fold.labels[j]


@pytest.mark.parametrize(
    ("counts", "candidates", "options", "message"),
    [
        (COUNTS, [], {}, "no candidate"),
        (COUNTS, [CANDIDATES[0], CANDIDATES[0]], {}, "found threshold, threshold"),
        (COUNTS, [Candidate("x", None, HUGE, True)], {}, "grid must be one of paper, coarse, fine, found 'huge'"),
        (COUNTS, [Candidate("x", None, Grid({"alpha": (1,)}), True)], {}, "probability-linkage has no parameter alpha"),
        (COUNTS, CANDIDATES, {"target_fpr": 0}, "target FPR must be above 0"),
        (COUNTS, CANDIDATES, {"fpr_average": "all"}, "fpr_average must be one of"),
        ([[3, 1], [2, 2], [4]], CANDIDATES, {}, "takes 3 videos with tracklets of two polyps, found 2"),
        ([[3, 1], [2]], CANDIDATES, {"fpr_average": "zero-filled"}, "tracklets of a polyp, found 2"),
        ([[1, 1], [1, 1], [1, 1]], CANDIDATES, {}, "found 0 and 2"),
    ],
)
def test_bad_input_gives_one_clear_line(
    counts: list[list[int]], candidates: list[Candidate], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message) as problem:
        nested_leave_one_out(embedded(counts), candidates, **options)
    assert "\n" not in str(problem.value)
