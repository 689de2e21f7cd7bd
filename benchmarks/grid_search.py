"""The paper's whole grid, 29,274 points for each of 19 videos, against looping over scikit-learn.

scikit-learn would need hours, so its time is estimated from random points of each video, run before and after ours on
the same video. Only its own call is timed; ours includes building every similarity matrix.

Run: .venv/bin/python benchmarks/grid_search.py
"""

import argparse
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import affinity_propagation as reference

from polypcount.clustering import Grid, GroupingInput, TemporalAffinityPropagation, fuse, sweep, temporal_adjacency
from polypcount.clustering.similarity import visual_similarity
from polypcount.corpus import Embeddings, Polyp, Video
from polypcount.evaluation import leave_one_out  # noqa: F401, by the process of `peak_memory`
from polypcount.machine import available_cores

TRACKLETS = (12, 60, 9, 110, 55, 130, 80, 15, 22, 70, 225, 10, 14, 31, 18, 8, 26, 95, 60)
POLYPS = (2, 3, 1, 5, 3, 5, 4, 1, 1, 3, 6, 1, 1, 1, 1, 1, 1, 4, 3)
METHOD = TemporalAffinityPropagation(similarity="minmax-euclidean")
GRID = METHOD.grid("paper")
Labels = NDArray[np.int32]


@dataclass
class Times:
    """Seconds of wall and of processor time."""

    wall: float
    processor: float


def simulated(tracklets: int, polyps: int, seed: int) -> GroupingInput:
    """Polyps seen one after the other, each looking like itself with noise, a sixth of the tracklets returning late."""
    rng = np.random.default_rng(seed)
    truth = np.sort(rng.integers(0, polyps, tracklets))
    late = rng.random(tracklets) < 1 / 6
    truth[late] = rng.integers(0, polyps, late.sum())
    vectors = rng.normal(size=(polyps, 128))[truth] + 0.9 * rng.normal(size=(tracklets, 128))
    frames = np.sort(rng.choice(45_000, tracklets, replace=False))
    return GroupingInput.of(vectors, frames, truth=truth, duration=45_000)


def timed(work: Callable[[], None]) -> Times:
    """Run once."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return Times(time.perf_counter() - wall, time.process_time() - processor)


class Peer:
    """scikit-learn at random points of one video."""

    def __init__(self, tracklets: GroupingInput, grid: Grid, points: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.points = rng.choice(len(grid), min(points, len(grid)), replace=False).tolist()
        assert tracklets.positions is not None
        visual = visual_similarity(tracklets.vectors, "minmax-euclidean")
        self.inputs = []
        for point in self.points:
            at = grid.point(point)
            temporal = temporal_adjacency(tracklets.positions, at["gamma"], tracklets.duration)
            self.inputs.append((fuse(visual, temporal, at["alpha"]), at["preference"]))
        self.labels: dict[int, Labels] = {}

    def run(self, part: slice) -> list[Times]:
        """Time each of some of the points by itself."""
        return [timed(lambda k=k: self._one(k)) for k in range(len(self.points))[part]]  # type: ignore[misc]

    def _one(self, k: int) -> None:
        similarity, preference = self.inputs[k]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, labels = reference(
                similarity, preference=preference, damping=0.9, max_iter=500, convergence_iter=50, random_state=42
            )
        self.labels[self.points[k]] = np.asarray(np.arange(len(labels)) if (labels < 0).any() else labels, np.int32)


def same_groups(a: Labels, b: Labels) -> bool:
    """Whether two labellings put the same tracklets together."""
    return bool(((a[:, None] == a) == (b[:, None] == b)).all())


def compare(tracklets: GroupingInput, grid: Grid, points: int, seed: int) -> tuple[Times, list[Times], int]:
    """Ours over the grid, between two halves of the peer's sample; and at how many points the groups differ."""
    peer = Peer(tracklets, grid, points, seed)
    half = len(peer.points) // 2
    theirs = peer.run(slice(0, half))
    found: list[Labels] = []
    ours = timed(lambda: found.append(sweep(METHOD, tracklets, grid).labels))
    theirs += peer.run(slice(half, None))
    different = sum(not same_groups(found[0][point], labels) for point, labels in peer.labels.items())
    return ours, theirs, different


