"""Every score of every case, worked out by hand. Tracklets are called 1, 2, 3 ... in the order of the case."""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest

from polypcount.evaluation import PairCounts, reidentification_scores, retrieval_scores, score_video
from tests.cases.catalogue import CASES, Case, late_return

NAN = math.nan
DOCS = Path(__file__).parents[2] / "docs"


def entropy_of_thirds() -> float:
    """Bits in parts of 2/3 and 1/3: 2/3 * (log2 3 - 1) + 1/3 * log2 3."""
    return math.log2(3) - 2 / 3


def harmonic(a: float, b: float) -> float:
    return 2 * a * b / (a + b)


# Adjusted Rand below is (TP - chance) / (highest - chance), where with p pairs put together, s pairs of one polyp and m
# pairs in all, chance = p * s / m and highest = (p + s) / 2. H is in bits.
BY_HAND: dict[str, dict[str, object]] = {
    "nothing": {
        "tracklets": 0,
        "groups": 0,
        "polyps": 0,
        "annotated_polyps": 1,
        "pairs": PairCounts(0, 0, 0, 0),
        "fr": NAN,  # 0 / 0
        "fr_all": 0.0,  # 0 / 1
        "count_error": 0,
        "count_error_all": -1,  # 0 - 1
        "fpr": NAN,
        "tpr": NAN,
        "precision": NAN,
        "adjusted_rand": NAN,
        "homogeneity": NAN,
        "completeness": NAN,
        "v_measure": NAN,
        "bcubed_precision": NAN,
        "bcubed_recall": NAN,
        "bcubed_f1": NAN,
    },
    "one tracklet": {
        "tracklets": 1,
        "groups": 1,
        "polyps": 1,
        "annotated_polyps": 1,
        "pairs": PairCounts(0, 0, 0, 0),
        "fr": 1.0,
        "fr_all": 1.0,
        "count_error": 0,
        "count_error_all": 0,
        "fpr": NAN,
        "tpr": NAN,
        "precision": NAN,
        "adjusted_rand": NAN,  # no pair
        "homogeneity": 1.0,  # H(polyp) = 0
        "completeness": 1.0,  # H(group) = 0
        "v_measure": 1.0,
        "bcubed_precision": 1.0,
        "bcubed_recall": 1.0,
        "bcubed_f1": 1.0,
    },
    "two same": {
        "tracklets": 2,
        "groups": 1,
        "polyps": 1,
        "annotated_polyps": 1,
        "pairs": PairCounts(1, 0, 0, 0),  # 12 is of one polyp and together
        "fr": 1.0,
        "fr_all": 1.0,
        "count_error": 0,
        "count_error_all": 0,
        "fpr": NAN,  # no pair of two polyps
        "tpr": 1.0,
        "precision": 1.0,
        "adjusted_rand": 1.0,  # nothing else is possible
        "homogeneity": 1.0,  # H(polyp) = 0
        "completeness": 1.0,  # H(group) = 0
        "v_measure": 1.0,
        "bcubed_precision": 1.0,
        "bcubed_recall": 1.0,
        "bcubed_f1": 1.0,
    },
    "two different": {
        "tracklets": 2,
        "groups": 2,
        "polyps": 2,
        "annotated_polyps": 2,
        "pairs": PairCounts(0, 0, 0, 1),  # 12 is of two polyps and apart
        "fr": 1.0,
        "fr_all": 1.0,
        "count_error": 0,
        "count_error_all": 0,
        "fpr": 0.0,  # 0 / 1
        "tpr": NAN,  # no pair of one polyp
        "precision": NAN,  # no pair together
        "adjusted_rand": 1.0,  # both partitions are the same
        "homogeneity": 1.0,
        "completeness": 1.0,
        "v_measure": 1.0,
        "bcubed_precision": 1.0,
        "bcubed_recall": 1.0,
        "bcubed_f1": 1.0,
    },
    "late return": {  # polyps A A B A, groups 0 0 1 2
        "tracklets": 4,
        "groups": 3,
        "polyps": 2,
        "annotated_polyps": 2,
        "pairs": PairCounts(1, 0, 2, 3),  # 12 together; 14 and 24 are of one polyp and apart; 13, 23, 34 rightly apart
        "fr": 3 / 2,
        "fr_all": 3 / 2,
        "count_error": 1,
        "count_error_all": 1,
        "fpr": 0.0,  # 0 / 3
        "tpr": 1 / 3,  # 1 / (1 + 2)
        "precision": 1.0,  # 1 / 1
        "adjusted_rand": 1 / 3,  # p 1, s 3, m 6: chance 1/2, highest 2, (1 - 1/2) / (2 - 1/2)
        "homogeneity": 1.0,  # no group mixes polyps
        # H(group) of 2/4, 1/4, 1/4 is 3/2; of A's three tracklets 2/3 are in one group: H(group | polyp) = 3/4 of that
        "completeness": 1 - 3 / 4 * entropy_of_thirds() / (3 / 2),
        "v_measure": harmonic(1, 1 - entropy_of_thirds() / 2),
        "bcubed_precision": 1.0,
        "bcubed_recall": 2 / 3,  # (2/3 + 2/3 + 1 + 1/3) / 4
        "bcubed_f1": 4 / 5,  # 2 * 2/3 / (5/3)
    },
    "two at once": {  # polyps A B A, groups 0 0 1: the count is right and the grouping wrong
        "tracklets": 3,
        "groups": 2,
        "polyps": 2,
        "annotated_polyps": 2,
        "pairs": PairCounts(0, 1, 1, 1),  # 12 wrongly together; 13 wrongly apart; 23 rightly apart
        "fr": 1.0,
        "fr_all": 1.0,
        "count_error": 0,
        "count_error_all": 0,
        "fpr": 1 / 2,  # 1 / (1 + 1)
        "tpr": 0.0,  # 0 / 1
        "precision": 0.0,  # 0 / 1
        "adjusted_rand": -1 / 2,  # p 1, s 1, m 3: chance 1/3, highest 1, (0 - 1/3) / (1 - 1/3)
        "homogeneity": 1 - 2 / 3 / entropy_of_thirds(),  # group 0, 2/3 of all, is half A half B: 2/3 of 1 bit
        "completeness": 1 - 2 / 3 / entropy_of_thirds(),  # polyp A, 2/3 of all, is half in 0 half in 1
        "v_measure": 1 - 2 / 3 / entropy_of_thirds(),  # both are the same
        "bcubed_precision": 2 / 3,  # (1/2 + 1/2 + 1) / 3
        "bcubed_recall": 2 / 3,  # (1/2 + 1 + 1/2) / 3
        "bcubed_f1": 2 / 3,
    },
    "twin polyps": {  # polyps A A B C C, groups 0 0 1 0 0
        "tracklets": 5,
        "groups": 2,
        "polyps": 3,
        "annotated_polyps": 3,
        "pairs": PairCounts(2, 4, 0, 4),  # 12 and 45 together; 14 15 24 25 wrongly so; 13 23 34 35 rightly apart
        "fr": 2 / 3,
        "fr_all": 2 / 3,
        "count_error": -1,
        "count_error_all": -1,
        "fpr": 1 / 2,  # 4 / (4 + 4)
        "tpr": 1.0,  # 2 / 2
        "precision": 1 / 3,  # 2 / (2 + 4)
        "adjusted_rand": 2 / 7,  # p 6, s 2, m 10: chance 6/5, highest 4, (2 - 6/5) / (4 - 6/5)
        # H(polyp) of 2/5, 1/5, 2/5 is log2 5 - 4/5; group 0, 4/5 of all, is half A half C: 4/5 of 1 bit
        "homogeneity": 1 - 4 / 5 / (math.log2(5) - 4 / 5),
        "completeness": 1.0,  # no polyp is in two groups
        "v_measure": harmonic(1, 1 - 4 / 5 / (math.log2(5) - 4 / 5)),
        "bcubed_precision": 3 / 5,  # (4 * 1/2 + 1) / 5
        "bcubed_recall": 1.0,
        "bcubed_f1": 3 / 4,  # 2 * 3/5 / (8/5)
    },
    "all merged": {  # polyps A A B B, groups 0 0 0 0
        "tracklets": 4,
        "groups": 1,
        "polyps": 2,
        "annotated_polyps": 2,
        "pairs": PairCounts(2, 4, 0, 0),  # 12 and 34 rightly together; 13 14 23 24 wrongly
        "fr": 1 / 2,
        "fr_all": 1 / 2,
        "count_error": -1,
        "count_error_all": -1,
        "fpr": 1.0,  # 4 / 4
        "tpr": 1.0,  # 2 / 2
        "precision": 1 / 3,  # 2 / 6
        "adjusted_rand": 0.0,  # p 6, s 2, m 6: chance 2 = TP
        "homogeneity": 0.0,  # the group says nothing of the polyp: H(polyp | group) = H(polyp)
        "completeness": 1.0,  # H(group) = 0
        "v_measure": 0.0,
        "bcubed_precision": 1 / 2,
        "bcubed_recall": 1.0,
        "bcubed_f1": 2 / 3,  # 2 * 1/2 / (3/2)
    },
    "all split": {  # polyps A A B B, groups 0 1 2 3
        "tracklets": 4,
        "groups": 4,
        "polyps": 2,
        "annotated_polyps": 2,
        "pairs": PairCounts(0, 0, 2, 4),  # 12 and 34 wrongly apart; 13 14 23 24 rightly
        "fr": 2.0,  # 4 / 2, the tracklets per polyp
        "fr_all": 2.0,
        "count_error": 2,
        "count_error_all": 2,
        "fpr": 0.0,  # 0 / 4
        "tpr": 0.0,  # 0 / 2
        "precision": NAN,  # no pair together
        "adjusted_rand": 0.0,  # p 0: chance 0 = TP
        "homogeneity": 1.0,
        "completeness": 1 / 2,  # H(group) = 2, H(group | polyp) = 1
        "v_measure": 2 / 3,  # 2 * 1/2 / (3/2)
        "bcubed_precision": 1.0,
        "bcubed_recall": 1 / 2,
        "bcubed_f1": 2 / 3,
    },
    "one polyp only": {  # polyps A A A, groups 0 0 1
        "tracklets": 3,
        "groups": 2,
        "polyps": 1,
        "annotated_polyps": 1,
        "pairs": PairCounts(1, 0, 2, 0),  # 12 together; 13 and 23 wrongly apart
        "fr": 2.0,
        "fr_all": 2.0,
        "count_error": 1,
        "count_error_all": 1,
        "fpr": NAN,  # no pair of two polyps
        "tpr": 1 / 3,  # 1 / (1 + 2)
        "precision": 1.0,
        "adjusted_rand": 0.0,  # p 1, s 3, m 3: chance 1 = TP
        "homogeneity": 1.0,  # H(polyp) = 0
        "completeness": 0.0,  # the polyp says nothing of the group: H(group | polyp) = H(group)
        "v_measure": 0.0,
        "bcubed_precision": 1.0,
        "bcubed_recall": 5 / 9,  # (2/3 + 2/3 + 1/3) / 3
        "bcubed_f1": 5 / 7,  # 2 * 5/9 / (14/9)
    },
}


