"""What hostile and odd input does to the program: every case must be accepted, or refused with a named error.

A case runs the program in a process of its own, with limits on time and address space. It is judged by the exit code
(0, or 2 with at most a few lines), by what it prints (no traceback, no planted secret), and by what it leaves on disk
(the output or nothing). The cases named "damaged" call a reader of the library on many damaged copies of a good file in
one process, and accept a value or a `PolypcountError`. The cases are in hostile_*.py; the seed is fixed.

Run: .venv/bin/python benchmarks/hostile.py   (about 8 minutes; exit code 1 if anything else happened)
"""

import argparse
import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # for tests.detection and tests.video, which build small models

from benchmarks import hostile_data, hostile_media, hostile_models, hostile_usage
from benchmarks.hostile_inputs import SECRET, UNSET, Case, Cases, Material, Mutated

from polypcount.storage import is_unfinished

_SECONDS, _ADDRESS_SPACE = 60, 8 << 30
_MOST_LINES = 12  # of an error; what typer says about a wrong option is a frame of a few lines
_FORBIDDEN = (b"Traceback", b"a fault in polypcount", b"MemoryError", b"Segmentation", SECRET.encode())
KINDS: dict[str, Callable[[Material, int], Cases]] = {
    "boxes": hostile_data.boxes,
    "videos and images": hostile_media.videos,
    "DICOM": hostile_media.dicom,
    "encoder folders": hostile_models.encoders,
    "detectors": hostile_models.detectors,
    "recipes": hostile_models.recipes,
    "scenes and corpora": hostile_data.scenes_and_corpora,
    "tables and reports": hostile_data.tables,
    "output folders": hostile_usage.outputs,
    "command line": hostile_usage.command_line,
}
_MODULES = ["cli.main", "counting", "report", "importers", "detection", "encoder", "simulate", "video.dicom"]


@dataclass
class Row:
    """What came out of one kind of input."""

    outcomes: Counter[str] = field(default_factory=Counter)
    others: list[str] = field(default_factory=list)
    peak_mb: float = 0
    longest: float = 0

    def add(self, outcome: str, what: str, seconds: float, mb: float) -> None:
        """Count one outcome: "accepted", "refused", or anything else in words."""
        self.outcomes[outcome if outcome in ("accepted", "refused") else "other"] += 1
        if outcome not in ("accepted", "refused"):
            self.others.append(f"{what}: {outcome}")
        self.peak_mb, self.longest = max(self.peak_mb, mb), max(self.longest, seconds)


def in_child(work: Callable[[], int], cwd: Path, log: Path, seconds: float) -> tuple[int | None, float, float]:
    """Run a function in a forked process with limits; gives its exit code (None: too slow), seconds, and peak MB."""
    began = time.monotonic()
    if (child := os.fork()) == 0:
        code = 99
        with contextlib.suppress(BaseException):
            os.setsid()
            os.chdir(cwd)
            resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
            for number, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(f"{log}.{name}", os.O_CREAT | os.O_TRUNC | os.O_WRONLY), number)
            sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
            code = work()
            sys.stdout.flush()
        os._exit(code)
    while True:
        done, status, used = os.wait4(child, os.WNOHANG)
        if done or time.monotonic() - began > seconds:
            break
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # also what it may have started
    if not done:
        _, _, used = os.wait4(child, 0)
    lived = time.monotonic() - began
    return (os.waitstatus_to_exitcode(status) if done else None), lived, used.ru_maxrss / 1000


def run_program(arguments: list[str], environment: Mapping[str, str]) -> int:
    """The program with these arguments, in this process; gives its exit code."""
    from polypcount.cli.start import main

    os.environ.update(environment)
    sys.argv = ["polypcount", *arguments]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def run_installed(case: Case) -> int:
    """The program as a user starts it: with Python's own start and end, and through a shell where the case has one."""
    command = [sys.executable, "-m", "polypcount", *case.arguments]
    if case.shell:
        command = ["bash", "-c", f"set -o pipefail; {case.shell}", "bash", *command]
    environment = {**os.environ, **case.environment}
    environment = {name: value for name, value in environment.items() if value != UNSET}
    return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL).returncode


def files_below(folders: Sequence[Path], outputs: Sequence[str]) -> set[Path]:
    """All files, folders and links below these folders, without what is inside outputs."""
    found = set()
    for folder in folders:
        for above, names, files in os.walk(folder):
            found |= {Path(above, name) for name in [*names, *files]}
            names[:] = [name for name in names if name not in outputs]
    return found


def judge(case: Case, code: int | None, log: Path, new: set[Path]) -> str:
    """The outcome of a case in words: "accepted", "refused", or what went wrong."""
    said = [Path(f"{log}.{name}").read_bytes() for name in ("out", "err")]
    if code is None:
        return f"not done after {_SECONDS} s"
    if code not in case.codes:
        return f"exit code {code}: {said[1][-300:].decode(errors='replace')!r}"
    for word in _FORBIDDEN:
        if word in b"".join(said):
            return f"printed {word.decode()!r}: {b''.join(said)[-300:].decode(errors='replace')!r}"
    if b"\x1b" in b"".join(said):
        return "printed an escape character"
    lines = said[1].decode(errors="replace").strip().splitlines()
    if code == 2 and (len(lines) > _MOST_LINES or not lines):
        return f"exit code {code} with {len(lines)} lines on stderr"
    outputs = {path for path in new if path.name in case.writes}
    if unknown := new - outputs:
        return f"left {sorted(unknown)[0]}"
    if code and outputs and not case.keeps:
        return f"refused, and left {sorted(outputs)[0]}"
    for folder in outputs:
        for file in folder.rglob("*") if folder.is_dir() else [folder]:
            if is_unfinished(file.name):
                return f"left {file}"
            if file.is_file() and SECRET.encode() in file.read_bytes():
                return f"wrote the secret to {file.name}"
    return "refused" if code else "accepted"


