"""Rows against rows, run by run."""

import math

from polypcount.evaluation import Mean
from polypcount.reproduce.differences import differences, reading
from polypcount.reproduce.results import Run


def mean(value: float) -> Mean:
    return Mean(value, 0.0, value, value, 19, 19)


def run(row: str, render: int, seed: int | None, auc: float, fr: float) -> Run:
    scores = {"fr": mean(fr)}
    return Run(row, f"render-{render}", seed, {"closest": scores, "budget": scores}, mean(auc))


def cells(runs: dict[str, list[Run]]) -> dict[tuple[str, str], tuple[str, ...]]:
    return {(row[0], row[1]): row[2:] for row in differences(runs).rows}


def test_runs_are_paired_by_render_and_seed() -> None:
    found = cells(
        {
            "ours": [run("ours", 0, 0, 0.9, 2.0), run("ours", 0, 1, 0.8, 3.0), run("ours", 1, 0, 0.7, 4.0)],
            "tpc": [run("tpc", 1, 0, 0.75, 5.0), run("tpc", 0, 0, 0.8, 4.0), run("tpc", 2, 0, 0.1, 9.0)],
        }
    )
    assert found["ours less tpc", "pair AUC"] == ("+0.025", "0.106", "-0.050 to +0.100", "1 of 2", "2", "noise")
    assert found["ours less tpc", "FR, closest"] == ("-1.500", "0.707", "-2.000 to -1.000", "2 of 2", "2", "lower")
    assert set(found) == {("ours less tpc", name) for name in ("pair AUC", "FR, closest", "FR, budget")}


def test_one_run_has_no_spread_and_what_is_undefined_is_left_out() -> None:
    found = cells({"ours": [run("ours", 0, 0, math.nan, 2.0)], "tpc": [run("tpc", 0, 0, 0.9, 2.5)]})
    assert ("ours less tpc", "pair AUC") not in found
    assert found["ours less tpc", "FR, budget"] == ("-0.500", "-", "-0.500 to -0.500", "1 of 1", "1", "one run")


def test_rows_of_one_encoder_have_one_auc() -> None:
    same = {name: [run(name, 0, 0, 0.9, 2.0), run(name, 1, 0, 0.8, 3.0)] for name in ("ours+", "ours")}
    assert {score for _, score in cells(same)} == {"FR, closest", "FR, budget"}


def test_nothing_to_compare_is_an_empty_table() -> None:
    assert differences({}).rows == ()


def test_what_a_difference_says() -> None:
    """The rule by hand: 0.006 / 3 = 0.002 for nine runs."""
    assert reading(-0.005, 0.006, 9, True) == "lower"
    assert reading(0.0021, 0.006, 9, True) == "higher"
    assert reading(0.0019, 0.006, 9, True) == "noise"
    assert reading(-0.005, 0.006, 9, False) == "noise", "renders do not agree"
    assert reading(0.0, 0.0, 3, True) == "noise"
    assert reading(-1.0, math.nan, 1, True) == "one run"
