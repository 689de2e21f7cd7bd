"""What a report must not tell."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

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
    private = tmp_path / "out" / "rec1" / "review" / "recording.json"
    assert json.loads(private.read_text())["source"] == str(place / "rec1.mp4")
    assert private.stat().st_mode & 0o077 == 0
    private.unlink()
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
    assert "DOE_Jane" not in found  # shorter texts may stand in the bytes of a picture
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


def named_then_pseudonyms(tmp_path: Path, polypcount: Run) -> tuple[object, ...]:
    """Count two recordings under their names; gives the command that counts them under pseudonyms."""
    for name in ("smith", "jones"):
        case_in(tmp_path, name, boxes(tracks=True, only=slice(0, 1)))
    sources = (tmp_path / "smith.mp4", tmp_path / "jones.mp4")
    asked = ("count", *sources, "--boxes-dir", tmp_path / "boxes", "--out", tmp_path / "out")
    assert polypcount(*asked).returncode == 0
    return (*asked, "--pseudonyms", tmp_path / "keys.csv")


def test_reports_under_pseudonyms_replace_those_under_names(tmp_path: Path, polypcount: Run) -> None:
    asked = named_then_pseudonyms(tmp_path, polypcount)
    refused = polypcount(*asked)
    assert (refused.returncode, "--force" in refused.stderr) == (2, True)
    done = polypcount(*asked, "--force")
    assert done.returncode == 0, done.stderr
    left = list((tmp_path / "out").rglob("*"))
    assert all("smith" not in path.name and "jones" not in path.name for path in left)
    assert "smith" not in written(tmp_path / "out")
    assert sum(path.name == "report.html" for path in left) == 2


def test_what_is_not_counted_again_is_not_removed(tmp_path: Path, polypcount: Run) -> None:
    asked = named_then_pseudonyms(tmp_path, polypcount)
    (tmp_path / "out" / "smith").rename(tmp_path / "out" / "doe")
    for name, message in (("doe", "out/doe is a report under the name of its recording; move it"), ("jones", "mine")):
        done = polypcount(*asked, "--force")
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert message in line
        assert (tmp_path / "out" / name / "report.html").exists()
        if name == "doe":
            (tmp_path / "out" / "doe").rename(tmp_path / "doe")
            (tmp_path / "out" / "jones" / "mine").touch()  # of somebody else


def test_a_name_that_stays_is_said(tmp_path: Path, polypcount: Run) -> None:
    asked = named_then_pseudonyms(tmp_path, polypcount)
    (tmp_path / "smith.mp4").write_bytes(b"no video any more")
    done = polypcount(*asked, "--force")
    assert done.returncode == 2
    assert f"{tmp_path}/out/smith is still there, under the name of the recording" in done.stderr
    assert (tmp_path / "out" / "smith" / "report.html").exists()
    assert not (tmp_path / "out" / "jones").exists()


def test_of_one_recording_too(tmp_path: Path, polypcount: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    case_in(tmp_path, "smith", boxes(tracks=True, only=slice(0, 1)))
    monkeypatch.chdir(tmp_path)
    asked = ("count", "smith.mp4", "--boxes", "boxes/smith.csv")
    assert polypcount(*asked).returncode == 0
    (tmp_path / "keys.csv").write_text("pseudonym,recording\n")
    (tmp_path / "keys.csv").chmod(0o644)
    done = polypcount(*asked, "--pseudonyms", "keys.csv", "--force")
    assert done.returncode == 0, done.stderr
    assert "smith-count is removed" in done.stdout
    (folder,) = tmp_path.glob("*-count")
    assert folder.name.startswith("procedure_")
    assert (tmp_path / "keys.csv").stat().st_mode & 0o777 == 0o600
