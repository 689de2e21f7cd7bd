"""How long counting a recording takes, and how much memory, when only the frames that are needed are decoded.

The recording is simulated: 10 minutes of 1280 x 1080 pixels at 30 frames a second, H.264 with a key frame at least every
250 frames. Every minute shows another drawn polyp, 30 frames to and fro with a shaking camera and fresh noise; it has
boxes in 15 % of the frames, in 40 tracklets of very different lengths. Another recording is twice as long, of the same
frames. They are made on the first run, which takes some ten minutes, and kept in OUT.

Counting is `polypcount.count` with pictures and the bundled encoder, then writing the report. The peer is the same, but
decodes every frame up to the last that is wanted, with PyAV. With a detector every frame is needed: there, bare decoding
and the same count without a thread that decodes ahead are the peers. The detector, a stand-in, finds bright pixels
and costs a few milliseconds; a real one costs more.

Each run is a process of its own, on 2 cores. Wall seconds are what a clock on the wall shows, from the start of the
process to its end, and suffer from whatever else the machine does; processor seconds are those of all its threads.

Run: .venv/bin/python benchmarks/count.py OUT [--rounds 3]
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import polypcount as pc
from polypcount.corpus import Boxes, Video
from polypcount.counting import CountingPoint, count_procedure, count_with_detector, open_procedure, read_procedure
from polypcount.video import FrameSource
from polypcount.video.frames import Image

WIDTH, HEIGHT, FPS, MINUTES, CORES = 1280, 1080, 30, 10, 2
MINUTE = 60 * FPS
FRAMES = MINUTES * MINUTE
CLIP = 30  # frames drawn for each minute
SHAKE = 16  # pixels to each side
TRACKLETS, VISIBLE, SEED = 40, 0.15, 1
WANTED_RATIO, WANTED_MB, WANTED_GROWTH = 0.15, 1500, 1.10
DETECTOR_SIZE = 640


# Making the recording. What draws is imported where it is used: it is no part of the memory that is measured.


def clips(scenes: Path) -> list[tuple[Path, NDArray[np.int64], NDArray[np.float32]]]:
    """For each minute a scene, 30 frames of it in a row that show one polyp, and the boxes of that, float32[30, 4]."""
    from polypcount.simulate import TimelineSettings, simulate_scenes

    settings = TimelineSettings(width=WIDTH + 2 * SHAKE, height=HEIGHT + 2 * SHAKE, minutes=2)
    corpus = simulate_scenes(scenes, MINUTES, SEED, "study", settings=settings, processes=1)
    boxes, found = corpus.boxes, []
    for row, polyp in enumerate(corpus.polyps):
        mine = np.flatnonzero(boxes.polyp == row)
        ends = np.flatnonzero(boxes.frame[mine[CLIP - 1 :]] - boxes.frame[mine[: 1 - CLIP]] == CLIP - 1)
        if len(ends):
            chosen = mine[ends[0] : ends[0] + CLIP]
            place = next(video.source for video in corpus.videos if video.id == polyp.video)
            found.append((Path(str(place)), boxes.frame[chosen].astype(np.int64), boxes.xyxy[chosen]))
    return found[:MINUTES]


def to_and_fro(frame: int) -> int:
    """Which frame of its clip is shown."""
    place = frame % (2 * CLIP)
    return min(place, 2 * CLIP - 1 - place)


def shake(frame: int) -> tuple[int, int]:
    """Left and top of what is shown, 0 to twice SHAKE."""
    return SHAKE + round(SHAKE * np.sin(frame / 11)), SHAKE + round(SHAKE * np.sin(frame / 7))


def frames(chosen: list[tuple[Path, NDArray[np.int64], NDArray[np.float32]]]) -> Iterator[Image]:
    """All frames of the recording."""
    from polypcount.video import open_source

    rng = np.random.default_rng(SEED)
    # Added to frames that leave room for it, so that bytes need no check for overflow.
    grain = np.clip(rng.normal(8, 3, (HEIGHT + 64, WIDTH + 64, 3)), 0, 16).astype(np.uint8)
    for minute, (scene, numbers, _) in enumerate(chosen):
        drawn = [np.minimum(image, 239) for _, image in open_source(scene).frames(numbers)]
        for frame in range(minute * MINUTE, (minute + 1) * MINUTE):
            left, top = shake(frame)
            x, y = rng.integers(0, 64, 2)
            shown = drawn[to_and_fro(frame)][top : top + HEIGHT, left : left + WIDTH]
            yield shown + grain[y : y + HEIGHT, x : x + WIDTH]
        print(f"{minute + 1} of {MINUTES} minutes made", flush=True)


def tracklets() -> list[tuple[int, int]]:
    """First frame and frame after the last of each: lengths are log-normal, and each is within one minute."""
    rng = np.random.default_rng(SEED)
    lengths = rng.lognormal(0, 1, TRACKLETS)
    lengths = np.maximum(np.round(lengths * VISIBLE * FRAMES / lengths.sum()), 1).astype(int)
    found = []
    for minute, mine in enumerate(lengths.reshape(MINUTES, -1)):
        # Idle time before each tracklet and after the last, at least 2 frames so that none touch.
        idle = np.floor(rng.dirichlet(np.ones(len(mine) + 1)) * (MINUTE - mine.sum() - 2 * len(mine) - 2)) + 2
        start = minute * MINUTE + np.cumsum(idle[:-1]) + np.concatenate([[0], np.cumsum(mine[:-1])])
        found += [(int(first), int(first + length)) for first, length in zip(start, mine, strict=True)]
    return found


def boxes_of(chosen: list[tuple[Path, NDArray[np.int64], NDArray[np.float32]]]) -> Boxes:
    """The boxes of the polyps, with tracks."""
    rows = [(frame, track) for track, span in enumerate(tracklets()) for frame in range(*span)]
    xyxy = [chosen[frame // MINUTE][2][to_and_fro(frame)] - np.tile(shake(frame), 2) for frame, _ in rows]
    inside = np.clip(xyxy, 0, [WIDTH, HEIGHT, WIDTH, HEIGHT])
    frame, track = np.array(rows).T
    return Boxes(np.zeros(len(rows), np.int32), frame, inside, track=track)


def twice(once: Path, place: Path) -> None:
    """The packets of a recording two times, as one recording."""
    import av

    with av.open(str(place), "w", format="mp4") as file:
        copied = None
        for turn in range(2):
            with av.open(str(once)) as source:
                stream = source.streams.video[0]
                copied = copied or file.add_stream_from_template(stream)
                for packet in source.demux(stream):
                    if packet.pts is not None and packet.dts is not None:
                        length = round(FRAMES / FPS / packet.time_base)
                        packet.pts, packet.dts = packet.pts + turn * length, packet.dts + turn * length
                        packet.stream = copied
                        file.mux(packet)


