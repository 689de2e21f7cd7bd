"""What the program says and leaves where it may write little: an unprivileged user, small files only, a full disk.

Each command is run as the user `nobody` with a home folder, a cache and a working folder that it may not write; with a
limit on the size of files (RLIMIT_FSIZE); and into a small disk (tmpfs) that becomes full.
It must end well or with exit code 2 and one line that names the file or folder, and leave no temporary file.

Run, as root: .venv/bin/python benchmarks/surroundings.py   (mounts a tmpfs for itself; about 5 minutes)
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kills import PROGRAM, leftovers, prepare  # type: ignore[import-not-found,unused-ignore]

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
SIZES = (512, 4096, 20_000, 60_000)  # bytes of the largest file
DISKS = (8, 32, 128)  # KiB
_PROGRESS = ("learning from ", "validating on ", "epoch ")  # what a training says on its way


def commands(data: Path) -> dict[str, list[str]]:
    """Arguments of each verb; OUT stands for the output."""
    video = data / "corpus" / "pixels" / "sim-study-5-000.mp4"
    few = ["--set", "epochs=1", "--set", "batches_per_epoch=2", "--set", "sampler.polyps=2"]
    return {
        "count": ["count", str(video), "--boxes", str(data / "boxes" / f"{video.stem}.csv"), "--video", "--out", "OUT"],
        "import": ["import", "coco", str(data / "coco" / "boxes.json"), "--out", "OUT"],
        "simulate": ["simulate", "OUT", "--procedures", "1", "--minutes", "0.2", "--size", "64x64", "--like", "study"],
        "embed": ["embed", str(data / "corpus"), "--out", "OUT/v.parquet", "--min-frames", "5"],
        "study": ["study", str(data / "v.parquet"), "--grid", "coarse", "--min-frames", "5", "--out", "OUT"],
        "train": ["train", str(data / "corpus"), "--recipe", "small", *few, "--out", "OUT"],
    }


@contextmanager
def disk(folder: Path, kib: int) -> Iterator[Path]:
    """A small disk."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=777", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def judge(
    name: str, where: str, command: list[str], look: list[Path], places: dict[str, str], limit: int | None = None
) -> None:
    """Run a command and print a row."""

    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **places}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=places.get("PWD"), preexec_fn=limited
    )
    lines = [line for line in done.stderr.splitlines() if " s left" not in line and not line.startswith(_PROGRESS)]
    good = not lines if done.returncode == 0 else done.returncode == 2 and len(lines) == 1 and "/" in lines[0]
    left = leftovers(*look)
    said = lines[-1][:160] if lines else ""
    print(f"| {name} | {where} | {done.returncode} | {'yes' if good and not left else 'NO'} | {said} |", flush=True)
    if not good or left:
        print(f"  {name}, {where}: {done.stderr[-1500:]} {left}", file=sys.stderr, flush=True)


def main() -> None:
    """Print the table."""
    only = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        root.chmod(0o755)
        data = root / "data"
        data.mkdir()
        prepare(data)
        closed = root / "closed"
        closed.mkdir(mode=0o755)
        print("| verb | where | exit code | good | what it said |\n|---|---|---|---|---|")
        for name, arguments in commands(data).items():
            if only and name not in only:
                continue

            def with_out(out: Path, arguments: list[str] = arguments) -> list[str]:
                return [part.replace("OUT", str(out)) for part in arguments]

            for place in (root / f"open-{name}", closed):
                place.mkdir(exist_ok=True)
                if place is not closed:
                    os.chown(place, 65534, 65534)
                command = [*NOBODY, *PROGRAM, *with_out(place / "out")]
                where = "nobody, no home" if place is not closed else "nobody, no home, closed folder"
                home = str(closed)
                places = {"HOME": home, "XDG_CACHE_HOME": home, "TMPDIR": home, "POLYPCOUNT_CACHE": home}
                judge(name, where, command, [place], {"PWD": home, **places})
            for size in SIZES:
                place = root / f"{name}-{size}"
                command = [*PROGRAM, *with_out(place / "out")]
                judge(
                    name,
                    f"files up to {size:,} bytes",
                    command,
                    [place],
                    {"POLYPCOUNT_CACHE": str(place / "cache")},
                    size,
                )
            for kib in DISKS:
                with disk(root / f"{name}-disk-{kib}", kib) as folder:
                    command = [*PROGRAM, *with_out(folder / "out")]
                    judge(name, f"disk of {kib} KiB", command, [folder], {"POLYPCOUNT_CACHE": str(folder / "cache")})


if __name__ == "__main__":
    main()
