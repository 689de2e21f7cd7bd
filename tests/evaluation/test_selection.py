"""Operating points, against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polypcount.errors import DataError
from polypcount.evaluation import choose
from polypcount.evaluation.selection import front

SMALL = st.fractions(0, 1, max_denominator=7)


def plain_choice(fr: list[Fraction], fpr: list[Fraction], target: Fraction, rule: str) -> int:
    """The rules as they are written, over exact numbers."""
    points = list(range(len(fr)))
    if rule == "closest":
        points = [p for p in points if fpr[p] > 0] or points
        nearest = min(abs(fpr[p] - target) for p in points)
        points = [p for p in points if abs(fpr[p] - target) == nearest]
        lowest = min(fr[p] for p in points)
        points = [p for p in points if fr[p] == lowest]
    else:
        points = [p for p in points if fpr[p] <= target] or [p for p in points if fpr[p] == min(fpr)]
        lowest = min(fr[p] for p in points)
        points = [p for p in points if fr[p] == lowest]
        lowest = min(fpr[p] for p in points)
        points = [p for p in points if fpr[p] == lowest]
    return points[(len(points) - 1) // 2]


@settings(max_examples=120)
@given(
    points=st.lists(st.tuples(st.fractions(1, 5, max_denominator=3), SMALL), min_size=1, max_size=30),
    target=st.sampled_from([Fraction(1, 20), Fraction(1, 7), Fraction(1, 2), Fraction(1)]),
    rule=st.sampled_from(["closest", "budget"]),
)
def test_the_rules_equal_the_plain_calculation(
    points: list[tuple[Fraction, Fraction]], target: Fraction, rule: str
) -> None:
    fr, fpr = [p[0] for p in points], [p[1] for p in points]
    found = choose(np.array(fr, float), np.array(fpr, float), float(target), rule)  # type: ignore[arg-type]
    assert found == plain_choice(fr, fpr, target, rule)


def test_each_rule_by_hand() -> None:
    fr = np.array([9.0, 5.0, 3.0, 2.0, 2.0, 1.5])
    fpr = np.array([0.0, 0.01, 0.04, 0.06, 0.06, 0.2])
    assert choose(fr, fpr, 0.05, "closest") == 3, "0.04 and 0.06 are as near; FR 2 is lower; the lower of the two 2s"
    assert choose(fr, fpr, 0.05, "budget") == 2
    assert choose(fr, fpr, 0.001, "budget") == 0
    assert choose(fr, fpr, 0.001, "closest") == 1, "FPR 0 is not eligible"
    assert choose(fr, np.full(6, 0.3), 0.05, "budget") == 5, "none keeps to the budget: the lowest FPR, then FR"
    assert choose(fr, np.zeros(6), 0.05, "closest") == 5, "nothing merges two polyps: the lowest FR"
    assert choose(np.ones(4), np.zeros(4), 0.05, "closest") == 1, "all equal: the median, the lower of two"


def test_rounding_does_not_break_ties() -> None:
    fpr = np.array([0.1 + 0.2, 0.3, 0.3])
    assert choose(np.ones(3), fpr, 0.05, "closest") == 1
    assert choose(np.ones(3), fpr, 0.3, "budget") == 1


def test_the_front_has_what_no_other_point_beats() -> None:
    rng = np.random.default_rng(0)
    fr, fpr = np.round(rng.random(200), 1) * 5, np.round(rng.random(200), 1)
    kept = front(fr, fpr)
    values = {(fpr[p], fr[p]) for p in range(200)}
    best = {(x, y) for x, y in values if not any((a <= x and b <= y) and (a, b) != (x, y) for a, b in values)}
    assert {(fpr[p], fr[p]) for p in kept} == best
    assert len(kept) == len(best)
    assert (np.diff(fpr[kept]) > 0).all()


@pytest.mark.parametrize(
    ("fr", "fpr", "target", "rule", "message"),
    [
        ([1.0], [0.0], 0.05, "best", "must be one of closest, budget, found 'best'"),
        ([1.0], [np.nan], 0.05, "closest", "no operating point can be chosen"),
        ([], [], 0.05, "closest", "no operating point can be chosen"),
    ],
)
def test_bad_input(fr: list[float], fpr: list[float], target: float, rule: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        choose(np.array(fr), np.array(fpr), target, rule)  # type: ignore[arg-type]
