"""How long counting a recording takes, and how much memory, when only the frames that are needed are decoded.

The recording is simulated: 10 minutes of 1280 x 1080 pixels at 30 frames a second, H.264 with key frames up to 250
frames apart. It has 40 stretches of 15 seconds that show 10 drawn polyps by turns, each 30 frames to and fro, with a
shaking camera and noise. In every stretch the polyp has boxes in one tracklet; tracklets have very different lengths,
and together 15 % of the frames. Packets repeat after 150 seconds, so that little has to be encoded; a recording of
20 minutes has them twice as often. Both are made on the first run, which takes some minutes, and kept in OUT.

Counting is `polypcount.count` with pictures and the bundled encoder, without the search for a border to mask, then
writing the report; once with that search. The peer is the same without it, but decodes every frame up to the last that
is wanted, with PyAV. With `--detector`, the boxes are not given, and every frame is needed; see `count_detector.py`.

Each run is a process of its own, on 2 cores. Wall seconds go from the start of the process to its end, and grow with
whatever else the machine does; processor seconds are those of all its threads.

Run: .venv/bin/python benchmarks/count.py OUT [--rounds 3] [--detector bundled [--seconds 600]]
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
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import count_detector

import polypcount as pc
from polypcount.corpus import Boxes, Corpus, Video
from polypcount.counting import CountReport
from polypcount.encoder import Encoder
from polypcount.video import FrameSource
from polypcount.video.frames import Image

WIDTH, HEIGHT, FPS, CORES = 1280, 1080, 30, 2
POLYPS, CLIP, STRETCH = 10, 30, 450  # frames drawn of each polyp, and shown of it in a row
PART = POLYPS * STRETCH  # frames that are encoded
FRAMES = 4 * PART
QUALITY = 22  # `main` prints the megabits a second
SHAKE, GRAIN = 16, 64  # pixels that the camera and the noise move by, to each side and at most
VISIBLE, SEED = 0.15, 1
MOST_RATIO, MOST_MB, MOST_GROWTH = 0.15, 1500, 1.10
UNMASKED = pc.CountSettings(mask_border=False)
MADE = {"10 minutes": 4, "20 minutes": 8}  # recordings, and how often each has the encoded part

Clip = tuple[Path, NDArray[np.int32], NDArray[np.float32]]


def clips(folder: Path) -> list[Clip]:
    """Of each polyp the file of its scene, frames in a row that show it, and its boxes, float32[CLIP, 4]."""
    from polypcount.simulate import TimelineSettings, simulate_scenes  # not in the memory that is measured

    settings = TimelineSettings(width=WIDTH + 2 * SHAKE, height=HEIGHT + 2 * SHAKE, minutes=2)
    corpus = simulate_scenes(folder, POLYPS, SEED, "study", settings=settings, processes=1)
    sources = {video.id: Path(str(video.source)) for video in corpus.videos}
    boxes, found = corpus.boxes, []
    for row, polyp in enumerate(corpus.polyps):
        mine = np.flatnonzero(boxes.polyp == row)
        runs = np.flatnonzero(boxes.frame[mine[CLIP - 1 :]] - boxes.frame[mine[: 1 - CLIP]] == CLIP - 1)
        if len(runs):
            chosen = mine[runs[0] : runs[0] + CLIP]
            found.append((sources[str(polyp.video)], boxes.frame[chosen], boxes.xyxy[chosen]))
    return found[:POLYPS]


def shown(frame: int) -> tuple[int, int, tuple[int, int]]:
    """What a frame shows: which polyp, which frame of its clip, and left and top of the part that the camera sees."""
    polyp, place = frame % PART // STRETCH, frame % PART % (2 * CLIP)
    corner = SHAKE + round(SHAKE * np.sin(frame % PART / 11)), SHAKE + round(SHAKE * np.sin(frame % PART / 7))
    return polyp, min(place, 2 * CLIP - 1 - place), corner


def frames(chosen: list[Clip]) -> Iterator[Image]:
    """The frames that are encoded."""
    from polypcount.video import open_source

    rng = np.random.default_rng(SEED)
    # Frames leave room for the noise, so that adding bytes cannot overflow.
    noise = np.clip(rng.normal(8, 3, (HEIGHT + GRAIN, WIDTH + GRAIN, 3)), 0, 16).astype(np.uint8)
    for polyp, (scene, numbers, _) in enumerate(chosen):
        drawn = [np.minimum(image, 239) for _, image in open_source(scene).frames(numbers)]
        for frame in range(polyp * STRETCH, (polyp + 1) * STRETCH):
            _, place, (left, top) = shown(frame)
            x, y = rng.integers(0, GRAIN, 2)
            yield drawn[place][top : top + HEIGHT, left : left + WIDTH] + noise[y : y + HEIGHT, x : x + WIDTH]
        print(f"{polyp + 1} of {POLYPS} polyps drawn and encoded", flush=True)


def boxes_of(chosen: list[Clip], parts: int) -> Boxes:
    """One tracklet in each stretch, of log-normal length, with its track."""
    rng = np.random.default_rng(SEED)
    share = rng.lognormal(0, 1, FRAMES // STRETCH)
    lengths = np.clip(np.round(share * VISIBLE * FRAMES / share.sum()), 1, STRETCH - 4).astype(int)
    starts = np.arange(len(lengths)) * STRETCH + 2 + (rng.random(len(lengths)) * (STRETCH - 4 - lengths)).astype(int)
    rows = [
        (turn * FRAMES + frame, turn * len(lengths) + track)
        for turn in range(parts * PART // FRAMES)
        for track, (start, length) in enumerate(zip(starts, lengths, strict=True))
        for frame in range(start, start + length)
    ]
    seen = [shown(frame) for frame, _ in rows]
    xyxy = np.array([chosen[polyp][2][place] - np.tile(corner, 2) for polyp, place, corner in seen])
    inside = np.clip(xyxy, 0, [WIDTH, HEIGHT, WIDTH, HEIGHT])
    seen_at_all = (inside[:, 2:] - inside[:, :2] >= 1).all(axis=1)  # the camera may have moved away from the polyp
    frame, track = np.array(rows)[seen_at_all].T
    return Boxes(np.zeros(len(frame), np.int32), frame, inside[seen_at_all], track=track)


def repeat(part: Path, times: int, place: Path) -> None:
    """Write the packets of a video several times over, as one video."""
    import av

    unfinished = place.with_suffix(".unfinished")
    with av.open(str(part)) as source, av.open(str(unfinished), "w", format="mp4") as file:
        stream = source.streams.video[0]
        copied = file.add_stream_from_template(stream)
        for turn in range(times):
            source.seek(0, stream=stream)
            for packet in source.demux(stream):
                if packet.pts is not None and packet.dts is not None:
                    later = round(turn * PART / FPS / packet.time_base)
                    packet.pts, packet.dts, packet.stream = packet.pts + later, packet.dts + later, copied
                    file.mux(packet)
    unfinished.rename(place)


def make(out: Path) -> None:
    """The recordings and their boxes, where they are not there yet."""
    from polypcount.video import open_source, write_video

    chosen = clips(out / "scenes")
    part = out / "part.mp4"
    if not part.exists():
        write_video(part, frames(chosen), FPS, quality=QUALITY)
    probes = np.array([0, 1, 249, 250, 251, STRETCH, PART // 2 + 7, PART - 1])
    for name, times in MADE.items():
        place = out / f"{name}.mp4"
        if not place.exists():
            repeat(part, times, place)
        opened = open_source(place)
        assert opened.frame_count == times * PART, f"{place} has {opened.frame_count} frames"
        first = dict(opened.frames(probes))
        for turn in range(1, times):
            for frame, image in opened.frames(probes + turn * PART):
                assert np.array_equal(image, first[frame % PART]), f"{place}: frame {frame} is another"
        if not (out / name).exists():
            video = Video(name, times * PART, FPS, WIDTH, HEIGHT)
            pc.write_boxes(Corpus((video,), boxes_of(chosen, times)), "csv", out / name)


class EveryFrame:
    """A recording that is decoded from its first frame to the last that is wanted."""

    def __init__(self, path: Path, source: FrameSource) -> None:
        self.frame_count, self.width, self.height = source.frame_count, source.width, source.height
        self.fps, self._path = source.fps, path

    def frames(self, wanted: ArrayLike) -> Iterator[tuple[int, Image]]:
        """Each wanted frame."""
        import av

        left = set(np.asarray(wanted).tolist())
        with av.open(str(self._path)) as file:
            file.streams.video[0].thread_type = "AUTO"
            for index, frame in enumerate(file.decode(video=0)):
                if index in left:
                    yield index, np.asarray(frame.to_ndarray(format="rgb24"), np.uint8)
                    left.remove(index)
                if not left:
                    return


def count_decoded() -> list[int]:
    """Let decoded frames be counted from now on; a list with how many there were."""
    video_file: Any = import_module("polypcount.video.video_file")
    plain, found = video_file.decoded, [0]

    def counted(packets: Any) -> Iterator[Any]:
        for frame in plain(packets):
            found[0] += 1
            yield frame

    video_file.decoded = counted
    return found


def needed(recording: Path, boxes: Path, encoder: Encoder) -> CountReport:
    """Ours."""
    return pc.count(recording, boxes, encoder=encoder, settings=UNMASKED)


def masked(recording: Path, boxes: Path, encoder: Encoder) -> CountReport:
    """Ours, with the search for the border around the view, as by default."""
    return pc.count(recording, boxes, encoder=encoder)


def every(recording: Path, boxes: Path, encoder: Encoder) -> CountReport:
    """The peer."""
    open_as(lambda source: EveryFrame(recording, source))
    return pc.count(recording, boxes, encoder=encoder, settings=UNMASKED)


def open_as(wrapped: Callable[[FrameSource], FrameSource]) -> None:
    """Let recordings be opened as something else from now on."""
    module: Any = import_module("polypcount.counting.recording")
    plain = module.open_source
    module.open_source = lambda path: wrapped(plain(path))


def one_count(way: Callable[[Path, Path, Encoder], CountReport], out: Path, name: str) -> dict[str, Any]:
    """Count and report; where the time went, in wall seconds by step, and what was found."""
    decoded = count_decoded()
    begun = time.perf_counter()
    encoder = pc.load_encoder()
    loaded = time.perf_counter()
    report = way(out / f"{name}.mp4", out / name / "boxes.csv", encoder)
    done = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=out) as place:
        report.save(Path(place) / "report")
    saved = time.perf_counter()
    steps = report.seconds
    return {
        "steps": {
            "load encoder": loaded - begun,
            **steps,
            "write report": saved - done,
        },
        "decoded": decoded[0],
        "polyps": [tracklet.polyp for tracklet in report.tracklets],
        "drawn": [shown(tracklet.start_frame)[0] for tracklet in report.tracklets],
        "left out": report.left_out,
    }


def run(way: str, out: Path, name: str = "10 minutes", *more: str) -> dict[str, Any]:
    """One run in a process of its own, with its seconds and its peak memory. more: See `count_detector.one_run`."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, __file__, str(out), "--one", way, name, *more]
    found: dict[str, Any] = json.loads(subprocess.check_output(command, text=True).splitlines()[-1])
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**found, "wall": wall, "processor": processor}


