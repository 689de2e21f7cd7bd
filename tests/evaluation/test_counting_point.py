"""The point at which recordings are counted, against a plain search."""

import dataclasses

import numpy as np
import pytest

from polypcount.clustering import Grid, ProbabilityLinkage, Scene, TemporalAgglomerative, fit_pair_probability
from polypcount.corpus import Embeddings
from polypcount.errors import DataError
from polypcount.evaluation import counting_point
from polypcount.evaluation.scenes import StudyVideo, study_videos

from .embedded import embedded

COUNTS = [[3, 4], [5], [2, 3, 4], [6, 2], [4, 4], [2, 2, 2], [7], [3, 3], [1, 5], [4, 2], [2, 6]]
GRID = Grid({"alpha": (0.6, 1.0), "threshold": tuple(np.linspace(0.3, 0.95, 14).round(3).tolist())})
METHOD = TemporalAgglomerative(similarity="cosine", gamma=5.0)


def videos_of(vectors: Embeddings) -> list[StudyVideo]:
    return list(study_videos(vectors, cannot_link=True))


def joined(groups: np.ndarray, truth: np.ndarray) -> float:
    """Share of pairs of two polyps that are in one group; NaN where there is no such pair."""
    pairs = [(i, j) for i in range(len(truth)) for j in range(i) if truth[i] != truth[j]]
    return float(np.mean([groups[i] == groups[j] for i, j in pairs])) if pairs else float("nan")


@pytest.mark.parametrize("most_fpr", [0.05, 0.2, 1.0])
def test_it_is_the_best_of_all_points_within_the_limit(most_fpr: float) -> None:
    vectors = embedded(COUNTS, seed=5)
    tried: list[tuple[float, float, dict[str, float], list[int]]] = []
    for index in range(len(GRID)):
        method = TemporalAgglomerative(**{**METHOD.get_params(), **GRID.point(index)})
        wrong, fpr = [], []
        for video in videos_of(vectors):
            labels = method.group(video.scene).labels
            wrong.append(abs(len(np.unique(labels)) - video.polyps))
            fpr.append(joined(labels, video.truth))
        tried.append((float(np.mean(wrong)), float(np.nanmean(fpr)), GRID.point(index), wrong))
    allowed = [one for one in tried if one[1] <= most_fpr]
    best = min(allowed, key=lambda one: (round(one[0], 9), one[1]))
    found = counting_point([vectors], "a test", method=METHOD, grid=GRID, most_fpr=most_fpr)
    assert {name: found["parameters"][name] for name in GRID.axes} == best[2]
    assert found["measured"]["selection_mean_absolute_error"] == pytest.approx(best[0])
    assert found["measured"]["selection_fpr"] == pytest.approx(best[1])
    assert found["measured"]["selection_exact"] == pytest.approx(np.mean(np.array(best[3]) == 0))
    # The right value of each video: least wrong at the same alpha, nearest to the chosen threshold.
    expected = []
    same_alpha = [one for one in tried if one[2]["alpha"] == best[2]["alpha"]]
    for place in range(len(COUNTS)):
        least = min(one[3][place] for one in same_alpha)
        values = [one[2]["threshold"] for one in same_alpha if one[3][place] == least]
        expected.append(min(values, key=lambda value: abs(value - best[2]["threshold"])))
    assert found["values"] == sorted(expected)
    assert found["varied"] == "threshold"


def test_without_a_method_probabilities_are_fitted_on_the_same_videos() -> None:
    vectors = embedded(COUNTS, seed=5)
    found = counting_point([vectors], "a test")
    scenes: list[Scene] = [video.scene for video in videos_of(vectors)]
    expected = fit_pair_probability(scenes, [video.truth for video in videos_of(vectors)])
    assert found["method"] == ProbabilityLinkage.name
    assert found["parameters"]["looks"] == pytest.approx(expected.looks)
    assert found["parameters"]["time"] == pytest.approx(expected.time)


def test_what_cannot_be_chosen_is_one_line() -> None:
    vectors = embedded(COUNTS, seed=5)
    with pytest.raises(DataError, match="at least 10 procedures, found 4"):
        counting_point([embedded(COUNTS[:4], seed=5)], "a test")
    with pytest.raises(DataError, match="different encoders"):
        counting_point([vectors, dataclasses.replace(vectors, encoder="other")], "a test")
    with pytest.raises(DataError, match="two polyps"):
        counting_point([embedded([[3]] * 12, seed=5)], "a test", method=METHOD, grid=GRID)
    narrow = Grid({"alpha": (1.0,), "threshold": (0.0,)})
    with pytest.raises(DataError, match="no point of the grid"):
        counting_point([vectors], "a test", method=METHOD, grid=narrow, most_fpr=0.001)
