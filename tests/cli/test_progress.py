"""Progress: plain lines where there is no terminal, a bar where there is one."""

import os
import pty
import sys
from pathlib import Path

import pytest

from polypcount.cli.progress import show_progress


def test_plain_lines_come_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter([0.0, 1.0, 6.0, 7.0, 12.0])
    monkeypatch.setattr("polypcount.cli.progress.time.monotonic", lambda: next(clock))
    with show_progress("working") as progress:
        for done in range(501, 506):  # 500 had been done by an earlier run
            progress(done, 1000)
    assert capsys.readouterr().err.splitlines() == [
        "working: 503 of 1,000, about 1491 s left",
        "working: 505 of 1,000, about 1485 s left",
    ]


def test_a_terminal_gets_a_bar(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("polypcount")
    child, terminal = pty.fork()
    if child == 0:
        arguments = ["polypcount", "simulate", "--timelines-only", str(tmp_path / "s"), "--procedures", "40"]
        os.execv(program, arguments)
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    assert os.waitpid(child, 0)[1] == 0
    assert b"simulating procedures" in shown
    assert b"/40" in shown
