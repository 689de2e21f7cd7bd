"""Search and re-identification by vectors, against plain calculations."""

import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from polypcount.errors import DataError
from polypcount.evaluation import pair_auc_by_video, reidentification_scores, retrieval, retrieval_scores
from tests.evaluation.embedded import embedded

Sample = tuple[list[list[float]], list[int], list[int]]


@st.composite
def tracklets(draw: st.DrawFn, ties: bool = True) -> Sample:
    """Vectors, polyps and videos; few different vectors where ties are wanted."""
    count = draw(st.integers(0, 12))
    if ties:
        vector = st.tuples(*[st.integers(-2, 2)] * 2).map(lambda pair: [float(x) for x in pair])
        vectors = draw(st.lists(vector, min_size=count, max_size=count))
    else:
        seed = draw(st.integers(0, 10_000))
        vectors = np.random.default_rng(seed).normal(size=(count, 4)).tolist()
    polyp = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    return vectors, polyp, [number % 2 for number in polyp]


def cosine(a: list[float], b: list[float]) -> float:
    product = math.hypot(*a) * math.hypot(*b)
    return round(sum(x * y for x, y in zip(a, b, strict=True)) / product, 9) if product else 0.0


def searched(vectors: list[list[float]], polyp: list[int]) -> tuple[list[float], list[int]]:
    """Average precision and rank of the first match of each query, by sorting its gallery."""
    precisions, ranks = [], []
    for i, query in enumerate(vectors):
        gallery = [(-cosine(query, other), polyp[j] == polyp[i]) for j, other in enumerate(vectors) if j != i]
        found = [match for _, match in sorted(gallery)]  # False before True: others first among equals
        places = [rank for rank, match in enumerate(found, 1) if match]
        if places:
            precisions.append(sum(k / rank for k, rank in enumerate(places, 1)) / len(places))
            ranks.append(places[0])
    return precisions, ranks


@pytest.mark.parametrize("block", [1, 5, 512])
@given(sample=tracklets() | tracklets(ties=False))
def test_retrieval_equals_sorting_each_gallery(block: int, sample: Sample) -> None:
    vectors, polyp, _ = sample
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retrieval, "BLOCK", block)
        scores = retrieval_scores(np.reshape(vectors, (len(vectors), -1 if vectors else 2)), polyp)
    precisions, ranks = searched(vectors, polyp)
    assert scores.queries == len(precisions)
    assert scores.queries_left_out == sum(polyp.count(number) == 1 for number in polyp)
    if not precisions:
        assert np.isnan([scores.mean_average_precision, scores.hit_rate_1, scores.hit_rate_5]).all()
        return
    assert scores.mean_average_precision == pytest.approx(np.mean(precisions))
    assert scores.hit_rate_1 == pytest.approx(sum(rank <= 1 for rank in ranks) / len(ranks))
    assert scores.hit_rate_5 == pytest.approx(sum(rank <= 5 for rank in ranks) / len(ranks))


def test_without_ties_average_precision_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    vectors, polyp = rng.normal(size=(40, 8)), rng.integers(0, 6, 40)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = [
        average_precision_score(np.delete(polyp, i) == polyp[i], np.delete(unit @ unit[i], i)) for i in range(40)
    ]
    assert retrieval_scores(vectors, polyp).mean_average_precision == pytest.approx(np.mean(expected))


@given(sample=tracklets(), data=st.data())
def test_the_order_of_rows_and_the_names_of_polyps_do_not_matter(sample: Sample, data: st.DataObject) -> None:
    vectors, polyp, video = sample
    order = data.draw(st.permutations(range(len(vectors))))
    mixed = np.reshape([vectors[i] for i in order], (len(order), 2))
    renamed = [(7 - polyp[i]) * 1000 for i in order]
    given_order = np.reshape(vectors, (len(order), 2))
    assert astuple(retrieval_scores(mixed, renamed)) == pytest.approx(
        astuple(retrieval_scores(given_order, polyp)), nan_ok=True
    )
    assert astuple(reidentification_scores(mixed, renamed, [video[i] for i in order])) == pytest.approx(
        astuple(reidentification_scores(given_order, polyp, video)), nan_ok=True
    )