def one(out: Path, way: str, name: str, *more: str) -> dict[str, Any]:
    """What `run` runs."""
    if more:
        return count_detector.one_run(way, out, name, more[0], int(more[1]))
    found = one_count({"needed": needed, "every": every, "masked": masked}[way], out, name)
    # Not ru_maxrss: a process inherits that of the one that started it.
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return {**found, "peak": peak / 1024}


def spread(values: Iterable[float], digits: int = 3) -> str:
    """Median and range."""
    known = list(values)
    middle, low, high = (f"{value:.{digits}f}" for value in (statistics.median(known), min(known), max(known)))
    return f"{middle} (median of {len(known)}; {low} to {high})"


def compare_counts(out: Path, rounds: int) -> float:
    """Ours and the peer in turn; returns the peak memory of ours."""
    seconds = FRAMES / FPS
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(run("needed", out))
        theirs.append(run("every", out))
        for told, found in (("needed frames", ours[-1]), ("every frame", theirs[-1])):
            steps = {"start": found["wall"] - sum(found["steps"].values()), **found["steps"]}
            each = ", ".join(f"{step} {taken:.2f}" for step, taken in steps.items())
            print(f"{told}: wall {found['wall']:.1f} s, processor {found['processor']:.1f} s; wall: {each}", flush=True)
    last = ours[-1]
    assert all(found["polyps"] == last["polyps"] for found in [*ours, *theirs])
    print(
        f"{seconds:.0f} s of video: {len(last['polyps'])} tracklets counted as {len(set(last['polyps']))} polyps of "
        f"{len(set(last['drawn']))} drawn, {last['left out']} tracklets too short; the same either way"
    )
    print(f"frames decoded: {last['decoded']:,} of {FRAMES:,}")
    for clock in ("wall", "processor"):
        ratio = [found[clock] / seconds for found in ours]
        print(f"{clock} seconds, of the recording's: {spread(ratio)}; every frame: ", end="")
        print(f"{spread([found[clock] / seconds for found in theirs])}; every frame takes ", end="")
        print(f"{spread([b[clock] / a[clock] for a, b in zip(ours, theirs, strict=True)], 1)} times as many")
    met = statistics.median(found["wall"] for found in ours) <= MOST_RATIO * seconds
    print(f"at most {MOST_RATIO:g} wanted: {'met' if met else 'NOT met'}", flush=True)
    return float(max(found["peak"] for found in ours))


