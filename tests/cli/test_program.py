"""The installed program, run as its user would."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import polypcount as package
from polypcount.cli.main import app
from polypcount.cli.texts import with_options
from polypcount.corpus import Boxes, Corpus, Polyp, Video
from polypcount.errors import DataError
from polypcount.report import read_count

from ..conftest import Run

HEAVY = (
    "torch",
    "lightning",
    "transformers",
    "matplotlib",
    "fastapi",
    "numba",
    "onnxruntime",
    "sklearn",
    "jinja2",
    "pydantic",
    "trackers",
)


@pytest.mark.parametrize(
    "code",
    [
        "import polypcount",
        "import sys; sys.argv = ['polypcount', '--help']; from polypcount.cli.main import main; main()",
    ],
)
def test_import_and_help_load_nothing_heavy(code: str) -> None:
    tell = f"import atexit, sys; atexit.register(lambda: print('HEAVY', [n for n in {HEAVY} if n in sys.modules]))\n"
    done = subprocess.run([sys.executable, "-c", tell + code], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_version_and_help(polypcount: Run) -> None:
    assert polypcount("--version").stdout.startswith("polypcount 0.")
    help_page = polypcount("--help").stdout
    for verb in [command.name for command in app.registered_commands]:
        assert f" {verb} " in help_page
        assert polypcount(verb, "--help").returncode == 0


def test_completion(polypcount: Run) -> None:
    asked = {"_POLYPCOUNT_COMPLETE": "complete_bash", "COMP_WORDS": "polypcount d", "COMP_CWORD": "1"}
    assert polypcount(env=asked).stdout.split() == ["demo", "doctor"]


def test_demo_counts_a_procedure_and_says_the_truth(polypcount: Run, tmp_path: Path) -> None:
    done = polypcount("demo", "--minutes", 0.2, "--out", tmp_path / "demo", "--seed", 3)
    assert done.returncode == 0, done.stderr
    assert "1 synthetic polyp" in done.stdout
    assert re.search(r"Counted \d .* tracklets?; there is 1\.", done.stdout), "the truth, whatever is counted"
    assert read_count(tmp_path / "demo" / "report")["count"] <= 2
    assert (tmp_path / "demo" / "report" / "report.html").exists()
    again = polypcount("demo", "--out", tmp_path / "demo")
    assert again.returncode == 2
    assert str(tmp_path / "demo") in again.stderr


def test_simulate_then_check(polypcount: Run, tmp_path: Path) -> None:
    out = tmp_path / "sim"
    command = ("simulate", "--timelines-only", out, "--procedures", 2, "--seed", 7, "--like", "study")
    done = polypcount(*command)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(Corpus.load(out).videos) == 2
    checked = polypcount("check", out)
    assert checked.returncode == 0
    assert checked.stdout.splitlines()[1:] == ["found: nothing wrong"]
    again = polypcount(*command)
    assert again.returncode == 2
    assert again.stderr.startswith(f"polypcount: {out} ")
    assert again.stderr.endswith("(--force)\n")
    assert polypcount(*command, "--force").returncode == 0


def test_check_names_every_kind_of_defect(polypcount: Run, tmp_path: Path) -> None:
    box, over, off = [0, 0, 9, 9], [95, 0, 105, 9], [200, 0, 210, 9]
    folder = tmp_path / "frames"
    folder.mkdir()
    for number in (0, 2):
        (folder / f"{number}.png").write_bytes(b"")
    corpus = Corpus(
        (
            Video("a", 9, fps=1, split="train", width=100, height=100),
            Video("b", 2, source=str(folder), split="val"),
            Video("c", 2, source=str(folder), split="train"),
            Video("d", 0),
            Video("e", 5, source=str(tmp_path / "gone.mp4")),
        ),
        Boxes([0, 0, 0, 0, 1, 2], [0, 1, 2, 2, 0, 0], [over, off, box, box, box, box], polyp=[0, 0, 0, 0, 0, -1]),
        (Polyp("p"),),
    )
    corpus.save(tmp_path / "bad")
    done = polypcount("check", tmp_path / "bad", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert {finding["kind"] for finding in found["findings"]} == {
        "box outside image",
        "duplicate boxes",
        "polyp twice in a frame",
        "gap in frame numbers",
        "polyp in two videos",
        "empty video",
        "implausible fps",
        "missing source",
        "video in two splits",
        "polyp in two splits",
    }
    assert found["corpora"][0]["boxes"] == 6
    table = polypcount("check", tmp_path / "bad")
    assert table.returncode == 1
    for finding in found["findings"]:
        assert finding["kind"] in table.stdout
    told = [f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in found["counts"].items()]
    assert table.stdout.splitlines()[-1] == f"found: {', '.join(told)}"


def test_a_terminal_is_not_at_the_mercy_of_ids(polypcount: Run, tmp_path: Path) -> None:
    Corpus((Video("evil\x1b[31m\nid", 0),)).save(tmp_path / "c")
    shown = polypcount("check", tmp_path / "c").stdout
    assert "\x1b" not in shown
    assert "evil\\x1b[31m id" in shown


def test_a_fault_of_ours_is_told_in_a_line() -> None:
    code = "import sys; sys.argv = ['polypcount', 'doctor']\nfrom polypcount.cli import doctor, main\n"
    code += "doctor.examine = lambda: 1 / 0\nmain.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 3
    assert done.stderr == (
        "polypcount: ZeroDivisionError: division by zero (a fault in polypcount; --debug shows where)\n"
    )


def test_a_broken_library_does_not_stop_the_doctor(program: Run, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise AttributeError()")
    done = program("doctor", "--json", env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 0
    assert json.loads(done.stdout)["machine"]["torch_cuda_devices"].startswith(
        "installed, but does not load: AttributeError"
    )


def test_splits_are_compared(polypcount: Run, tmp_path: Path) -> None:
    for name in ("train", "val"):
        polypcount("simulate", "--timelines-only", tmp_path / name, "--procedures", 1, "--like", "study")
    done = polypcount("check", tmp_path / "train", tmp_path / "val")
    assert done.returncode == 1
    assert "video in two splits" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("check", "FILE"), "file"),
        (("check", "nowhere"), "nowhere"),
        (("simulate", "FILE"), "file"),
        (("simulate", "x", "--size", "161x128"), "161x128"),
        (("simulate", "x", "--stills", "nowhere"), "nowhere"),
        (("simulate", "x", "--timelines-only", "--size", "big"), "--size"),
        (("simulate", "/proc/x", "--timelines-only", "--procedures", 1), "/proc/x"),
        (("simulate", "PARENT", "--timelines-only"), "corpus"),
    ],
)
def test_bad_input_gives_one_line_and_exit_code_2(
    polypcount: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("no corpus")
    paths = {"FILE": tmp_path / "file", "PARENT": tmp_path}
    done = polypcount(*(paths.get(argument, argument) for argument in arguments))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert name in done.stderr


def test_debug_shows_the_traceback(polypcount: Run) -> None:
    assert "Traceback" in polypcount("check", "nowhere", "--debug").stderr


def test_errors_name_the_option_that_helps() -> None:
    error = DataError("no", mend=("min_frames", "detector.size", "boxes_format"))
    assert with_options(error) == "no (--min-frames, --detector-set size=..., --format)"
    assert with_options(DataError("no")) == "no"


def test_bad_usage_has_exit_code_2(polypcount: Run) -> None:
    assert polypcount("simulate", "--timelines-only", "x", "--procedures", 0).returncode == 2
    assert polypcount("nonsense").returncode == 2


def test_doctor(polypcount: Run) -> None:
    done = polypcount("doctor", "--json", env={"POLYPCOUNT_CACHE": "/caches"})
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["versions"]["numpy"]
    assert found["versions"]["polypcount"]
    assert set(found["extras"]) >= {"train", "cluster", "dicom", "fast", "test"}
    assert found["extras"]["train"]["torch"], "the tests' own extra brings torch"
    assert found["machine"]["cores"] >= 1
    assert found["machine"]["memory_gib"] > 0
    assert found["machine"]["torch_cuda_devices"] is not None
    assert found["folders"]["caches"] == "/caches"
    assert found["encoder"]["bundled"] == bundled_fingerprint()
    page = polypcount("doctor").stdout
    assert all(word in page for word in ("versions", "extras", "machine", "folders", "encoder"))


def bundled_fingerprint() -> str | None:
    file = Path(package.__file__).parent / "encoder" / "bundled" / "encoder.json"
    return str(json.loads(file.read_text())["fingerprint"]) if file.exists() else None


@pytest.mark.parametrize("option", ["--boxes", "--boxes-dir", "--encoder", "--out", "--mask", "--size"])
def test_an_empty_value_is_refused(polypcount: Run, option: str) -> None:
    done = polypcount("count", "case.mp4", option, "")
    assert (done.returncode, done.stderr) == (2, f"polypcount: {option} is given without a value\n")


def test_a_number_beyond_all_polyps_is_refused(polypcount: Run) -> None:
    done = polypcount("count", "case.mp4", "--polyps", "9" * 40)
    assert done.returncode == 2
    assert "polyps must be at most 1000000000" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_closed_streams_do_no_harm(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "polypcount", "simulate", str(tmp_path / "out"), "--procedures", "1"]
    command += ["--minutes", "0.2", "--size", "96x80", "--as", "scenes"]
    done = subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *command], timeout=120)
    assert done.returncode == 0
    assert Corpus.load(tmp_path / "out").videos
