"""Linking as many boxes as REAL-Colon has, against the plain way: for every polyp, look through all boxes.

Run: .venv/bin/python benchmarks/link_tracklets.py
"""

import statistics
import time
from collections.abc import Callable

import numpy as np

from polypcount.corpus import Boxes
from polypcount.simulate import simulate_timelines
from polypcount.tracking import link_tracklets

BOXES, ROUNDS = 351_264, 5
Box = list[float]


def real_colon_sized() -> Boxes:
    """351,264 boxes of 132 polyps in 60 simulated videos."""
    boxes = simulate_timelines(60, seed=1).boxes
    boxes = boxes.take(np.arange(BOXES))
    assert len(np.unique(boxes.polyp)) == 132
    return boxes


def overlap(a: Box, b: Box) -> float:
    """Intersection over union of two boxes."""
    shared = max(min(a[2], b[2]) - max(a[0], b[0]), 0) * max(min(a[3], b[3]) - max(a[1], b[1]), 0)
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


def plain(polyps: list[int], frames: list[int], boxes: list[Box]) -> list[list[int]]:
    """Per polyp: scan all rows for its own, sort them by frame, extend or begin a tracklet."""
    tracklets: list[list[int]] = []
    for polyp in sorted(set(polyps)):
        mine = [row for row in range(len(polyps)) if polyps[row] == polyp]
        mine.sort(key=lambda row: frames[row])
        begin = True
        for row in mine:
            last = tracklets[-1][-1] if not begin else -1
            if begin or frames[row] - frames[last] > 1 or overlap(boxes[last], boxes[row]) < 0.1:
                tracklets.append([row])
            else:
                tracklets[-1].append(row)
            begin = False
    return tracklets


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Compare the results, then the times, turn by turn; then show how ours grows.

    The rows of a corpus are ordered by video and frame; shuffled ones are what link_tracklets must sort first.
    """
    boxes = real_colon_sized()
    lists = boxes.polyp.tolist(), boxes.frame.tolist(), boxes.xyxy.astype(float).tolist()
    ours = link_tracklets(boxes)
    assert sorted(plain(*lists)) == sorted(ours.rows(k).tolist() for k in range(len(ours)))
    print(f"{len(boxes):,} boxes, {len(ours):,} tracklets, the same from both")
    rng = np.random.default_rng(1)
    for case in ("ordered", "shuffled"):
        ratios = []
        for _ in range(ROUNDS):
            order = np.arange(BOXES) if case == "ordered" else rng.permutation(BOXES)
            fresh = boxes.take(order)
            slow, fast = seconds(lambda: plain(*lists)), seconds(lambda: link_tracklets(fresh))  # noqa: B023
            ratios.append(slow / fast)
            print(f"{case}: plain {slow:.2f} s, link_tracklets {fast * 1000:.1f} ms: {slow / fast:.0f} times")
        lowest, middle, highest = min(ratios), statistics.median(ratios), max(ratios)
        print(f"{case}: ratio {middle:.0f} (median), lowest {lowest:.0f}, highest {highest:.0f}")
    for times in (1, 2, 4, 8):
        columns = {name: np.concatenate([column] * times) for name, column in boxes.columns().items()}
        copy = np.repeat(np.arange(times), len(boxes))
        columns["video"] = columns["video"] + 60 * copy
        columns["polyp"] = columns["polyp"] + 132 * copy
        larger = Boxes(**columns)
        best = min(seconds(lambda: link_tracklets(larger)) for _ in range(3))  # noqa: B023
        print(f"{times * 132:5} polyps, {len(larger):9,} boxes: {best / len(larger) * 1e9:.0f} ns a box")


if __name__ == "__main__":
    main()
