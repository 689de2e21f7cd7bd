"""What a report must not tell."""

import subprocess
import sys
from pathlib import Path

from tests.cli.test_count import case_in
from tests.conftest import Run
from tests.counting.recordings import boxes


def written(folder: Path) -> str:
    """All that stands in the text files below a folder."""
    kinds = {".html", ".json", ".csv", ".txt", ".xml"}
    return "".join(file.read_text() for file in sorted(folder.rglob("*")) if file.suffix in kinds)


def test_folders_stay_out_of_reports_and_summaries(tmp_path: Path) -> None:
    place = tmp_path / "patients" / "smith_john"
    place.mkdir(parents=True)
    case_in(place, "rec1", boxes(tracks=True))
    case_in(place, "rec2", boxes(tracks=True))
    (place / "rec2.mp4").write_bytes(b"no video")
    program = Path(sys.executable).with_name("polypcount")
    relative = "patients/smith_john"
    arguments = ["count", f"{relative}/rec1.mp4", f"{relative}/rec2.mp4", "--boxes-dir", f"{relative}/boxes"]
    done = subprocess.run([program, *arguments, "--out", "out"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    found = written(tmp_path / "out")
    assert "rec2.mp4" in found
    assert "smith_john" not in found
    assert str(tmp_path) not in found


def test_a_histology_table_of_a_whole_year_brings_no_names(tmp_path: Path, polypcount: Run) -> None:
    one, _ = case_in(tmp_path, "one", boxes(tracks=True))
    two, _ = case_in(tmp_path, "two", boxes(tracks=True))
    (tmp_path / "year.csv").write_text("video,histology\none,AD\nDOE_Jane_1970,AD\n")
    asked = ("--boxes-dir", tmp_path / "boxes", "--out", tmp_path / "out", "--pseudonyms", tmp_path / "key.csv")
    done = polypcount("count", one, two, *asked, "--histology", tmp_path / "year.csv")
    assert done.returncode == 0, done.stderr
    found = written(tmp_path / "out")
    assert "DOE_" not in found, "three letters alone occur by chance in the pictures, which are kept as text"
    assert "one.mp4" not in found
    assert "adenoma" in found.lower()


def test_an_earlier_summary_is_not_replaced(tmp_path: Path, polypcount: Run) -> None:
    one, _ = case_in(tmp_path, "one", boxes(tracks=True, only=slice(0, 1)))
    two, _ = case_in(tmp_path, "two", boxes(tracks=True, only=slice(0, 1)))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "summary.csv").write_text("mine")
    refused = polypcount("count", one, two, "--boxes-dir", tmp_path / "boxes", "--out", tmp_path / "out")
    assert refused.returncode == 2
    assert "summary.csv" in refused.stderr
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == ["summary.csv"]
