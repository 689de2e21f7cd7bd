"""The methods: scikit-learn's contract, and each against a plain calculation."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering
from sklearn.utils.estimator_checks import check_estimator

from polypcount.clustering import (
    METHODS,
    AffinityPropagation,
    Agglomerative,
    Method,
    NoClustering,
    Oracle,
    TemporalAffinityPropagation,
    TemporalAgglomerative,
    Threshold,
    TimeOnly,
    fuse,
    temporal_adjacency,
    visual_similarity,
)
from polypcount.errors import DataError
from tests.clustering.inputs import partition, polyps_in_time, scikit_learn

SEEDS = st.integers(0, 10_000)


@pytest.mark.parametrize("method", [Threshold(0.9), AffinityPropagation(), Agglomerative(0.8), NoClustering()])
def test_they_keep_the_contract_of_scikit_learn(method: Method) -> None:
    blobs = {
        "none": {"check_clustering": "it groups nothing, so it cannot find the blobs of this check"},
        "ap": {"check_clustering": "it sets the preference to -100, right for scikit-learn's own similarities only"},
    }
    expected = {
        "check_estimators_empty_data_messages": "a video without tracklets is no error: it has no groups",
        **blobs.get(method.name, {}),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(method, expected_failed_checks=expected)
    assert {result["check_name"] for result in results if result["status"] == "xfail"} == set(expected)
    assert sum(result["status"] == "passed" for result in results) > 30


@pytest.mark.parametrize("kind", METHODS.values(), ids=METHODS)
def test_parameters_clones_and_labels(kind: type[Method]) -> None:
    tracklets = polyps_in_time(12, 1)
    method = clone(kind())
    assert method.get_params() == kind().get_params()
    labels = method.fit_predict(tracklets.vectors, tracklets.truth, positions=tracklets.positions)
    grouping = method.grouping_
    assert labels.tolist() == grouping.labels.tolist()
    assert (grouping.method, grouping.parameters) == (kind.name, method.get_params())
    assert sorted(set(labels)) == list(range(grouping.count))
    assert [labels[row] for row in grouping.exemplars] == list(range(grouping.count)), "an exemplar is in its group"
    first = [labels.tolist().index(group) for group in range(grouping.count)]
    assert first == sorted(first), "groups are numbered in the order of their first tracklets"


@pytest.mark.parametrize("kind", [kind for kind in METHODS.values() if kind not in (Oracle,)], ids=lambda k: k.name)
def test_small_videos_have_stated_answers(kind: type[Method]) -> None:
    none = kind().fit(np.zeros((0, 4)), positions=np.zeros(0)).grouping_
    assert (none.count, len(none.labels), none.converged) == (0, 0, True)
    one = kind().fit(np.ones((1, 4)), positions=[0.5]).grouping_
    assert (one.count, one.labels.tolist(), one.exemplars.tolist()) == (1, [0], [0])
    equal = kind().fit(np.ones((4, 4)), positions=[0.5] * 4).grouping_
    assert equal.count == (4 if kind is NoClustering else 1)


@given(seed=SEEDS, count=st.integers(2, 15), threshold=st.floats(0, 1))
@settings(max_examples=50)
def test_threshold_is_the_transitive_closure(seed: int, count: int, threshold: float) -> None:
    tracklets = polyps_in_time(count, seed)
    near = visual_similarity(tracklets.vectors) >= threshold
    for _ in range(count):
        near = (near.astype(int) @ near.astype(int)) > 0
    expected = {frozenset(np.flatnonzero(row).tolist()) for row in near}
    assert partition(Threshold(threshold).group(tracklets).labels) == expected


@given(seed=SEEDS, count=st.integers(2, 25), threshold=st.floats(0, 1), linkage=st.sampled_from(["average", "single"]))
@settings(max_examples=50)
def test_agglomerative_is_scikit_learns(seed: int, count: int, threshold: float, linkage: Any) -> None:
    tracklets = polyps_in_time(count, seed)
    positions = tracklets.positions
    assert positions is not None
    fused = fuse(visual_similarity(tracklets.vectors), temporal_adjacency(positions, 3), 0.4)
    for similarity, ours in (
        (visual_similarity(tracklets.vectors), Agglomerative(threshold, linkage=linkage)),
        (fused, TemporalAgglomerative(threshold, linkage=linkage, alpha=0.4, gamma=3)),
    ):
        theirs = AgglomerativeClustering(
            n_clusters=None, distance_threshold=1 - threshold, metric="precomputed", linkage=linkage
        ).fit_predict(1 - similarity)
        assert partition(ours.group(tracklets).labels) == partition(theirs)


@given(seed=SEEDS, count=st.integers(3, 30), preference=st.sampled_from([-1.0, 0.2, 0.6, 0.9, 2.0]))
@settings(max_examples=60)
def test_affinity_propagation_on_looks_on_time_and_on_both(seed: int, count: int, preference: float) -> None:
    tracklets = polyps_in_time(count, seed)
    positions = tracklets.positions
    assert positions is not None
    looks, time = visual_similarity(tracklets.vectors, "minmax-euclidean"), temporal_adjacency(positions, 2)
    kind: Any = {"similarity": "minmax-euclidean"}
    for similarity, ours in (
        (looks, AffinityPropagation(preference, **kind)),
        (time, TimeOnly(preference, gamma=2)),
        (0.3 * looks + 0.7 * time, TemporalAffinityPropagation(preference, alpha=0.3, gamma=2, **kind)),
        (looks * time, TemporalAffinityPropagation(preference, gamma=2, fusion="product", **kind)),
        (looks, TemporalAffinityPropagation(preference, alpha=1, gamma=2, **kind)),
    ):
        exemplars, labels, iterations = scikit_learn(similarity, preference)
        grouping = ours.group(tracklets)
        assert partition(grouping.labels) == partition(labels)
        assert sorted(grouping.exemplars.tolist()) == sorted(exemplars)
        assert grouping.iterations == iterations


def test_the_oracle_knows_and_no_clustering_does_nothing() -> None:
    tracklets = polyps_in_time(10, 3)
    assert tracklets.truth is not None
    assert partition(Oracle().group(tracklets).labels) == partition(tracklets.truth.astype(np.int32))
    assert NoClustering().group(tracklets).labels.tolist() == list(range(10))
    with pytest.raises(DataError, match="the oracle needs the true polyps"):
        Oracle().fit(tracklets.vectors)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (Threshold(2), "threshold: threshold must be a number from 0 to 1, found 2"),
        (AffinityPropagation(float("nan")), "ap: preference must be a number"),
        (AffinityPropagation(damping=0.2), "ap: damping"),
        (AffinityPropagation(damping=1.0), "ap: damping"),
        (AffinityPropagation(max_iter=2.5), "ap: max_iter must be a whole number from 1, found 2.5"),  # type: ignore[arg-type]
        (AffinityPropagation(random_state=None), "ap: random_state must be a whole number from 0"),  # type: ignore[arg-type]
        (Agglomerative(alpha=5), "agglomerative: alpha must be a number from 0 to 1, found 5"),
        (Agglomerative(gamma=-5), "agglomerative: gamma must be a number"),
        (TemporalAffinityPropagation(alpha=1, fusion="x"), "fusion must be one of sum, product"),  # type: ignore[arg-type]
        (TemporalAffinityPropagation(alpha=-1), "temporal-ap: alpha must be a number from 0 to 1, found -1"),
        (TemporalAffinityPropagation(gamma="x"), "temporal-ap: gamma must be a number"),  # type: ignore[arg-type]
        (AffinityPropagation(similarity="dot"), "ap: similarity must be one of cosine, minmax-euclidean, found 'dot'"),  # type: ignore[arg-type]
        (Agglomerative(linkage="ward"), "linkage must be one of average, complete, single"),  # type: ignore[arg-type]
    ],
)
def test_bad_parameters(method: Method, message: str) -> None:
    tracklets = polyps_in_time(5, 0)
    with pytest.raises(DataError, match=message):
        method.fit(tracklets.vectors, positions=tracklets.positions)


def test_bad_data() -> None:
    with pytest.raises(DataError, match="give the positions"):
        TimeOnly().fit(np.ones((3, 2)))
    with pytest.raises(DataError, match="tracklet 1 has no position"):
        TimeOnly().fit(np.ones((3, 2)), positions=[0.1, np.nan, 0.3])
    with pytest.raises(DataError, match=r"positions must have one value for each of the 3 tracklets, found \[2\]"):
        TimeOnly().fit(np.ones((3, 2)), positions=[0.1, 0.3])
    with pytest.raises(DataError, match="positions span 900, more than the duration of the video, 1"):
        TimeOnly().fit(np.ones((3, 2)), positions=[100, 500, 1000])


@given(seed=SEEDS, count=st.integers(2, 40), dimension=st.integers(1, 60))
@settings(max_examples=60)
def test_equal_vectors_are_one_group_up_to_the_highest_setting(seed: int, count: int, dimension: int) -> None:
    vectors = np.tile(np.random.default_rng(seed).normal(size=dimension), (count, 1))
    for method in (Threshold(1.0), AffinityPropagation(1.0), Agglomerative(0.999)):
        assert method.fit(vectors).grouping_.count == 1


@pytest.mark.parametrize("kind", [kind for kind in METHODS.values() if kind is not Oracle], ids=lambda k: k.name)
@settings(max_examples=20)
@given(seed=SEEDS, count=st.integers(2, 20))
def test_neither_order_nor_a_shift_in_time_changes_groups(kind: type[Method], seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    vectors, frames = rng.normal(size=(count, 5)), np.sort(rng.choice(100_000, count, replace=False))
    here = kind().fit(vectors, positions=frames, duration=110_000)
    there = kind().fit(vectors, positions=frames + int(rng.integers(1, 10_000)), duration=110_000)
    assert there.labels_.tolist() == here.labels_.tolist()
    if not issubclass(kind, AffinityPropagation):  # which decides by order who stands for a pair, as its docstring says
        order = rng.permutation(count)
        there = kind().fit(vectors[order], positions=frames[order], duration=110_000)
        assert partition(there.labels_) == partition(here.labels_[order])
