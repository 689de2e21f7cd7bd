"""What the machine lends to this process."""

import os


def available_cores() -> int:
    """Cores that this process may use, which a container or `taskset` can make fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
