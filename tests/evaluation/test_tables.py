"""Tables: ids from elsewhere cannot break a row."""

import csv
import io

from polypcount.corpus import Embeddings, Polyp, Video
from polypcount.evaluation import leave_one_out
from polypcount.evaluation.tables import Table, summary_csv, summary_table, video_csv, video_table
from tests.evaluation.embedded import embedded


def with_ids(base: Embeddings, names: list[str]) -> Embeddings:
    """The same embeddings with other names of videos."""
    renamed = {video.id: name for video, name in zip(base.videos, names, strict=True)}
    return Embeddings(
        [Video(name, 100_000) for name in names],
        [Polyp(polyp.id, renamed[str(polyp.video)]) for polyp in base.polyps],
        base.video,
        base.start_frame,
        base.stop_frame,
        base.box_count,
        base.polyp,
        base.vectors,
    )


def test_ids_stay_in_their_cells() -> None:
    names = ["[red]|a\\|b", "=1+1", "a\nb & c_d %", 'plain, "quoted"']
    study = leave_one_out(with_ids(embedded([[3, 2], [2, 2], [2, 3], [4, 1]]), names), ["none", "ap"], grid="coarse")
    table = video_table(study)
    assert [row[0] for row in table.rows] == names
    lines = table.to_markdown().splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    assert len(rows) == 2 + 4
    assert rows[2].startswith("| [red]\\|a\\\\\\|b | ")
    assert rows[4].startswith("| a b & c_d % | ")
    latex = table.to_latex().splitlines()
    assert any(line.startswith(r"{}[red]") for line in latex), "a bracket would be an option of the row before"
    assert any(line.startswith(r"{}a b \& c\_d \% & ") for line in latex)
    read = list(csv.DictReader(io.StringIO(video_csv(study))))
    assert [row["video"] for row in read if row["method"] == "none"] == [names[0], "'=1+1", *names[2:]]


def test_cells_are_the_numbers_of_the_study() -> None:
    study = leave_one_out(embedded([[3, 2], [2, 2], [6]], seed=1), ["none", "ap"], grid="coarse")
    table = summary_table(study)
    row = dict(zip(table.header, table.rows[0], strict=True))
    assert row["method"] == "none"
    assert row["FR"] == "3.50 ± 2.18"  # of 2.5, 2 and 6: mean 3.5, and sqrt((1 + 2.25 + 6.25) / 2)
    assert row["FPR"] == "0.0000 ± 0.0000"
    assert row["FPR selected at"] == "-"
    assert "2 of 3 videos" in table.notes[2]
    means = {(row["method"], row["score"]): row for row in csv.DictReader(io.StringIO(summary_csv(study)))}
    assert float(means["none", "fr"]["mean"]) == 3.5
    assert (means["none", "fpr"]["count"], means["none", "fpr"]["total"]) == ("2", "3")
    assert means["none", "selected_fpr"]["mean"] == "", "undefined is empty"


def test_a_table_without_rows() -> None:
    empty = Table("Nothing", ("a", "b"), ())
    assert empty.to_markdown() == "## Nothing\n\n| a | b |\n| --- | ---: |\n"
    assert empty.to_latex().count(r"\\") == 1
