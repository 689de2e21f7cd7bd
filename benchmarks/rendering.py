"""Drawing simulated procedures: videos in one process and in two, crops by themselves against cut from frames, growth.

Procedures have polyps drawn from noise and all difficulties of the study preset. Videos are what `polypcount simulate`
writes, H.264 included, whose encoder has threads of its own. A crop is drawn in its own size; its peer draws the whole
frame and cuts the crop from it. Growth is the time of a frame for each of its pixels.

Run: .venv/bin/python benchmarks/rendering.py
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Corpus
from polypcount.simulate import TimelineSettings, render, simulate_scenes
from polypcount.simulate.scene_file import SceneSource
from polypcount.video import CropRule

SEED, PROCEDURES, MINUTES, ROUNDS, CROPS, FRAMES = 1, 2, 0.2, 3, 60, 40
SIZES = ((160, 128), (320, 256), (640, 512), (1280, 1024))


def seconds(work: Callable[[], object]) -> float:
    """Of one run."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def told(ratios: list[float]) -> str:
    """Median and range of the rounds."""
    return f"{statistics.median(ratios):.1f} times (median of {len(ratios)}; {min(ratios):.1f} to {max(ratios):.1f})"


def scenes(folder: Path, width: int, height: int) -> Corpus:
    """The same procedures at any size."""
    settings = TimelineSettings(width=width, height=height, minutes=MINUTES)
    return simulate_scenes(folder, PROCEDURES, SEED, "study", settings=settings, processes=1)


def draw_video(corpus: Corpus, processes: int) -> float:
    """Seconds to write all videos anew."""
    for video in corpus.videos:
        Path(str(video.source)).with_suffix(".mp4").unlink(missing_ok=True)
    return seconds(lambda: render(corpus, processes=processes))


def compare_processes(corpus: Corpus) -> None:
    """Videos by one process and by two, in turn."""
    frames = sum(video.frame_count for video in corpus.videos)
    rates: dict[int, list[float]] = {1: [], 2: []}
    boxes = corpus.boxes
    for _ in SceneSource(Path(str(corpus.videos[0].source))).frames(boxes.frame[boxes.video == 0]):
        pass  # compiles all that is needed
    for _ in range(ROUNDS):
        taken = {processes: draw_video(corpus, processes) for processes in rates}
        for processes, spent in taken.items():
            rates[processes].append(frames / spent)
        print(f"frames a second: one process {frames / taken[1]:.1f}, two {frames / taken[2]:.1f}", flush=True)
    for processes, found in rates.items():
        print(
            f"640 x 512, mp4, {processes} process(es): {statistics.median(found):.0f} frames a second "
            f"({min(found):.0f} to {max(found):.0f})"
        )
    print(f"two processes against one: {told([two / one for one, two in zip(rates[1], rates[2], strict=True)])}")


def compare_crops(corpus: Corpus, rule: CropRule) -> None:
    """Crops by themselves and from whole frames, in turn."""
    source = SceneSource(Path(str(corpus.videos[0].source)))
    boxes = corpus.boxes
    rows = np.flatnonzero(boxes.video == 0)
    chosen = rows[np.linspace(0, len(rows) - 1, CROPS).astype(int)]
    wanted = [(int(boxes.frame[row]), boxes.xyxy[row]) for row in chosen.tolist()]
    ratios: list[float] = []
    for turn in range(ROUNDS + 1):  # the first one warms up
        drawn: list[NDArray[np.uint8]] = []
        cut: list[NDArray[np.uint8]] = []
        ours = seconds(lambda out=drawn: out.extend(source.crop(frame, box, rule) for frame, box in wanted))  # type: ignore[misc]
        theirs = seconds(
            lambda out=cut: out.extend(  # type: ignore[misc]
                rule.crop(next(iter(source.frames([frame])))[1], box) for frame, box in wanted
            )
        )
        if turn:
            ratios.append(theirs / ours)
            print(f"crops a second: drawn {CROPS / ours:.0f}, cut from frames {CROPS / theirs:.0f}")
    apart = [np.abs(one.astype(np.int16) - other).mean() for one, other in zip(drawn, cut, strict=True)]
    print(
        f"crops of {rule.size} pixels, {rule.scale:g} times the box, one process: {told(ratios)}; pixels differ by "
        f"{np.mean(apart):.1f} levels of 255 on average, by {np.max(apart):.1f} in the worst crop"
    )


def measure_growth(folder: Path) -> None:
    """A frame at several sizes, one after the other in each round."""
    sources = {}
    for width, height in SIZES:
        corpus = scenes(folder / str(width), width, height)
        sources[width, height] = SceneSource(Path(str(corpus.videos[0].source)))
    shown = np.unique(corpus.boxes.frame[corpus.boxes.video == 0])
    frames = shown[np.linspace(0, len(shown) - 1, FRAMES).astype(int)]
    spent: dict[tuple[int, int], list[float]] = {size: [] for size in SIZES}
    for turn in range(ROUNDS + 1):
        for size, source in sources.items():
            taken = seconds(lambda s=source: [None for _ in s.frames(frames)]) / len(frames)  # type: ignore[misc]
            if turn:
                spent[size].append(taken)
    for (width, height), found in spent.items():
        each = statistics.median(found)
        growth = 1e9 * each / width / height
        print(f"{width} x {height}: {1000 * each:.1f} ms a frame with a polyp, {growth:.0f} ns a pixel")


def main() -> None:
    """All of it, in a temporary folder."""
    with tempfile.TemporaryDirectory() as place:
        corpus = scenes(Path(place) / "procedures", 640, 512)
        compare_processes(corpus)
        for scale in (2.0, 5.0):
            compare_crops(corpus, CropRule(scale=scale, size=128))
        measure_growth(Path(place))


if __name__ == "__main__":
    main()
