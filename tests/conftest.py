"""Shared settings of the tests, and where they find the installed program and optional real data."""

import contextlib
import io
import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("polypcount", deadline=None, print_blob=True)
settings.load_profile("polypcount")

# Loading OpenVINO as well would slow down every test that loads an encoder. `tests/encoder` tests the choice.
os.environ["POLYPCOUNT_ENGINE"] = "onnx"

# Real data that is not part of the project; tests that want it skip where it is not there.
DATA = Path(os.environ.get("POLYPCOUNT_DATA", Path(__file__).parents[2] / "shared" / "data"))

Run = Callable[..., "subprocess.CompletedProcess[str]"]


PROGRAM = Path(sys.executable).with_name("polypcount")


@pytest.fixture(scope="session")
def polypcount() -> Run:
    """Run the program inside this process: the same as `program`, without loading every library again."""

    def run(*arguments: object, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        from polypcount.cli.main import main

        out, err, code = io.StringIO(), io.StringIO(), 0
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("default")
            for name, value in {"COLUMNS": "160", **(env or {})}.items():
                patch.setenv(name, value)
            patch.setattr("polypcount.cli.progress._SECONDS_BETWEEN_LINES", 60.0)  # a busy machine shows no more lines
            patch.setattr(sys, "argv", ["polypcount", *map(str, arguments)])
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    main()
                except SystemExit as end:
                    code = end.code if isinstance(end.code, int) else int(end.code is not None)
                except Exception:  # with --debug
                    code = 1
                    traceback.print_exc(file=err)
        return subprocess.CompletedProcess([*map(str, arguments)], code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture(scope="session")
def program() -> Run:
    """Run the installed program in a process of its own, as its user would."""
    assert PROGRAM.exists(), "install the package first: pip install -e '.[test]'"

    def run(*arguments: object, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [PROGRAM, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "COLUMNS": "160", **(env or {})},
        )

    return run
