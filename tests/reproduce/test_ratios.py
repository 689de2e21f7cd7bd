"""Ratios of FR, by hand and by a slow calculation."""

import csv
import io
import math
import random
import statistics

import pytest

from polypcount.evaluation import Mean
from polypcount.reproduce.parameters import parameter_csv, parameter_table
from polypcount.reproduce.ratios import fr_ratio, ratio_csv, ratio_table
from polypcount.reproduce.results import Run, VideoResult
from polypcount.reproduce.rows import TABLES
from polypcount.reproduce.tables import paper_table
from polypcount.reproduce.videos import video_csv, video_table


def mean(value: float, deviation: float = 0.2) -> Mean:
    return Mean(value, deviation, value, value, 2, 2)


def run(row: str, render: int, seed: int, fr: list[float], alpha: float = 0.5, selected: float = 0.04) -> Run:
    videos = tuple(VideoResult(f"v{k}", 9, 2, value, 0.1, selected, {"alpha": alpha}) for k, value in enumerate(fr))
    names = ("fr", "fpr", "fpr_zero_filled", "fr_single_polyp", "fr_multi_polyp", "selected_fpr")
    scores = {name: mean(selected if name == "selected_fpr" else statistics.fmean(fr)) for name in names}
    rules = ("closest", "budget")
    parameters = {rule: {"alpha": mean(alpha)} for rule in rules}
    by_rule = dict.fromkeys(rules, videos)
    return Run(row, f"render-{render}", seed, dict.fromkeys(rules, scores), mean(0.9), parameters, by_rule)


def test_against_a_slow_calculation() -> None:
    """Two renders of 6 and 9 videos, two and one seeds: every draw by hand from the standard library."""
    draw = random.Random(3)
    fr = {
        (row, key): [1 + 4 * draw.random() * scale for _ in range(n)]
        for row, scale in (("ours", 1), ("tpc", 2))
        for key, n in (((0, 0), 6), ((0, 1), 6), ((1, 0), 9))
    }
    rows = {
        name: [run(name, *key, values) for (row, key), values in fr.items() if row == name] for name in ("ours", "tpc")
    }
    found = fr_ratio(rows["ours"], rows["tpc"], "budget")
    assert found is not None
    means = {row: statistics.fmean(statistics.fmean(v) for (r, _), v in fr.items() if r == row) for row in rows}
    assert found.ratio == pytest.approx(means["tpc"] / means["ours"])
    assert (found.videos, found.runs) == (15, 3)
    ratios = []
    for _ in range(4000):
        total = {"ours": 0.0, "tpc": 0.0}
        for render, n, seeds in ((0, 6, (0, 1)), (1, 9, (0,))):
            picked = [draw.randrange(n) for _ in range(n)]
            for row in total:
                total[row] += sum(statistics.fmean(fr[row, (render, seed)][k] for k in picked) for seed in seeds)
        ratios.append(total["tpc"] / total["ours"])
    cuts = statistics.quantiles(ratios, n=40)
    width = cuts[-1] - cuts[0]
    assert found.low == pytest.approx(cuts[0], abs=0.1 * width)
    assert found.high == pytest.approx(cuts[-1], abs=0.1 * width)
    assert found == fr_ratio(rows["ours"], rows["tpc"], "budget"), "the same seed, the same interval"


def test_small_cases() -> None:
    ours = [run("ours", 0, 0, [2.0, 1.0])]
    twice = fr_ratio(ours, [run("tpc", 0, 0, [4.0, 2.0])], "closest")
    assert twice is not None
    assert (twice.ratio, twice.low, twice.high, twice.reading) == (2.0, 2.0, 2.0, "lower"), "paired: no spread at all"
    one = fr_ratio([run("ours", 0, 0, [2.0])], [run("tpc", 0, 0, [3.0])], "closest")
    assert one is not None
    assert (one.ratio, one.reading, math.isnan(one.low)) == (1.5, "-", True), "one video has no interval"
    assert fr_ratio(ours, [run("tpc", 0, 1, [4.0, 2.0])], "closest") is None, "no seed in common"
    assert fr_ratio(ours, [], "closest") is None
    left_out = fr_ratio(ours, [run("tpc", 0, 0, [math.nan, 3.0])], "closest")
    assert left_out is not None
    assert (left_out.ratio, left_out.videos) == (3.0, 1), "a video without FR is left out of both"
    lost = fr_ratio(ours, [run("tpc", 0, 0, [1.0, 0.5])], "closest")
    assert lost is not None
    assert lost.reading == "higher"