def named(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", CASES, ids=named)
def test_scores_are_those_worked_out_by_hand(case: Case) -> None:
    scores = score_video(case.groups, case.polyp, case.annotated_polyps)
    expected = BY_HAND[case.name]
    assert expected.keys() == scores.to_dict().keys()
    for name, value in expected.items():
        found = getattr(scores, name)
        if isinstance(value, float):
            assert found == pytest.approx(value, abs=1e-12, nan_ok=True), name
        else:
            assert found == value, name


@pytest.mark.parametrize("case", CASES, ids=named)
def test_every_case_is_a_possible_video(case: Case) -> None:
    count = len(case.polyp)
    assert len(case.start_frame) == len(case.stop_frame) == len(case.groups) == count
    assert case.vectors.shape == (count, 2)
    assert np.allclose(np.hypot(*case.vectors.T), 1)
    assert (np.diff(case.start_frame) >= 0).all()
    assert (case.start_frame >= 0).all()
    assert (case.start_frame < case.stop_frame).all()
    assert (case.stop_frame <= case.frame_count).all()
    assert case.annotated_polyps >= len(set(case.polyp.tolist()))
    for polyp in set(case.polyp.tolist()):  # a polyp has one tracklet at a time
        mine = case.polyp == polyp
        assert (case.start_frame[mine][1:] >= case.stop_frame[mine][:-1]).all()
    assert case.story.endswith(".")


def test_the_names_are_those_worked_out() -> None:
    assert [case.name for case in CASES] == list(BY_HAND)


def test_vectors_of_the_late_return_by_hand() -> None:
    # Cosines: 12 0.8, 13 0, 14 0.6, 23 0.6, 24 0.96, 34 0.8; of one polyp are 12, 14 and 24.
    case = late_return()
    search = retrieval_scores(case.vectors, case.polyp)
    # 1 finds 2 4 3 and 2 finds 4 1 3, both without a fault; 3 has no match; 4 finds 2 3 1: (1/1 + 2/3) / 2 = 5/6.
    assert (search.queries, search.queries_left_out) == (3, 1)
    assert search.mean_average_precision == pytest.approx((1 + 1 + 5 / 6) / 3)
    assert (search.hit_rate_1, search.hit_rate_5) == (1, 1)
    pairs = reidentification_scores(case.vectors, case.polyp)
    # Against 0, 0.6 and 0.8 of two polyps: 0.8 wins 2 and ties 1, 0.6 wins 1 and ties 1, 0.96 wins 3.
    assert pairs.auroc == pytest.approx((2.5 + 1.5 + 3) / 9)
    # At 0.96 1 of 1 is right, at 0.8 2 of 3, at 0.6 3 of 5, each adding a third of the recall.
    assert pairs.aupr == pytest.approx((1 + 2 / 3 + 3 / 5) / 3)


def test_the_page_shows_the_scores_of_today() -> None:
    table = runpy.run_path(str(DOCS / "draw_cases.py"))["table"]()
    assert table in (DOCS / "cases.md").read_text(encoding="utf-8"), "run docs/draw_cases.py"