def run_case(case: Case, root: Path) -> tuple[str, float, float]:
    """Run one case; gives its outcome, seconds and peak MB."""
    log, watched = root / "log", (case.folder, root / "home", root / "tmp", root / "outside")
    before = files_below(watched, case.writes)
    if case.installed or case.shell:
        code, seconds, mb = in_child(lambda: run_installed(case), case.folder, log, _SECONDS)
    else:
        code, seconds, mb = in_child(lambda: run_program(case.arguments, case.environment), case.folder, log, _SECONDS)
    return judge(case, code, log, files_below(watched, case.writes) - before), seconds, mb


def run_mutated(mutated: Mutated, root: Path, row: Row) -> None:
    """Read many damaged copies in one process, and go on in another one where that ends early."""
    from polypcount.errors import PolypcountError

    results, log = root / "results", root / "log"
    results.write_text("")

    def read_all(first: int) -> int:
        with results.open("a") as file:
            for number in range(first, mutated.count):
                path = mutated.make(number)
                began, outcome = time.monotonic(), "accepted"
                file.write(f"{number}\t")
                file.flush()
                try:
                    mutated.read(path)
                except PolypcountError as problem:
                    if number == 0 and mutated.count > 1:
                        outcome = f"the good file is refused: {problem}"
                    else:
                        outcome = "refused" if SECRET not in str(problem) else "the error has the secret"
                except BaseException as problem:
                    outcome = f"{type(problem).__name__}: {str(problem)[:200]}"
                file.write(f"{' '.join(outcome.split())}\t{time.monotonic() - began:.2f}\n")
                file.flush()
        return 0

    first = 0
    while first < mutated.count:
        code, _, mb = in_child(lambda start=first: read_all(start), root, log, 20 * _SECONDS)  # type: ignore[misc]
        lines = [line.split("\t") for line in results.read_text().splitlines()]
        for number, outcome, seconds in lines[first:] if code == 0 else lines[first:-1]:
            row.add(outcome, f"{mutated.name} {number}", float(seconds), mb)
        if code != 0:
            row.add(f"the process ended: {code}", f"{mutated.name} {lines[-1][0]}", 0, mb)
        first = len(lines)
        if said := Path(f"{log}.err").read_bytes() + Path(f"{log}.out").read_bytes():
            row.add(f"printed {said[:200]!r}", mutated.name, 0, mb)
        if code is None:
            break


def main() -> int:
    """Print the table; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of the name of the kinds to run")
    parser.add_argument("--copies", type=int, default=200, help="damaged copies of each good file")
    parser.add_argument("--verbose", action="store_true", help="print every case")
    given = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="hostile-"))
    for name in ("home", "tmp", "cache", "outside", "fonts"):
        (root / name).mkdir()
    os.environ.update(HOME=str(root / "home"), TMPDIR=str(root / "tmp"), POLYPCOUNT_CACHE=str(root / "cache"))
    os.environ.update(MPLCONFIGDIR=str(root / "fonts"), POLYPCOUNT_ENGINE="onnx", COLUMNS="200")
    tempfile.tempdir = None
    for name in _MODULES:  # once, for all processes that are forked from this one
        __import__(f"polypcount.{name}")
    total: Counter[str] = Counter()
    rows: dict[str, Row] = {}
    try:
        material = Material(root)
        for kind in (name for name in KINDS if given.only in name):
            row = rows[kind] = Row()
            for case in KINDS[kind](material, given.copies):
                if isinstance(case, Mutated):
                    run_mutated(case, root, row)
                else:
                    outcome: Any = run_case(case, root)
                    row.add(outcome[0], case.name, *outcome[1:])
                    if given.verbose:
                        said = Path(f"{root / 'log'}.err").read_bytes().decode(errors="replace").strip()
                        print(f"{kind}: {case.name}: {outcome}\n    {said}", file=sys.stderr, flush=True)
                    shutil.rmtree(case.folder, ignore_errors=True)
            total += row.outcomes
            print(f"{kind}: {dict(row.outcomes)}", *row.others, sep="\n  ", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print("| kind of input | tried | named error | accepted | anything else | peak MB | longest, s |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for kind, row in rows.items():
        seen = row.outcomes
        counts = f"{seen.total()} | {seen['refused']} | {seen['accepted']} | {seen['other']}"
        print(f"| {kind} | {counts} | {row.peak_mb:.0f} | {row.longest:.1f} |")
    print(f"| all | {total.total()} | {total['refused']} | {total['accepted']} | {total['other']} | | |")
    return int(total["other"] > 0)


if __name__ == "__main__":
    sys.exit(main())