def whole_grid(rounds: int, points: int) -> None:
    """All videos, some rounds; ratios of wall and processor time."""
    walls, processors, checked, different = [], [], 0, 0
    for turn in range(rounds):
        ours_wall = ours_processor = theirs_wall = theirs_processor = variance = 0.0
        for place, (tracklets, polyps) in enumerate(zip(TRACKLETS, POLYPS, strict=True)):
            ours, theirs, wrong = compare(simulated(tracklets, polyps, place), GRID, points, 1000 * turn + place)
            ours_wall, ours_processor = ours_wall + ours.wall, ours_processor + ours.processor
            theirs_wall += statistics.mean(one.wall for one in theirs) * len(GRID)
            theirs_processor += statistics.mean(one.processor for one in theirs) * len(GRID)
            variance += statistics.variance(one.wall for one in theirs) / len(theirs) * len(GRID) ** 2
            checked, different = checked + len(theirs), different + wrong
        walls.append(theirs_wall / ours_wall)
        processors.append(theirs_processor / ours_processor)
        print(
            f"round {turn + 1}: ours {ours_wall:.1f} s wall, {ours_processor:.1f} s processor; scikit-learn "
            f"{theirs_wall:,.0f} s (standard error {variance**0.5:,.0f} s, from {points} points a video): "
            f"{walls[-1]:.1f} times less wall, {processors[-1]:.1f} times less processor time"
        )
    print(
        f"whole grid, {len(GRID):,} points x {len(TRACKLETS)} videos, {available_cores()} cores: "
        f"{statistics.median(walls):.1f} times less wall time ({min(walls):.1f} to {max(walls):.1f}), "
        f"{statistics.median(processors):.1f} times less processor time ({min(processors):.1f} to "
        f"{max(processors):.1f}); groups differ at {different} of {checked} sampled points"
    )


def growth(points: int) -> None:
    """Time for one point of the grid by the number of tracklets, the same preferences with fewer matrices."""
    grid = Grid({"gamma": (0.5, 2.0, 10.0), "alpha": (0.25, 0.5, 0.75), "preference": GRID.axes["preference"]})
    for tracklets in (10, 30, 70, 150, 225, 400, 600):
        ours, theirs, different = compare(simulated(tracklets, 4, tracklets), grid, points, tracklets)
        one = ours.processor / len(grid)
        peer = statistics.mean(time.processor for time in theirs)
        print(
            f"{tracklets:4d} tracklets: {one * 1e3:8.3f} ms a point, scikit-learn {peer * 1e3:8.2f} ms, "
            f"{peer / one:5.1f} times; {one / tracklets**2 * 1e9:6.1f} ns per pair; different {different}"
        )


def embeddings() -> Embeddings:
    """The 19 videos as a study takes them."""
    inputs = [simulated(*counts, place) for place, counts in enumerate(zip(TRACKLETS, POLYPS, strict=True))]
    firsts = np.cumsum([0, *POLYPS])
    starts = np.concatenate([tracklets.positions for tracklets in inputs if tracklets.positions is not None])
    return Embeddings(
        [Video(f"v{place}", 60_000) for place in range(len(inputs))],
        [Polyp(f"v{place}_{k}", f"v{place}") for place, count in enumerate(POLYPS) for k in range(count)],
        np.repeat(np.arange(len(inputs)), TRACKLETS),
        starts,
        starts + 40,
        np.full(len(starts), 40),
        np.concatenate([first + np.asarray(tracklets.truth) for first, tracklets in zip(firsts, inputs, strict=False)]),
        np.concatenate([tracklets.vectors for tracklets in inputs]),
    )


def peak_memory() -> None:
    """The whole study of all videos, in a process of its own."""
    code = "import benchmarks.grid_search as g; g.leave_one_out(g.embeddings(), 'temporal-ap'); g.print_peak()"
    subprocess.run([sys.executable, "-c", code], check=True)


def print_peak() -> None:
    """Largest memory of this process so far. getrusage would count what the parent had when it started this one."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    peak = int(status["VmHWM"].split()[0]) / 1024
    print(f"peak memory of a process with the study of all videos: {peak:.0f} MB, libraries included")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--points", type=int, default=100, help="of scikit-learn, for each video and round")
    arguments = parser.parse_args()
    sweep(METHOD, simulated(5, 2, 0), Grid({}))  # compiled before anything is timed
    whole_grid(arguments.rounds, arguments.points)
    growth(arguments.points)
    peak_memory()
