"""The published tracklets, fragments, sampler and loss by plain loops, on a small story; outputs are kept as JSON.

`python -m tests.training.published` writes `published.json` again.
"""

import json
import math
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("published.json")
VIEWS, POLYPS = 3, 2
Box = tuple[int, int, int, tuple[int, int, int, int]]  # video, frame, polyp, x y w h
# Of each polyp: first frame and number of frames of each time that it is seen. Three polyps a video.
SEEN = {
    0: [(0, 130), (200, 29), (240, 64)],
    1: [(10, 300)],
    2: [(0, 31), (40, 34)],
    3: [(5, 300)],
    4: [(0, 200)],
    5: [(3, 70)],
}
UNSEEN = {(3, 150), (1, 61)}  # single frames that are missing
LABELS, TIMES = [0, 0, 0, 1, 1, 1, 2], [0.0, 0.25, 0.75, 0.1, 0.4, 1.0, 0.5]  # the last view has no positive
VECTORS = [[1, 2, 3], [3, 1, 2], [-1, 2, 2], [0, -2, 1], [2, -3, 1], [1, 1, -4], [4, 0, 1]]


def story() -> list[Box]:
    """Boxes that move by a pixel a frame, go back by 19 every 20 frames, and jump every 100."""
    boxes = []
    for polyp, visits in SEEN.items():
        for frame in (frame for first, count in visits for frame in range(first, first + count)):
            if (polyp, frame) not in UNSEEN:
                boxes.append((polyp // 3, frame, polyp, (20 + 60 * (frame // 100) + frame % 20, 10, 30, 25)))
    return sorted(boxes)


def overlap(a: tuple[int, ...], b: tuple[int, ...]) -> float:
    """IoU of two boxes x, y, w, h."""
    wide = max(0, min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0]))
    high = max(0, min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1]))
    return wide * high / (a[2] * a[3] + b[2] * b[3] - wide * high)


def tracklets(boxes: list[Box]) -> list[list[Box]]:
    """Of each polyp, by frame: a gap of more than one frame, or an IoU below 0.1, begins another tracklet."""
    found: list[list[Box]] = []
    for polyp in sorted({box[2] for box in boxes}):
        last = None
        for box in sorted(box for box in boxes if box[2] == polyp):
            if last is None or box[1] - last[1] > 1 or overlap(last[3], box[3]) < 0.1:
                found.append([])
            found[-1].append(box)
            last = box
    return found


def fragments(boxes: list[Box]) -> list[list[Box]]:
    """Tracklets of at least 30 boxes, every fourth box, in blocks of 8; the rest of a tracklet is dropped."""
    found = []
    for tracklet in tracklets(boxes):
        if len(tracklet) >= 30:
            taken = tracklet[::4]
            found += [taken[start : start + 8] for start in range(0, len(taken) - 7, 8)]
    return found


def pair_chances(counts: dict[int, int]) -> dict[str, float]:
    """Chance of each first and second polyp of a batch: without replacement, in proportion to unused fragments."""
    usable = {polyp: count for polyp, count in counts.items() if count >= VIEWS}
    total = sum(usable.values())
    return {f"{a} {b}": x / total * y / (total - x) for a, x in usable.items() for b, y in usable.items() if a != b}


def loss(vectors: list[list[int]], labels: list[int], times: list[float], tau: float, decay: float) -> list[float]:
    """Cross-entropy of each row between the weights of its positives and its softmax; 0 without a positive."""
    unit = [[x / math.hypot(*vector) for x in vector] for vector in vectors]
    rows = []
    for i, anchor in enumerate(unit):
        others = [j for j in range(len(unit)) if j != i]
        logit = {j: sum(x * y for x, y in zip(anchor, unit[j], strict=True)) / tau for j in others}
        whole = math.log(sum(math.exp(logit[j]) for j in others))
        weight = {j: math.exp(-decay * abs(times[i] - times[j])) for j in others if labels[j] == labels[i]}
        rows.append(-sum(w / sum(weight.values()) * (logit[j] - whole) for j, w in weight.items()))
    return rows


def outputs() -> dict[str, Any]:
    """Everything that is recorded."""
    boxes = story()
    pieces = fragments(boxes)
    counts = {polyp: sum(piece[0][2] == polyp for piece in pieces) for polyp in SEEN}
    life = {polyp: [box[1] for box in boxes if box[2] == polyp] for polyp in SEEN}
    return {
        "tracklets": sorted([piece[0][2], piece[0][1], piece[-1][1], len(piece)] for piece in tracklets(boxes)),
        "fragments": sorted([piece[0][2], [box[1] for box in piece]] for piece in pieces),
        "positions": sorted(
            [p[0][2], p[0][1], (p[0][1] - life[p[0][2]][0]) / (life[p[0][2]][-1] - life[p[0][2]][0])] for p in pieces
        ),
        "usable": [polyp for polyp, count in counts.items() if count >= VIEWS],
        "most_batches": sum(count // VIEWS for count in counts.values()) // POLYPS,
        "pair_chances": pair_chances(counts),
        "row_losses": loss(VECTORS, LABELS, TIMES, 0.25, 1.0),
    }


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(outputs(), indent=1) + "\n", encoding="utf-8")
