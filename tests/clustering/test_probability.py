"""The probability that two tracklets are one polyp, against the written likelihood, and groups by it."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering

from polypcount.clustering import (
    METHODS,
    Grid,
    GroupingInput,
    PairProbability,
    ProbabilityLinkage,
    fit_pair_probability,
    sweep,
)
from polypcount.clustering.probability import L2
from polypcount.errors import DataError
from tests.clustering.inputs import partition, polyps_in_time
from tests.clustering.test_constraints import constrained

SEEDS = st.integers(0, 10_000)
FITTED = {"intercept": 0.4, "looks": 4.0, "time": -0.8}


def plain_features(tracklets: GroupingInput, i: int, j: int) -> tuple[float, float]:
    """Cosine, and log1p of the hundredths of the video that lie between."""
    a, b = tracklets.vectors[i].tolist(), tracklets.vectors[j].tolist()
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    assert tracklets.positions is not None
    gap = abs(float(tracklets.positions[i]) - float(tracklets.positions[j])) / tracklets.duration
    return dot / (math.hypot(*a) * math.hypot(*b)), math.log(1 + 100 * gap)


def plain_loss(numbers: NDArray[np.float64], inputs: list[GroupingInput], truths: list[list[int]]) -> float:
    """What the fit minimises, pair by pair; with a fourth number, that of the tracklets is used."""
    intercept, looks, time, number = map(float, [*numbers, 0.0][:4])
    means = []
    for tracklets, truth in zip(inputs, truths, strict=True):
        losses = []
        for i, j in combinations(range(len(truth)), 2):
            if truth[i] >= 0 and truth[j] >= 0:
                cosine, gap = plain_features(tracklets, i, j)
                score = intercept + looks * cosine + time * gap + number * math.log(len(truth))
                losses.append(math.log1p(math.exp(-score if truth[i] == truth[j] else score)))
        if losses:
            means.append(sum(losses) / len(losses))
    return sum(means) / len(means) + L2 / 2 * (looks**2 + time**2 + number**2)


def known(tracklets: GroupingInput) -> list[int]:
    assert tracklets.truth is not None
    return [int(polyp) for polyp in tracklets.truth]


def videos(seed: int) -> tuple[list[GroupingInput], list[list[int]]]:
    """Videos of different lengths, one with one polyp, one with one tracklet, and some tracklets of unknown polyps."""
    sizes = [(12, 3), (5, 2), (7, 1), (1, 1), (9, 4)]
    inputs = [polyps_in_time(count, seed + k, polyps, noise=1.5) for k, (count, polyps) in enumerate(sizes)]
    frames = inputs[0].positions
    assert frames is not None
    inputs[0] = GroupingInput.of(inputs[0].vectors, frames * 5000, truth=inputs[0].truth, duration=5000)
    truths = [known(tracklets) for tracklets in inputs]
    truths[0][4] = truths[4][0] = truths[4][7] = -1
    return inputs, truths


@pytest.mark.parametrize("seed", [0, 10, 20])
def test_the_fit_minimises_the_written_loss(seed: int) -> None:
    inputs, truths = videos(seed)
    found = fit_pair_probability(inputs, truths)
    best = minimize(plain_loss, np.zeros(3), (inputs, truths), method="BFGS", options={"gtol": 1e-7})
    assert [found.intercept, found.looks, found.time] == pytest.approx(best.x.tolist(), rel=1e-3, abs=1e-4)
    assert fit_pair_probability(inputs, truths) == found
    more = fit_pair_probability(inputs, truths, number=True)
    best = minimize(plain_loss, np.zeros(4), (inputs, truths), method="BFGS", options={"gtol": 1e-7})
    assert [more.intercept, more.looks, more.time, more.number] == pytest.approx(best.x.tolist(), rel=1e-3, abs=1e-3)


def test_every_video_says_as_much_and_the_mean_is_right() -> None:
    inputs, truths = videos(3)
    found = fit_pair_probability(inputs, truths)
    # The intercept is free, so over videos of equal weight the mean of P is the mean share of pairs of one polyp.
    shares, means = [], []
    for tracklets, truth in zip(inputs, truths, strict=True):
        pairs = [(i, j) for i, j in combinations(range(len(truth)), 2) if truth[i] >= 0 and truth[j] >= 0]
        if pairs:
            shares.append(np.mean([truth[i] == truth[j] for i, j in pairs]))
            means.append(np.mean([found.probabilities(tracklets)[i, j] for i, j in pairs]))
    assert np.mean(means) == pytest.approx(np.mean(shares), abs=1e-6)
    # A video that is there twice weighs twice; with all there twice, nothing changes.
    twice = fit_pair_probability(inputs * 2, truths * 2)
    assert twice.looks == pytest.approx(found.looks, rel=1e-5)
    assert fit_pair_probability([*inputs, inputs[1]], [*truths, truths[1]]).looks != pytest.approx(
        found.looks, rel=1e-3
    )


def test_probabilities_are_the_formula() -> None:
    tracklets = polyps_in_time(8, 5)
    found = PairProbability(**FITTED).probabilities(tracklets)
    crowded = PairProbability(**FITTED, number=0.5).probabilities(tracklets)
    assert found.dtype == np.float64
    for i in range(8):
        assert found[i, i] == 1
        for j in range(8):
            if i != j:
                cosine, gap = plain_features(tracklets, i, j)
                assert found[i, j] == pytest.approx(1 / (1 + math.exp(-(0.4 + 4 * cosine - 0.8 * gap))))
                score = 0.4 + 4 * cosine - 0.8 * gap + 0.5 * math.log(8)
                assert crowded[i, j] == pytest.approx(1 / (1 + math.exp(-score)))
    assert PairProbability(**FITTED).probabilities(GroupingInput.of(np.zeros((0, 3)), [])).shape == (0, 0)
    assert PairProbability(**FITTED).probabilities(GroupingInput.of(np.ones((1, 3)), [0.3])).tolist() == [[1]]
    zeros = PairProbability(**FITTED).probabilities(GroupingInput.of(np.zeros((2, 3)), [0.5, 0.5]))
    assert zeros[0, 1] == pytest.approx(1 / (1 + math.exp(-0.4))), "a zero vector has the cosine 0 with every other"


def test_pairs_that_can_be_told_apart_without_a_mistake_have_finite_coefficients() -> None:
    tracklets = GroupingInput.of([[1, 0], [1, 0], [0, 1], [0, 1]], [0.1, 0.2, 0.3, 0.4])
    found = fit_pair_probability([tracklets], [[0, 0, 1, 1]])
    same = found.probabilities(tracklets)
    assert same[0, 1] > 0.9 > 0.1 > same[0, 2]
    assert 0 < found.looks < 100


@pytest.mark.parametrize(
    ("inputs", "truths", "message"),
    [
        ([], [], "found 0 and 0"),
        ([polyps_in_time(1, 0)], [[0]], "found 0 and 0"),
        ([polyps_in_time(3, 0)], [[5, 5, 5]], "found 3 and 0: add videos"),
        ([polyps_in_time(3, 0), polyps_in_time(2, 1)], [[0, 1, 2], [3, 4]], "found 0 and 4"),
        ([polyps_in_time(3, 0)], [[0, -1, -1]], "found 0 and 0"),
        ([polyps_in_time(3, 0)], [], "the polyps of each of the 1 videos, found those of 0"),
        ([polyps_in_time(3, 0)], [[0, 1]], r"one polyp for each of 3 tracklets, found \[2\]"),
        ([GroupingInput.of(np.eye(3))], [[0, 0, 1]], "give the positions of the tracklets"),
    ],
)
def test_what_cannot_be_learnt_from_gives_one_clear_line(
    inputs: list[GroupingInput], truths: list[list[int]], message: str
) -> None:
    with pytest.raises(DataError, match=message) as problem:
        fit_pair_probability(inputs, truths)
    assert "\n" not in str(problem.value)


def test_bad_coefficients() -> None:
    with pytest.raises(DataError, match="pair probability: looks must be a finite number, found nan"):
        PairProbability(0, math.nan, 0)
    with pytest.raises(DataError, match="time must be a finite number, found inf"):
        ProbabilityLinkage(intercept=0, looks=0, time=math.inf).group(polyps_in_time(3, 0))
    with pytest.raises(DataError, match="probability-linkage: threshold must be a number from 0 to 1, found 2"):
        ProbabilityLinkage(2, **FITTED).group(polyps_in_time(3, 0))


@given(seed=SEEDS, count=st.integers(2, 25), threshold=st.floats(0, 1))
@settings(max_examples=60)
def test_linkage_is_scikit_learns_on_the_probabilities(seed: int, count: int, threshold: float) -> None:
    tracklets = polyps_in_time(count, seed)
    theirs = AgglomerativeClustering(
        n_clusters=None, distance_threshold=1 - threshold, metric="precomputed", linkage="average"
    ).fit_predict(1 - PairProbability(**FITTED).probabilities(tracklets))
    assert partition(ProbabilityLinkage(threshold, **FITTED).group(tracklets).labels) == partition(theirs)


@settings(max_examples=60)
@given(tracklets=constrained())
def test_no_constraint_is_ever_broken(tracklets: GroupingInput) -> None:
    method = ProbabilityLinkage(**FITTED)
    grid = method.grid("coarse")
    labels = sweep(method, tracklets, grid).labels
    for i, j in tracklets.constraints.cannot_link:
        assert (labels[:, i] != labels[:, j]).all()
    for i, j in tracklets.constraints.must_link:
        assert (labels[:, i] == labels[:, j]).all()
    for point in (0, 10, 20):
        alone = ProbabilityLinkage(**grid.point(point), **FITTED).group(tracklets).labels
        assert partition(alone) == partition(labels[point]), "a point of a sweep is what the method does alone"


@given(seed=SEEDS, count=st.integers(2, 20))
@settings(max_examples=40)
def test_neither_order_nor_a_shift_in_time_changes_groups(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    vectors, frames = rng.normal(size=(count, 5)), np.sort(rng.choice(100_000, count, replace=False))
    method = ProbabilityLinkage(**FITTED)
    here = clone(method).fit(vectors, positions=frames, duration=110_000).labels_
    there = clone(method).fit(vectors, positions=frames + int(rng.integers(1, 10_000)), duration=110_000).labels_
    assert there.tolist() == here.tolist()
    order = rng.permutation(count)
    there = clone(method).fit(vectors[order], positions=frames[order], duration=110_000).labels_
    assert partition(there) == partition(here[order])


def test_small_videos_have_stated_answers_and_it_has_no_name_without_coefficients() -> None:
    method = ProbabilityLinkage(**FITTED)
    assert method.fit(np.zeros((0, 4)), positions=np.zeros(0)).grouping_.count == 0
    assert method.fit(np.ones((1, 4)), positions=[0.5]).grouping_.labels.tolist() == [0]
    assert method.fit(np.ones((4, 4)), positions=[0.5] * 4).grouping_.count == 1, "P is 0.988 between all"
    assert clone(method).set_params(threshold=0.99).fit(np.ones((4, 4)), positions=[0.5] * 4).grouping_.count == 4
    grouping = method.group(polyps_in_time(9, 1))
    assert (grouping.method, grouping.parameters) == (
        "probability-linkage",
        {"threshold": 0.5, **FITTED, "number": 0.0},
    )
    assert [grouping.labels[row] for row in grouping.exemplars] == list(range(grouping.count))
    assert ProbabilityLinkage not in METHODS.values()
    assert sweep(method, polyps_in_time(4, 0), Grid({"threshold": (0, 1)})).labels.tolist() == [[0] * 4, [0, 1, 2, 3]]
