"""Shared settings of the tests, and where they find the installed program and optional real data."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("polypcount", deadline=None, print_blob=True)
settings.load_profile("polypcount")

# Real data that is not part of the project; tests that want it skip where it is not there.
DATA = Path(os.environ.get("POLYPCOUNT_DATA", Path(__file__).parents[2] / "shared" / "data"))

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def polypcount() -> Run:
    """Run the installed program, as its user would."""
    program = Path(sys.executable).with_name("polypcount")
    assert program.exists(), "install the package first: pip install -e '.[test]'"

    def run(*arguments: object, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [program, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "COLUMNS": "160", **(env or {})},
        )

    return run
