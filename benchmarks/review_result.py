"""A large result to review: what `polypcount count` writes for a long procedure with many tracklets.

Vectors, times and pictures are made up. The grouping, the interval and all files are those of a count: the tracklets
go through `CountBasis`, `assemble` and `CountReport.save`. A tracklet has four views of 224 pixels and a whole frame of
720, as in a count, and a box in each of its frames.

Run: .venv/bin/python -m benchmarks.review_result OUT [--tracklets 600] [--minutes 90] [--recording]
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import simplejpeg  # type: ignore[import-untyped]
from numpy.typing import NDArray

from polypcount.corpus import Boxes, Provenance, Video
from polypcount.counting.assemble import assemble
from polypcount.counting.basis import CountBasis
from polypcount.counting.evidence import RESAMPLES, Evidence
from polypcount.counting.operating_points import read_operating_points
from polypcount.counting.result import CountReport, Picture
from polypcount.encoder import bundled_folder
from polypcount.video.write import write_video

FPS, WIDTH, HEIGHT, SIDE = 25.0, 1280, 1080, 160
VIEW, WHOLE = (224, 224), (720, 608)
SHORT = 4  # for each counted tracklet, so many that are too short
SMALL = (320, 270)  # of the recording, which is only as large as a player needs


def large_report(tracklets: int, minutes: float, source: Path | None = None) -> CountReport:
    """A count of tracklets / 20 polyps that come back. source: Where the recording lies."""
    rng = np.random.default_rng(tracklets)
    frames, polyps = int(minutes * 60 * FPS), max(1, tracklets // 20)
    polyp = rng.integers(0, polyps, tracklets)
    length = np.clip(rng.lognormal(4.3, 0.8, tracklets), 31, 1000).astype(int)  # median 3 seconds
    gap = rng.exponential(60, tracklets).astype(int) + 1
    start = np.empty(tracklets, int)
    for number in range(polyps):  # its tracklets follow each other
        mine = np.flatnonzero(polyp == number)
        after = np.concatenate([[0], np.cumsum(length[mine] + gap[mine])])
        start[mine] = rng.integers(0, frames - after[-1]) + after[:-1]
    order = np.argsort(start, kind="stable")
    polyp, start, length = polyp[order], start[order], length[order]
    looks = rng.normal(size=128) + rng.normal(size=(polyps, 128))  # polyps have something in common
    vectors = looks[polyp] + 0.7 * rng.normal(size=(tracklets, 128))
    resampled = vectors[:, None] + 0.3 * rng.normal(size=(tracklets, RESAMPLES, 128))
    every = np.concatenate([vectors[:, None], resampled], axis=1).astype(np.float32)
    evidence = [
        Evidence(
            number=row,
            part=0,
            start_frame=int(begin),
            stop_frame=int(begin + count),
            box_count=int(count),
            vectors=every[row],
            views=tuple(_picture(rng, int(begin + count * part // 4), VIEW) for part in range(4)),
            whole=_picture(rng, int(begin + count // 2), WHOLE),
        )
        for row, (begin, count) in enumerate(zip(start.tolist(), length.tolist(), strict=True))
    ]
    short = [(int(begin), 12) for begin in np.sort(rng.integers(0, frames - 12, SHORT * tracklets))]
    boxes, linked = _boxes(rng, [*zip(start.tolist(), length.tolist(), strict=True), *short])
    points = read_operating_points(bundled_folder())
    point = points.points[points.default]
    together = _together(start, length)
    basis = CountBasis(
        point, evidence, together, float(frames), FPS, linked=linked, source=None if source is None else str(source)
    )
    rows = np.where(linked < tracklets, linked, -1).astype(np.int32)
    return assemble(
        Video(f"{minutes:g} minutes", frames, FPS, WIDTH, HEIGHT),
        evidence,
        together,
        basis.decide(),
        point,
        Provenance.now("count", (), {"encoder": "none", "method": point.method, "parameters": {}}),
        boxes=boxes,
        tracklet=rows,
        left_out=len(short),
        basis=basis,
    )


def large_result(folder: Path, tracklets: int, minutes: float = 90, *, recording: bool = False) -> Path:
    """Write it to a new folder. recording: Whether a recording, of small frames, is written beside it."""
    source = folder.with_suffix(".mp4") if recording else None
    if source is not None:
        write_video(source, _frames(int(minutes * 60 * FPS)), FPS, quality=40)
    return large_report(tracklets, minutes, source).save(folder)


def _together(start: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pairs of tracklets with a common frame, int64[m, 2]."""
    stop = start + length
    overlap = (start[:, None] < stop) & (start < stop[:, None])
    return np.argwhere(np.triu(overlap, 1))


def _boxes(rng: np.random.Generator, spans: Sequence[tuple[int, int]]) -> tuple[Boxes, NDArray[np.int32]]:
    """A box in each frame of each span, which drifts; and the number of the span of each box, int32[boxes]."""
    frame = np.concatenate([np.arange(begin, begin + count) for begin, count in spans])
    number = np.repeat(np.arange(len(spans)), [count for _, count in spans])
    place = rng.uniform(0, [WIDTH - 2 * SIDE, HEIGHT - 2 * SIDE], (len(spans), 2))[number]
    place += SIDE / 2 * (1 + np.sin(frame / 40))[:, None]
    order = np.argsort(frame, kind="stable")
    sides = np.concatenate([place, place + SIDE], axis=1)[order]
    boxes = Boxes(np.zeros(len(frame), np.int32), frame[order], sides, track=number[order])
    return boxes, number[order].astype(np.int32)


def _picture(rng: np.random.Generator, frame: int, size: tuple[int, int]) -> Picture:
    """A picture with about as many bytes as one of a count: 8 kB for a view, 35 kB for a whole frame."""
    width, height = size
    grain = 5 if width == VIEW[0] else 9
    coarse = rng.integers(118, 142, (-(-height // grain), -(-width // grain), 1), np.uint8)
    image = np.kron(coarse, np.ones((grain, grain, 3), np.uint8))[:height, :width]
    box = (width / 4, height / 4, 3 * width / 4, 3 * height / 4)
    jpeg = simplejpeg.encode_jpeg(np.ascontiguousarray(image), quality=85)
    return Picture(frame, jpeg, width, height, box, float(rng.uniform(0.2, 0.9)))


def _frames(count: int) -> Iterator[NDArray[np.uint8]]:
    """Frames that differ."""
    width, height = SMALL
    image = np.full((height, width, 3), 120, np.uint8)
    for frame in range(count):
        shown = image.copy()
        shown[:, frame % width] = 255
        yield shown


def main() -> None:
    """Parse, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tracklets", type=int, default=600)
    parser.add_argument("--minutes", type=float, default=90)
    parser.add_argument("--recording", action="store_true")
    options = parser.parse_args()
    print(large_result(options.out, options.tracklets, options.minutes, recording=options.recording))


if __name__ == "__main__":
    main()