def compare_memory(out: Path, ten: float) -> None:
    """Peak memory of ours for both recordings. ten: that of the shorter, in MB."""
    with_mask = run("masked", out)
    print(f"border masked: wall {with_mask['wall']:.1f} s, {with_mask['steps']['mask']:.1f} s of it to find the border")
    twenty = run("needed", out, "20 minutes")
    met = max(ten, twenty["peak"]) < MOST_MB and twenty["peak"] <= MOST_GROWTH * ten
    print(f"peak memory: 10 minutes {ten:.0f} MB, 20 minutes {twenty['peak']:.0f} MB ({twenty['peak'] / ten - 1:+.1%})")
    print(f"below {MOST_MB:,} MB, at most {MOST_GROWTH - 1:.0%} more wanted: {'met' if met else 'NOT met'}", flush=True)


def main() -> None:
    """Make what is missing, then measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--detector", help="compare counting with this detector instead: bundled, or an ONNX file")
    parser.add_argument("--seconds", type=int, default=600, help="how much of the recording is used with a detector")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(given.out, *given.one)))
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    given.out.mkdir(parents=True, exist_ok=True)
    make(given.out)
    size = (given.out / "10 minutes.mp4").stat().st_size
    print(f"{WIDTH} x {HEIGHT}, {FPS} frames a second, {8e-6 * size * FPS / FRAMES:.1f} megabits a second", flush=True)
    if given.detector:
        count_detector.compare_with_detector(given.out, given.detector, given.rounds, given.seconds, run, spread)
    else:
        compare_memory(given.out, compare_counts(given.out, given.rounds))


if __name__ == "__main__":
    main()
