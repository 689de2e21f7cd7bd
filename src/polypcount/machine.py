"""What the machine gives this process."""

import os
from collections.abc import Iterator
from pathlib import Path


def available_cores() -> int:
    """Number of cores that this process may use; a container or `taskset` can limit it."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that this process can still take without swapping; None if the system does not say.

    It is the least of what the system has available and what is left of the limit of each of its control groups, which
    containers and SLURM set.

    Args:
        root: Where `proc` and `sys` are.
    """
    lines = _text(root / "proc/meminfo").splitlines()
    free = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    return min([*free, *_left_of_limits(root)], default=None)


def _left_of_limits(root: Path) -> Iterator[int]:
    """Bytes up to the limit of each control group, from that of this process upwards."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, controllers, group = line.split(":", 2)
        if number == "0":
            home, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            home = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        own = home / group.strip("/")  # inside a container, the files of its group are at the top
        for folder in (own, *(above for above in own.parents if above.is_relative_to(home))):
            limit, used = (_text(folder / name).strip() for name in names[:2])
            if limit.isdigit() and used.isdigit():
                stat = dict(row.split() for row in _text(folder / "memory.stat").splitlines() if row.count(" ") == 1)
                files = int(stat.get(names[2], "0"))  # cached files that the system gives back when asked for memory
                yield max(0, int(limit) - int(used) + files)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
