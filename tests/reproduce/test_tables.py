"""Tables and figures from runs."""

import csv
import io
import math
from pathlib import Path

from polypcount.evaluation import Mean
from polypcount.evaluation.figures import save_figure
from polypcount.reproduce.figures import draw_table
from polypcount.reproduce.results import Run
from polypcount.reproduce.rows import TABLES
from polypcount.reproduce.tables import paper_csv, paper_table

SCORES = ("fr", "fr_single_polyp", "fr_multi_polyp", "fpr", "fpr_zero_filled", "selected_fpr")


def mean(value: float, deviation: float = 0.5) -> Mean:
    return Mean(value, deviation, value - 0.5, value + 0.5, 10, 19)


def runs() -> dict[str, list[Run]]:
    def rules(start: float) -> dict[str, Mean]:
        return {name: mean(start + place / 100) for place, name in enumerate(SCORES)}

    return {
        "none": [Run("none", "real", None, {"fixed": {**rules(20), "selected_fpr": mean(math.nan)}}, mean(math.nan))],
        "ours": [
            Run(
                "ours",
                "real",
                seed,
                {"closest": rules(2 + seed), "budget": rules(1 + seed)},
                mean(0.9 + seed / 100),
                700,
                44800 + 200 * seed,
            )
            for seed in (0, 1)
        ],
    }


def test_cells() -> None:
    table = paper_table(TABLES["table-1"], runs())
    cells = {(row[0], row[1]): dict(zip(table.header, row, strict=True)) for row in table.rows}
    assert len(table.rows) == 1 + 3 + 2, "rows that were not run have one line, others one for each rule"
    ours = table.rows[-2]
    assert ours == (
        *("ours, Temporal-AP", "closest", "2.50 ± 0.50", "0.71", "-", "2.51", "2.52"),
        *("2.5300 ± 0.5000", "2.5400 ± 0.5000", "2.5500", "0.905", "0.007", "-", "2", "700", "44,800 to 45,000"),
        *("2.32 ± 1.80", "0.0225 ± 0.0420"),
    )
    assert cells["ours, Temporal-AP", "budget"]["FR"] == "1.50 ± 0.50"
    none = cells["no clustering", "-"]
    assert (none["FR"], none["pair AUC"], none["FPR selected at"], none["runs"]) == ("20.00 ± 0.50", "-", "-", "1")
    assert (none["published FR"], none["published FPR"]) == ("20.74 ± 20.78", "0.0000")
    sfe = cells["SFE, threshold", "-"]
    assert (sfe["FR"], sfe["runs"], sfe["published FR"]) == ("-", "0", "9.37 ± 6.28")
    beyond = paper_table(TABLES["table-4"], runs())
    assert beyond.rows[-1][-2:] == ("-", "-")


def test_csv_has_all_scores_and_the_published_ones() -> None:
    read = list(csv.DictReader(io.StringIO(paper_csv(TABLES["table-1"], runs()))))
    found = {(row["row"], row["rule"], row["score"]): row for row in read}
    assert len(found) == (1 + 2) * (len(SCORES) + 1)
    ours = found["ours", "closest", "fr"]
    assert (float(ours["mean"]), ours["runs"], ours["renders"], ours["published"]) == (2.5, "2", "", "2.32")
    assert found["none", "fixed", "pair_auroc"]["mean"] == ""
    assert found["none", "fixed", "fpr"]["published_std"] == ""


def test_no_runs_at_all() -> None:
    for table in TABLES.values():
        assert len(paper_table(table, {}).rows) == len(table.lines)
        assert paper_csv(table, {}).count("\n") == 1


def test_figures_are_drawn_whatever_there_is(tmp_path: Path) -> None:
    for name in ("table-1", "table-4"):
        for number, some in enumerate(({}, runs())):
            save_figure(draw_table(TABLES[name], some), tmp_path / f"{name}-{number}.png")
            assert (tmp_path / f"{name}-{number}.png").stat().st_size > 5_000
