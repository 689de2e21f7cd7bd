"""An import that was killed goes on, and ends as if nothing had happened."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from polypcount.corpus import Corpus

from ..conftest import Run
from .miniatures import real_colon

PROGRAM = Path(sys.executable).with_name("polypcount")


def test_killed_and_started_again(tmp_path: Path, polypcount: Run) -> None:
    root = real_colon(tmp_path / "data", {f"001-{n:03d}": 3 for n in range(1, 9)}, frames=700)
    undisturbed = tmp_path / "undisturbed"
    assert polypcount("import", "real-colon", root, "--out", undisturbed, "--no-cache").returncode == 0
    cache, out = tmp_path / "cache", tmp_path / "out"
    command = [str(PROGRAM), "import", "real-colon", str(root), "--out", str(out)]
    environment = {**os.environ, "POLYPCOUNT_CACHE": str(cache)}
    process = subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (kept := list((cache / "imports").glob("*/corpus.json"))) and time.monotonic() < deadline:
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert kept
    assert not (out / "corpus.json").exists(), "killed before it was done"
    done = list((cache / "imports").glob("*/corpus.json"))
    assert len(done) < 8
    again = polypcount(*command[1:], env={"POLYPCOUNT_CACHE": str(cache)})
    assert again.returncode == 0
    assert Corpus.load(out).content_hash == Corpus.load(undisturbed).content_hash
    assert all(path.exists() for path in done), "what was read before is used, not read again"
