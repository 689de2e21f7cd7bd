"""Grouping a recording with its 60 repetitions: growth, peak memory, and scikit-learn's trees as the peer.

Run: .venv/bin/python benchmarks/decide.py
"""

import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import AgglomerativeClustering

from polypcount.clustering import GroupingInput, PairProbability
from polypcount.counting.decide import REPETITIONS, decide
from polypcount.counting.evidence import RESAMPLES, Evidence
from polypcount.counting.operating_points import read_operating_points
from polypcount.encoder.bundle import bundled_folder

SIZES, ROUNDS, PEER = (500, 1000, 2000, 5000), 3, 2000
POINT = read_operating_points(bundled_folder()).points["probability-linkage"]


def recording(n: int) -> tuple[list[Evidence], NDArray[np.int64], float]:
    """Tracklets of n / 20 polyps that come back, their frames with noise, and neighbours that are seen together."""
    rng = np.random.default_rng(n)
    polyp = rng.integers(0, n // 20, n)
    duration = 400.0 * n
    home = rng.uniform(0, 0.9 * duration, n // 20)
    start = np.minimum(home[polyp] + rng.exponential(duration / 50, n), duration - 1).astype(np.int64)
    order = np.argsort(start, kind="stable")
    polyp, start = polyp[order], start[order]
    vectors = rng.normal(size=(n // 20, 128))[polyp] + 0.5 * rng.normal(size=(n, 128))
    resampled = vectors[:, None] + 0.3 * rng.normal(size=(n, RESAMPLES, 128))
    every = np.concatenate([vectors[:, None], resampled], axis=1).astype(np.float32)
    evidence = [Evidence(row, 0, int(frame), int(frame) + 30, 30, every[row]) for row, frame in enumerate(start)]
    first = rng.integers(0, n - 4, n // 5)
    pairs = np.unique(np.column_stack([first, first + rng.integers(1, 4, n // 5)]), axis=0)
    return evidence, pairs[polyp[pairs[:, 0]] != polyp[pairs[:, 1]]], duration


def peer(evidence: Sequence[Evidence], duration: float) -> int:
    """scikit-learn's clustering of each repetition on our probabilities; returns how many groups there were."""
    probability = PairProbability(*(float(POINT.parameters[name]) for name in ("intercept", "looks", "time", "number")))
    start = [one.start_frame for one in evidence]
    groups = 0
    for repetition, threshold in enumerate(POINT.repeated_values(REPETITIONS)):
        vectors = np.stack([one.vectors[1 + repetition % RESAMPLES] for one in evidence])
        distance = 1 - probability.probabilities(GroupingInput.of(vectors, start, duration=duration))
        tree = AgglomerativeClustering(
            n_clusters=None, distance_threshold=1 - threshold, metric="precomputed", linkage="average"
        )
        groups += int(tree.fit_predict(distance).max()) + 1
    return groups


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Wall time and processor time of one call."""
    wall, busy = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - busy


def peak_memory() -> int:
    """Most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "linux" else 1 << 20)


def main() -> None:
    """The sizes rise, so the peak memory so far is that of the last one. Then turn by turn with the peer."""
    decide(*recording(40), POINT)  # loads libraries and compiled code
    for n in SIZES:
        case = recording(n)
        before = peak_memory()
        walls, busy = zip(*(seconds(lambda: decide(*case, POINT)) for _ in range(ROUNDS)), strict=True)  # noqa: B023
        print(
            f"{n:5} tracklets: {statistics.median(walls):.2f} s ({min(walls):.2f} to {max(walls):.2f}), processor time "
            f"{statistics.median(busy):.2f} s, {statistics.median(busy) / n**2 * 1e9:.0f} ns for each pair of rows; "
            f"peak memory {peak_memory()} MB, {before} MB before"
        )
    case, ratios = recording(PEER), []
    for _ in range(ROUNDS):
        own, other = seconds(lambda: decide(*case, POINT)), seconds(lambda: peer(case[0], case[2]))
        ratios.append(other[0] / own[0])
    print(
        f"{PEER} tracklets: scikit-learn for each of {REPETITIONS} repetitions takes {statistics.median(ratios):.1f} "
        f"times as long ({min(ratios):.1f} to {max(ratios):.1f}), without constraints, shares and doubts"
    )


if __name__ == "__main__":
    main()
