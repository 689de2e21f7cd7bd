"""Compiled functions where nothing can be kept."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of Unix")

LIMITED = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
"""
NO_FOLDER = """
from numba.core import caching
for locator in [each for each in vars(caching).values() if hasattr(each, "ensure_cache_path")]:
    locator.ensure_cache_path = lambda self: open("/proc/nowhere/x", "w")
"""
SCRIPT = """
from polypcount.compiled import compiled

@compiled()
def double(number):
    return 2 * number

print(double(21))
"""


@pytest.mark.parametrize("where", [LIMITED, NO_FOLDER, ""], ids=["a full disk", "no folder", "the usual"])
def test_it_works_everywhere(tmp_path: Path, where: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(where + SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr
    assert bool(list(tmp_path.rglob("*.nbi"))) == (where == "")
