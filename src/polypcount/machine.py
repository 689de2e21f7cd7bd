"""What the machine gives this process."""

import os


def available_cores() -> int:
    """Number of cores that this process may use; a container or `taskset` can limit it."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
