"""Ctrl-C and SIGTERM: one line, the usual exit code, and no half of anything, in every verb."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from tests.cli.test_count import case_in
from tests.conftest import Run
from tests.counting.recordings import boxes

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
KINDS = pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])


def stopped(arguments: tuple[object, ...], kind: signal.Signals, ready: Callable[[], bool]) -> tuple[int, list[str]]:
    """Send a signal to the program once something is there; gives its exit code and its lines on standard error."""
    command = [sys.executable, "-m", "polypcount", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not ready() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(kind)
    messages = process.communicate(timeout=60)[1]
    return process.returncode, [line for line in messages.splitlines() if " s left" not in line]


def files_below(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*")) if folder.exists() else []


def test_while_drawing_in_several_processes(tmp_path: Path) -> None:
    pixels = tmp_path / "out" / "pixels"
    command = ("simulate", tmp_path / "out", "--procedures", 2, "--minutes", 0.2, "--size", "160x128")

    def drawing() -> bool:
        return any(".mp4." in name and name.startswith(".") for name in files_below(pixels))

    code, lines = stopped(command, signal.SIGTERM, drawing)
    assert (code, lines) == (143, ["polypcount: stopped; the same command continues from here"])
    assert all(not name.startswith(".") for name in files_below(pixels))
    assert not (tmp_path / "out" / "corpus.json").exists()


@KINDS
def test_while_modules_are_imported(tmp_path: Path, kind: signal.Signals) -> None:
    """A module that takes long to import stands for all; the program has answered signals since before."""
    (tmp_path / "typer.py").write_text(
        "import pathlib, time\npathlib.Path(__file__).with_name('importing').touch()\ntime.sleep(30)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    process = subprocess.Popen(
        [sys.executable, "-m", "polypcount", "doctor"], env=environment, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 30
    while not (tmp_path / "importing").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(kind)
    assert process.communicate(timeout=30)[1] == "polypcount: stopped\n"
    assert process.returncode == CODES[kind]


@KINDS
@pytest.mark.parametrize(("module", "step"), [("counting.basis", "decide"), ("report.write", "report_page")])
def test_while_counting(
    tmp_path: Path, kind: signal.Signals, module: str, step: str, polypcount: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        os.kill(os.getpid(), kind)
        time.sleep(10)

    video, table = case_in(tmp_path, "case", boxes(tracks=True))
    before = set(tmp_path.iterdir())
    monkeypatch.setattr(import_module(f"polypcount.{module}"), step, stop)
    done = polypcount("count", video, "--boxes", table, "--out", tmp_path / "out")
    assert (done.returncode, done.stderr) == (CODES[kind], "polypcount: stopped\n")
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "verb", ["import", "embed", "study", "reproduce", "doctor", "check", "demo", "merge", "export"]
)
def test_every_verb_says_one_line(verb: str, polypcount: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped by a signal in its first step."""

    def stop() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)

    from polypcount.cli import main

    (command,) = (each for each in main.app.registered_commands if each.name == verb)
    monkeypatch.setattr(command, "callback", stop)
    done = polypcount(verb)
    assert (done.returncode, done.stderr) == (143, "polypcount: stopped\n")


def test_a_process_that_ignores_the_signal_keeps_ignoring_it(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "from polypcount.cli.start import stoppable\n"
        "with stoppable(): os.kill(os.getpid(), signal.SIGTERM); print('on')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "on\n")


@KINDS
def test_before_the_verb_begins(polypcount: Run, kind: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """Typer would end here without a word, and always with 130."""
    from polypcount.cli import main

    def stop(*_: object, **__: object) -> None:
        os.kill(os.getpid(), kind)
        time.sleep(10)

    monkeypatch.setattr(main._Program, "make_context", stop)
    done = polypcount("doctor")
    assert (done.returncode, done.stderr) == (CODES[kind], "polypcount: stopped\n")
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler


@KINDS
@pytest.mark.parametrize("how", ["a callback of the garbage collector", "an error of a library"])
def test_a_stop_that_is_swallowed(
    polypcount: Run, kind: signal.Signals, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes in a callback, whose errors Python drops, or a library makes an error of its own of it."""
    from polypcount.cli import main

    class Dropped:
        def __del__(self) -> None:
            os.kill(os.getpid(), kind)
            time.sleep(0.01)

    def lose() -> None:
        if how == "an error of a library":
            try:
                os.kill(os.getpid(), kind)
                time.sleep(10)
            except KeyboardInterrupt:
                raise ImportError("initialization failed") from None
        Dropped()
        time.sleep(10)

    (command,) = (each for each in main.app.registered_commands if each.name == "doctor")
    monkeypatch.setattr(command, "callback", lose)
    done = polypcount("doctor")
    assert (done.returncode, done.stderr) == (CODES[kind], "polypcount: stopped\n")
