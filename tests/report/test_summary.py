"""The summary over procedures: rows, polyps per colonoscopy, adenoma detection rate."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polypcount.corpus import Video
from polypcount.errors import DataError, FileError
from polypcount.report import SummaryRow, read_histology, refuse_unsuitable_summary, write_report, write_summary
from polypcount.report.histology import detection_rate
from polypcount.report.summary import polyps_per_colonoscopy
from tests.report.reports import report_of
from tests.report.test_page import HOSTILE, Page


def rows_of(*counts: int | None) -> list[SummaryRow]:
    return [
        SummaryRow(f"v{row}", error="it is cut off")
        if count is None
        else SummaryRow(f"v{row}", count, count, count + 1)
        for row, count in enumerate(counts)
    ]


def summary_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found


def test_a_row_for_each_procedure_that_leads_to_its_report(tmp_path: Path) -> None:
    folder = tmp_path / "with space & #1"
    write_report(report_of([1, 2, 1]), folder / "case-01")
    rows = [SummaryRow.of_report(folder / "case-01"), SummaryRow("case-02", error="case-02.mp4 is cut off")]
    write_summary(rows, tmp_path / "out")
    found = summary_of(tmp_path / "out")
    assert found["procedures"] == [
        {
            "name": "case-01",
            "count": 2,
            "low": 1,
            "high": 3,
            "tracklets": 3,
            "frame_count": 720,
            "duration_seconds": 28.8,
            "report": "../with space & #1/case-01/report.html",
            "error": "",
        },
        {
            "name": "case-02",
            **dict.fromkeys(("count", "low", "high", "tracklets", "frame_count", "duration_seconds", "report")),
            "error": "case-02.mp4 is cut off",
        },
    ]
    with (tmp_path / "out" / "summary.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert table[0]["count"] == "2"
    assert table[1]["count"] == ""
    assert table[1]["error"] == "case-02.mp4 is cut off"
    page = Page((tmp_path / "out" / "summary.html").read_text())
    assert [one["href"] for one in page.all("a")] == ["../with%20space%20%26%20%231/case-01/report.html"]
    assert "1 could not be counted." in page.text
    assert "Not counted. case-02.mp4 is cut off" in page.text
    assert "Research software, not a medical device." in page.text


def test_polyps_per_colonoscopy_is_the_mean_of_those_counted(tmp_path: Path) -> None:
    counts = [0, 3, 1, 0, 7, 2]
    rate = polyps_per_colonoscopy(rows_of(*counts, None, None))
    assert rate.procedures == 6
    assert rate.mean == pytest.approx(13 / 6)
    rng = np.random.default_rng(5)
    means = [np.mean(rng.choice(counts, len(counts))) for _ in range(4_000)]
    assert (rate.low, rate.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.17)
    page = Page((write_summary(rows_of(*counts, None), tmp_path) / "summary.html").read_text())
    assert "2.17 polyps per colonoscopy Mean count over 6 procedures. 95 % interval" in page.text
    assert "by bootstrap over procedures" in page.text


@pytest.mark.parametrize(
    ("counts", "mean", "interval"),
    [
        ([], None, None),
        ([None], None, None),
        ([4], 4, None),
        ([0], 0, None),
        ([2, 2, 2], 2, (2, 2)),
        ([0, 0], 0, (0, 0)),
    ],
)
def test_small_cases(
    tmp_path: Path, counts: list[int | None], mean: float | None, interval: tuple[float, float] | None
) -> None:
    write_summary(rows_of(*counts), tmp_path)
    rate = summary_of(tmp_path)["polyps_per_colonoscopy"]
    assert rate["mean"] == mean
    assert (rate["low"], rate["high"]) == (interval or (None, None))
    text = Page((tmp_path / "summary.html").read_text()).text
    assert ("Not defined: no procedure was counted." in text) == (mean is None)
    assert summary_of(tmp_path)["adenoma_detection_rate"] is None
    assert "denoma" not in text


def test_adenoma_detection_rate(tmp_path: Path) -> None:
    histology = {"v0": ["AD", "HP"], "v1": ["SSL", "TSA"], "v3": ["TVA"], "v4": [], "typo": ["AD"]}
    rows = rows_of(2, 2, 0, 1, 0, None)
    write_summary(rows, tmp_path, histology=histology)
    found = summary_of(tmp_path)["adenoma_detection_rate"]
    assert (found["with_adenoma"], found["procedures"], found["without_rows"]) == (2, 6, 2)
    assert found["share"] == pytest.approx(1 / 3)
    assert found["unknown"] == ["typo"]
    assert found["adenomas"] == ["AD", "TA", "TVA", "VA"]
    z, n, p = 1.959963984540054, 6, 1 / 3
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    assert found["low"] == pytest.approx((middle - half) / (1 + z * z / n))
    assert found["high"] == pytest.approx((middle + half) / (1 + z * z / n))
    assert [(row["resected"], row["adenomas"]) for row in summary_of(tmp_path)["procedures"]] == [
        (2, 1),
        (2, 0),
        (None, None),
        (1, 1),
        (0, 0),
        (None, None),
    ]
    text = Page((tmp_path / "summary.html").read_text()).text
    assert "33 % adenoma detection rate 2 of 6 procedures have an adenoma" in text
    assert "Adenomas are AD, TA, TVA, VA; HP, SSL," in text
    assert "names videos that are not among these procedures: typo" in text


def test_no_procedures_have_no_rate() -> None:
    rate = detection_rate([], {})
    assert (rate.share, rate.low, rate.high) == (None, None, None)


def test_two_procedures_of_one_name_cannot_be_told_apart(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the name a;"):
        write_summary([SummaryRow("a", 1), SummaryRow("b", 1), SummaryRow("a", 2)], tmp_path, histology={})
    with pytest.raises(DataError, match=r"histology .* found 'adenoma'"):
        write_summary([SummaryRow("a", 1, 1, 1)], tmp_path, histology={"a": ["adenoma"]})
    assert list(tmp_path.iterdir()) == []


def test_reading_histology(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("size,video,histology\n5,a,AD\n3,a, hp \n,b,\n2,c,ssl\n1,c,No Polyp\n")
    assert read_histology(tmp_path / "h.csv") == {"a": ["AD", "HP"], "b": [], "c": ["SSL", "NO POLYP"]}
    (tmp_path / "h.csv").write_text("video,histology\n")
    assert read_histology(tmp_path / "h.csv") == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "h.csv:1: .*video, histology"),
        ("video,class\na,AD\n", "h.csv:1: .*histology"),
        ("video,histology\na,AD\nb,adenom\n", "h.csv:3: histology .* found 'ADENOM'"),
        ("video,histology\n,AD\n", "h.csv:2: video is empty"),
    ],
)
def test_bad_histology_is_one_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "h.csv").write_text(content)
    with pytest.raises(FileError, match=message) as caught:
        read_histology(tmp_path / "h.csv")
    assert "\n" not in str(caught.value)


def test_an_earlier_summary_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    write_summary(rows_of(1), tmp_path)
    write_summary(rows_of(1, 2), tmp_path)
    assert len(summary_of(tmp_path)["procedures"]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["summary.csv", "summary.html", "summary.json"]
    with pytest.raises(FileError, match="summary") as caught:
        refuse_unsuitable_summary(tmp_path)
    assert caught.value.mend == ("force",)
    for content in ('{"format": "other"}', "[]"):
        (tmp_path / "summary.json").write_text(content)
        with pytest.raises(FileError, match=r"summary\.csv is not part of a summary"):
            write_summary(rows_of(1), tmp_path)
    (tmp_path / "summary.json").unlink()
    with pytest.raises(FileError, match="is not part of a summary"):
        write_summary(rows_of(1), tmp_path)


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match="file: the summary cannot be written: ") as caught:
        write_summary(rows_of(1), tmp_path / "file")
    assert "\n" not in str(caught.value)


def test_texts_from_elsewhere_stay_texts(tmp_path: Path) -> None:
    folder = write_report(report_of([1], video=Video(HOSTILE, 900, 25)), tmp_path / "javascript:alert(1)")
    rows = [SummaryRow.of_report(folder), SummaryRow("=cmd()", error=HOSTILE)]
    write_summary(rows, tmp_path, histology={HOSTILE: ["AD"], "<script>x": []})
    html = (tmp_path / "summary.html").read_text()
    assert "<script" not in html
    (link,) = Page(html).all("a")
    assert link["href"] == "javascript%3Aalert%281%29/report.html"
    assert Page(html).text.count("<script>alert(1)</script>\" onload='x' {{ 7*7 }} &amp;") == 2
    with (tmp_path / "summary.csv").open(newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == [HOSTILE, "'=cmd()"]
