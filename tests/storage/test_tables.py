"""CSV files: no formulas for spreadsheets, and what is written is read back."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polypcount.errors import FileError
from polypcount.storage import csv_cell, csv_text, csv_value, read_rows, read_table, write_text

FORMULA = "=+-@\t\r\n"
# Texts that begin like a formula, like a guarded one, or like a number, and any others.
TEXTS = st.tuples(st.sampled_from(["", "'", "''", '"', "-1", " "]), st.sampled_from(["", *FORMULA]), st.text()).map(
    "".join
)
WRITABLE = TEXTS.filter(lambda text: not any("\ud800" <= letter <= "\udfff" for letter in text))


@given(TEXTS)
def test_every_text_is_given_back(text: str) -> None:
    assert csv_value(csv_cell(text)) == text


@given(TEXTS)
def test_no_cell_begins_like_a_formula(text: str) -> None:
    cell = csv_cell(text)
    if cell[:1] in tuple(FORMULA):
        float(cell)  # a number may have a sign


@given(TEXTS, TEXTS)
def test_different_texts_are_different_cells(one: str, other: str) -> None:
    assert (csv_cell(one) == csv_cell(other)) == (one == other)


@pytest.mark.parametrize("text", ["-1", "+2.5", "-.5e-3", "1", "", "polyp", "it's", "'quoted'"])
def test_plain_text_and_numbers_stay_as_they_are(text: str) -> None:
    assert csv_cell(text) == text


@pytest.mark.parametrize("text", ["-inf", "+nan", "-1_000", "-1-1", "=1", "@SUM(A1)", "\t=1"])
def test_what_a_spreadsheet_would_compute_is_guarded(text: str) -> None:
    assert csv_cell(text) == f"'{text}"


@given(st.lists(st.tuples(WRITABLE, WRITABLE.filter(bool)), max_size=5))
def test_tables_are_read_back(rows: list[tuple[str, str]]) -> None:
    text = csv_text(("a", "b"), rows)
    read = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert [tuple(map(csv_value, row)) for row in read[1:]] == rows


def test_a_table_with_lines_in_cells(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write_text(path, csv_text(("video", "note"), [("=1", "two\nlines"), ("b\rc", "")]) + "\nshort\n")
    expected = [(3, {"video": "=1", "note": "two\nlines"}), (4, {"video": "b\rc", "note": ""})]
    table = read_table(path, ("video",))
    assert [row for _, row in table] == [*(row for _, row in expected), {"video": "short", "note": ""}]
    assert table[0][0] == expected[0][0]
    assert [cells for _, cells in read_rows(path)][1] == ["'=1", "two\nlines"]
    path.write_text('video\n"open')
    with pytest.raises(FileError, match=r"a.csv:2: not readable as CSV"):
        read_table(path, ("video",))
