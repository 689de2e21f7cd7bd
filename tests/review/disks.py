"""Small disks, to be filled or made read-only: root may write anywhere else."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(folder: Path, size: str = "8m") -> Iterator[Path]:
    """A new disk at a folder that does not exist yet; the test is skipped where none can be mounted."""
    if sys.platform != "linux":
        pytest.skip("mounts a small disk")
    folder.mkdir()
    _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # vectors may still be mapped


def make_read_only(disk: Path) -> None:
    _run("mount", "-o", "remount,ro", str(disk))


def fill(disk: Path) -> None:
    """Leave no room at all."""
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 12))


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as problem:
        pytest.skip(f"no disk can be mounted: {problem}")
    if done.returncode:
        pytest.skip(f"no disk can be mounted: {done.stderr.strip()}")
