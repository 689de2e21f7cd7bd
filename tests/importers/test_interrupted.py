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


def killed_halfway(command: list[str], cache: Path, out: Path) -> list[Path]:
    """Run an import and kill it once something is in the cache; what it had kept by then."""
    environment = {**os.environ, "POLYPCOUNT_CACHE": str(cache)}
    process = subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list((cache / "imports").glob("*/corpus.json")) and time.monotonic() < deadline:
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return [] if out.exists() else list((cache / "imports").glob("*/corpus.json"))


def test_killed_and_started_again(tmp_path: Path, polypcount: Run) -> None:
    root = real_colon(tmp_path / "data", {f"001-{n:03d}": 3 for n in range(1, 9)}, frames=700)
    undisturbed = tmp_path / "undisturbed"
    assert polypcount("import", "real-colon", root, "--out", undisturbed, "--no-cache").returncode == 0
    # On a busy machine the kill may come after the end; then it is tried again with nothing kept.
    for attempt in range(10):
        cache, out = tmp_path / f"cache {attempt}", tmp_path / f"out {attempt}"
        command = [str(PROGRAM), "import", "real-colon", str(root), "--out", str(out)]
        if kept := killed_halfway(command, cache, out):
            break
    assert 0 < len(kept) <= 8
    times = {path: path.stat().st_mtime_ns for path in kept}
    again = polypcount(*command[1:], env={"POLYPCOUNT_CACHE": str(cache)})
    assert again.returncode == 0
    assert Corpus.load(out).content_hash == Corpus.load(undisturbed).content_hash
    assert {path: path.stat().st_mtime_ns for path in kept} == times, "what was read before is used, not read again"