def test_vectors_that_cannot_tell_gain_nothing() -> None:
    polyp = [0, 0, 1, 1, 2, 2, 3, 3]
    scores = retrieval_scores(np.full((8, 3), 0.1), polyp)
    assert (scores.hit_rate_1, scores.hit_rate_5) == (0, 0)
    assert scores.mean_average_precision == pytest.approx(1 / 7)  # the one match comes last of seven
    pairs = reidentification_scores(np.full((8, 3), 0.1), polyp)
    assert (pairs.auroc, pairs.aupr) == pytest.approx((1 / 2, 4 / 28))


def test_equal_directions_are_equally_similar_wherever_they_stand() -> None:
    rng = np.random.default_rng(3)
    one = rng.normal(size=128)
    # A rounding error between equal directions would put a match before the others.
    vectors = np.outer(rng.uniform(0.1, 9, 301), one)
    scores = retrieval_scores(vectors, np.arange(301) // 2)
    assert scores.mean_average_precision == pytest.approx(1 / 300)
    assert (scores.queries, scores.queries_left_out) == (300, 1)


@pytest.mark.parametrize("block", [1, 5, 512])
@pytest.mark.parametrize("by_video", [True, False])
@given(sample=tracklets() | tracklets(ties=False))
def test_reidentification_equals_going_through_all_pairs(block: int, by_video: bool, sample: Sample) -> None:
    vectors, polyp, video = sample
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retrieval, "BLOCK", block)
        scores = reidentification_scores(
            np.reshape(vectors, (len(vectors), -1 if vectors else 2)), polyp, video if by_video else None
        )
    positive: list[float] = []
    negative: list[float] = []
    for i in range(len(vectors)):
        for j in range(i):
            if not by_video or video[i] == video[j]:
                (positive if polyp[i] == polyp[j] else negative).append(cosine(vectors[i], vectors[j]))
    assert (scores.positive_pairs, scores.negative_pairs) == (len(positive), len(negative))
    if not positive or not negative:
        assert np.isnan([scores.auroc, scores.aupr]).all()
        return
    wins = [1.0 if p > n else 0.5 if p == n else 0.0 for p in positive for n in negative]
    assert scores.auroc == pytest.approx(sum(wins) / len(wins))
    # Each positive pair adds 1 / P of recall at the precision of its own similarity as the threshold.
    precisions = [sum(q >= p for q in positive) / sum(q >= p for q in positive + negative) for p in positive]
    assert scores.aupr == pytest.approx(sum(precisions) / len(precisions))


def test_lengths_do_not_matter_and_a_zero_vector_is_like_none() -> None:
    vectors = np.array([[1.0, 0], [1e200, 0], [0, 1e-200], [0, 5]])
    scores = retrieval_scores(vectors, [0, 0, 1, 1])
    assert (scores.mean_average_precision, scores.hit_rate_1) == (1, 1)
    assert reidentification_scores(vectors, [0, 0, 1, 1]).auroc == 1
    # The zero vector has the cosine 0 with its match and with both others, who come first.
    alone = retrieval_scores(np.array([[0.0, 0], [1, 0], [0, 1], [0, 1]]), [0, 0, 1, 1])
    assert alone.mean_average_precision == pytest.approx((1 / 3 + 1 / 3 + 1 + 1) / 4)


def test_bad_input() -> None:
    with pytest.raises(DataError, match=r"there must be a vector for each polyp entry, found 3 and 2"):
        retrieval_scores(np.ones((3, 1)), [0, 0])
    with pytest.raises(DataError, match="vectors must be finite, found nan in row 1"):
        reidentification_scores([[1.0], [math.nan]], [0, 0])
    with pytest.raises(DataError, match="truth row 0: the polyp is unknown"):
        retrieval_scores([[1.0]], [-1])
    with pytest.raises(DataError, match="video must have a row per vector, found 1 rows for 2 vectors"):
        reidentification_scores([[1.0], [2.0]], [0, 0], [0])


def test_pair_auc_by_video_is_the_auroc_of_each_video() -> None:
    embeddings = embedded([[3, 2], [4], [2, 2]], seed=3)
    by_video = pair_auc_by_video(embeddings)
    assert list(by_video) == ["v0", "v1", "v2"]
    assert math.isnan(by_video["v1"]), "one polyp has no pair of two"
    for place in (0, 2):
        rows = embeddings.of_video(place)
        polyp, unit = embeddings.polyp[rows], embeddings.vectors[rows]
        unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
        i, j = np.triu_indices(len(polyp), 1)
        expected = roc_auc_score(polyp[i] == polyp[j], np.round((unit @ unit.T)[i, j], 6))
        assert by_video[f"v{place}"] == pytest.approx(expected)
