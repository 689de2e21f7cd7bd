"""Scores of one video, against plain calculations."""

import json
import math
from collections import Counter
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polypcount.errors import DataError
from polypcount.evaluation import VideoScores, score_video
from tests.evaluation.test_pairs import Sample, groupings, one_by_one


def entropy(parts: Counter[int] | Counter[tuple[int, int]]) -> float:
    total = sum(parts.values())
    return -sum(size / total * math.log(size / total) for size in parts.values())


def harmonic(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a + b > 0 else 0.0


def expected_adjusted_rand(labels: list[int], truth: list[int]) -> float:
    """From the pairs that chance would put together."""
    pairs = one_by_one(labels, truth)
    tp, fp, fn, tn = asdict(pairs).values()
    every = tp + fp + fn + tn
    chance = (tp + fp) * (tp + fn) / every
    highest = ((tp + fp) + (tp + fn)) / 2
    return 1.0 if highest == chance else (tp - chance) / (highest - chance)


@given(sample=groupings(smallest=2))
def test_scores_equal_the_plain_calculation(sample: Sample) -> None:
    labels, truth = sample
    scores = score_video(labels, truth)
    assert (scores.tracklets, scores.groups, scores.polyps) == (len(labels), len(set(labels)), len(set(truth)))
    assert scores.annotated_polyps == scores.polyps
    assert scores.pairs == one_by_one(labels, truth)
    assert scores.fr == len(set(labels)) / len(set(truth))
    assert scores.count_error == len(set(labels)) - len(set(truth))
    assert scores.adjusted_rand == pytest.approx(expected_adjusted_rand(labels, truth), abs=1e-9)
    of_group, of_polyp = entropy(Counter(labels)), entropy(Counter(truth))
    of_both = entropy(Counter(zip(labels, truth, strict=True)))
    homogeneity = 1 - (of_both - of_group) / of_polyp if of_polyp > 0 else 1.0
    completeness = 1 - (of_both - of_polyp) / of_group if of_group > 0 else 1.0
    assert scores.homogeneity == pytest.approx(homogeneity, abs=1e-9)
    assert scores.completeness == pytest.approx(completeness, abs=1e-9)
    assert scores.v_measure == pytest.approx(harmonic(homogeneity, completeness), abs=1e-9)


@given(sample=groupings(smallest=1))
def test_bcubed_equals_the_plain_calculation(sample: Sample) -> None:
    labels, truth = sample
    everyone = range(len(labels))
    precision, recall = [], []
    for i in everyone:
        group = {j for j in everyone if labels[j] == labels[i]}
        polyp = {j for j in everyone if truth[j] == truth[i]}
        precision.append(len(group & polyp) / len(group))
        recall.append(len(group & polyp) / len(polyp))
    scores = score_video(labels, truth)
    assert scores.bcubed_precision == pytest.approx(sum(precision) / len(labels))
    assert scores.bcubed_recall == pytest.approx(sum(recall) / len(labels))
    assert scores.bcubed_f1 == pytest.approx(harmonic(scores.bcubed_precision, scores.bcubed_recall))


def approximately(scores: VideoScores) -> dict[str, object]:
    """All of it, with room for sums in another order."""
    values = scores.to_dict()
    return {
        name: pytest.approx(value, abs=1e-9) if isinstance(value, float) else value for name, value in values.items()
    }


@given(sample=groupings(), data=st.data())
def test_order_and_names_do_not_matter(sample: Sample, data: st.DataObject) -> None:
    labels, truth = sample
    order = data.draw(st.permutations(range(len(labels))))
    new_group = dict(zip([0, 1, 2, 5, 900], data.draw(st.permutations(range(5))), strict=True))
    renamed = score_video([new_group[labels[i]] for i in order], [2**31 - 1 - truth[i] for i in order])
    assert renamed.to_dict() == approximately(score_video(labels, truth))


@given(sample=groupings(smallest=1))
def test_the_truth_itself_is_perfect(sample: Sample) -> None:
    _, truth = sample
    scores = score_video(truth, truth)
    several = len(set(truth)) > 1
    assert (scores.fr, scores.count_error) == (1, 0)
    assert scores.fpr == 0 if several else math.isnan(scores.fpr)
    assert scores.tpr == 1 or math.isnan(scores.tpr)
    assert scores.precision == 1 or math.isnan(scores.precision)
    assert scores.adjusted_rand == 1 or len(truth) == 1
    assert scores.v_measure == pytest.approx(1)
    assert (scores.bcubed_precision, scores.bcubed_recall, scores.bcubed_f1) == (1, 1, 1)


@given(sample=groupings(smallest=1))
def test_no_clustering_merges_nothing(sample: Sample) -> None:
    _, truth = sample
    scores = score_video(np.arange(len(truth)), truth)
    assert scores.fpr == 0 if len(set(truth)) > 1 else math.isnan(scores.fpr)
    assert scores.fr == len(truth) / len(set(truth))
    assert math.isnan(scores.precision)
    assert scores.bcubed_precision == 1


def test_polyps_without_a_tracklet_count_in_the_scores_over_all() -> None:
    scores = score_video([0, 1, 2], [4, 4, 9], annotated_polyps=5)
    assert (scores.polyps, scores.annotated_polyps) == (2, 5)
    assert (scores.fr, scores.fr_all) == (3 / 2, 3 / 5)
    assert (scores.count_error, scores.count_error_all) == (1, -2)


def test_no_tracklet() -> None:
    scores = score_video([], [], annotated_polyps=3)
    assert (scores.tracklets, scores.groups, scores.polyps, scores.fr_all) == (0, 0, 0, 0)
    assert (scores.count_error, scores.count_error_all) == (0, -3)
    counts = {"tracklets", "groups", "polyps", "annotated_polyps", "pairs", "fr_all", "count_error", "count_error_all"}
    assert {name for name, value in scores.to_dict().items() if value is not None} == counts
    assert math.isnan(score_video([], []).fr_all)


def test_one_tracklet() -> None:
    scores = score_video([3], [8])
    undefined = {name for name, value in scores.to_dict().items() if value is None}
    assert undefined == {"fpr", "tpr", "precision", "adjusted_rand"}
    assert (scores.fr, scores.fr_all, scores.count_error) == (1, 1, 0)
    assert (scores.homogeneity, scores.completeness, scores.v_measure) == (1, 1, 1)
    assert (scores.bcubed_precision, scores.bcubed_recall, scores.bcubed_f1) == (1, 1, 1)


def test_the_dict_is_json_with_every_score() -> None:
    scores = score_video(np.array([0, 0, 1]), np.array([0, 1, 1]), annotated_polyps=int(np.int64(2)))
    values = json.loads(json.dumps(scores.to_dict(), allow_nan=False))
    assert values["pairs"] == {"true_positive": 0, "false_positive": 1, "false_negative": 1, "true_negative": 1}
    properties = {name for name, value in vars(VideoScores).items() if isinstance(value, property)}
    assert set(values) == set(asdict(scores)) | properties
    for name in set(values) - {"pairs"}:
        value = getattr(scores, name)
        assert values[name] == (None if math.isnan(value) else value)


def test_bad_input() -> None:
    with pytest.raises(DataError, match="annotated_polyps must be at least 2"):
        score_video([0, 0], [0, 1], annotated_polyps=1)
    with pytest.raises(DataError, match="annotated_polyps must be at least 0"):
        score_video([], [], annotated_polyps=-1)
    with pytest.raises(DataError, match="truth row 1: the polyp is unknown, found -1; leave such tracklets out"):
        score_video([0, 0], [0, -1])