def test_tables_of_ratios_have_the_published_ones() -> None:
    runs = {"ours": [run("ours", 0, 0, [2.0, 1.0])], "sfe": [run("sfe", 0, 0, [4.0, 3.0])]}
    table = ratio_table(runs)
    assert [row[:2] for row in table.rows] == [("sfe", "closest"), ("sfe", "budget")]
    assert table.rows[0][2] == "2.33"
    assert table.rows[0][-1] == "4.04"
    (first, _) = csv.DictReader(io.StringIO(ratio_csv(runs)))
    assert float(first["ratio"]) == pytest.approx(7 / 3)
    assert ratio_table({}).rows == ()


def test_parameters_over_folds_and_runs() -> None:
    runs = {"ours": [run("ours", 0, seed, [2.0, 1.0], alpha) for seed, alpha in ((0, 0.4), (1, 0.6))]}
    table = parameter_table(runs)
    closest = dict(zip(table.header, table.rows[0], strict=True))
    assert (closest["row"], closest["rule"], closest["parameter"]) == ("ours", "closest", "alpha")
    assert (closest["mean ± folds"], closest["± seeds"], closest["range"]) == (
        "0.5000 ± 0.2000",
        "0.1414",
        "0.4 to 0.6",
    )
    assert (closest["runs"], closest["published"]) == ("2", "0.4833 ± 0.1999")
    (first, _) = csv.DictReader(io.StringIO(parameter_csv(runs)))
    assert float(first["mean"]) == pytest.approx(0.5)
    assert first["published"] == "0.4833"


def test_methods_that_ours_plus_chose_are_told() -> None:
    one = Run("ours+", "real", 0, {"closest": {}}, mean(0.9), chosen={"closest": ("ap", "linkage", "ap")})
    assert parameter_table({"ours+": [one]}).notes[-1] == "ours+, `closest`, of 3 folds: ap in 2, linkage in 1."


def test_each_video() -> None:
    runs = {"ours": [run("ours", 0, 0, [2.0, 1.0]), run("ours", 0, 1, [3.0, 1.0])], "tpc": [run("tpc", 0, 0, [4.0])]}
    table = video_table(runs)
    assert table.header[4:] == ("tpc, closest", "tpc, budget", "ours, closest", "ours, budget")
    assert table.rows == (
        ("render-0", "v0", "9", "2", "4.00", "4.00", "2.50", "2.50"),
        ("render-0", "v1", "9", "2", "-", "-", "1.00", "1.00"),
    )
    read = list(csv.DictReader(io.StringIO(video_csv(runs))))
    assert len(read) == 2 * (2 + 2 + 1)
    assert (read[-1]["row"], read[-1]["seed"], read[-1]["fr"], read[-1]["alpha"]) == ("ours", "1", "1.0", "0.5")
    assert video_table({}).rows == ()


def test_a_budget_that_was_not_kept_is_marked() -> None:
    kept, not_kept = (
        paper_table(TABLES["table-1"], {"tpc": [run("tpc", 0, 0, [4.0], 0.5, fpr)]}) for fpr in (0.05, 0.06)
    )
    assert [row[1] for row in kept.rows if row[2] != "-"] == ["closest", "budget"]
    assert [row[1] for row in not_kept.rows if row[2] != "-"] == ["closest", "budget*"]
    assert "`budget*`" in not_kept.notes[-1]
    assert not any("budget*" in note for note in kept.notes)
