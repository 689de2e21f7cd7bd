"""Crops for training batches from the crop store, against decoding whole frames as the published loader does.

Both read the same boxes of 1240 x 1080 frames, in random order, with two workers. The peer opens each JPEG frame with
Pillow, cuts the region and resizes it, for every crop of every batch.

Run: .venv/bin/python benchmarks/crop_loading.py
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from polypcount.corpus import Boxes, Corpus, Polyp, Video
from polypcount.video import CropRule, build_store

FRAMES, WIDTH, HEIGHT, BATCH, ROUNDS, WORKERS, TIMES = 600, 1240, 1080, 448, 5, 2, 5
RULE = CropRule()


def recording(folder: Path) -> Corpus:
    """A folder of JPEG frames, smooth with some noise, so that files are about as large as those of a recording."""
    rng = np.random.default_rng(0)
    small = rng.integers(0, 255, (12, 14, 3), dtype=np.uint8)
    still = np.asarray(Image.fromarray(small).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)).astype(np.int16)
    grain = rng.normal(0, 6, (HEIGHT + FRAMES, WIDTH, 1)).astype(np.int16)
    for frame in range(FRAMES):
        noisy = np.clip(np.roll(still, 3 * frame, axis=1) + grain[frame : frame + HEIGHT], 0, 255).astype(np.uint8)
        Image.fromarray(noisy).save(folder / f"{frame}.jpg", quality=90)
    left, top = rng.uniform(200, 900, FRAMES), rng.uniform(200, 800, FRAMES)
    xyxy = np.column_stack([left, top, left + rng.uniform(60, 150, FRAMES), top + rng.uniform(60, 150, FRAMES)])
    video = Video("v", FRAMES, 25.0, WIDTH, HEIGHT, source=str(folder))
    zeros = np.zeros(FRAMES, np.int32)
    return Corpus((video,), Boxes(zeros, np.arange(FRAMES), xyxy, polyp=zeros), (Polyp("p", "v"),))


def published_way(folder: Path, corpus: Corpus, row: int) -> NDArray[np.uint8]:
    """One crop from its whole frame."""
    frame = Image.open(folder / f"{corpus.boxes.frame[row]}.jpg").convert("RGB")
    region = RULE.region(corpus.boxes.xyxy[row], WIDTH, HEIGHT)
    return np.asarray(frame.crop(region).resize((RULE.size, RULE.size), Image.Resampling.BILINEAR))


def seconds(work: Callable[[], object]) -> float:
    """Of one run."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Compare, batch by batch in turn."""
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(WORKERS) as workers:
        folder = Path(place) / "frames"
        folder.mkdir()
        corpus = recording(folder)
        print(f"frames of {np.mean([file.stat().st_size for file in folder.iterdir()]) / 1024:.0f} KB")
        store = build_store(corpus, np.arange(FRAMES), RULE.roomier(), Path(place) / "store", processes=1)
        rng = np.random.default_rng(1)
        ratios = []
        for turn in range(ROUNDS + 1):
            rows = rng.integers(0, FRAMES, BATCH)
            halves = np.array_split(rows, WORKERS)
            # Ours takes a tenth of a second, which is little to measure: several batches, and the time of one.
            ours = seconds(lambda halves=halves * TIMES: list(workers.map(store.crops, halves))) / TIMES  # type: ignore[misc]
            theirs = seconds(
                lambda rows=rows: list(workers.map(lambda row: published_way(folder, corpus, row), rows.tolist()))  # type: ignore[misc]
            )
            if turn:  # the first one warms up
                ratios.append(theirs / ours)
                print(
                    f"ours {BATCH / ours:,.0f} crops a second, whole frames {BATCH / theirs:,.0f}: "
                    f"{ratios[-1]:.1f} times"
                )
        print(
            f"crops of a batch of {BATCH}, {WORKERS} workers: {statistics.median(ratios):.1f} times faster "
            f"(median of {ROUNDS}; {min(ratios):.1f} to {max(ratios):.1f})"
        )


if __name__ == "__main__":
    main()
