"""Encoding tracklets, frames batched across them, against torch one tracklet at a time; and memory.

The peer is the published way: torch, one tracklet after the other, batch 1. All have the same Lite0 encoder and the
same crops in memory, so that only the network is measured. Memory is the peak of a process that embeds 100 or 1,000
tracklets of 16 frames of one recording.

Run: .venv/bin/python benchmarks/embedding.py
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Boxes, Corpus, Polyp, Video
from polypcount.encoder import Encoder, Preprocessing, embed, load_encoder, save_encoder
from polypcount.machine import available_cores
from polypcount.tracking import link_tracklets
from polypcount.video import CropRule

if TYPE_CHECKING:  # what needs torch stays out of the process whose memory is measured
    from polypcount.encoder import TrackletEncoder

TRACKLETS, ROUNDS, FRAMES = 12, 5, 16
Clips = list[NDArray[np.uint8]]


def tracklets(size: int) -> Clips:
    """Crops of tracklets of 8 to 20 looked-at frames."""
    rng = np.random.default_rng(0)
    return [rng.integers(0, 255, (int(rng.integers(8, 21)), size, size, 3), dtype=np.uint8) for _ in range(TRACKLETS)]


def by_torch(model: "TrackletEncoder", clips: Clips) -> NDArray[np.float32]:
    """One tracklet at a time."""
    import torch

    images = model.spec.preprocessing
    mean, std = torch.tensor(images.mean).view(3, 1, 1), torch.tensor(images.std).view(3, 1, 1)
    vectors = []
    with torch.inference_mode():
        for clip in clips:
            frames = (torch.from_numpy(clip).permute(0, 3, 1, 2).float() / 255 - mean) / std
            vectors.append(model(frames[None], torch.ones(1, len(clip), dtype=torch.bool)).numpy()[0])
    return np.stack(vectors)


def by_us(encoder: Encoder, clips: Clips) -> NDArray[np.float32]:
    """All frames together, then all tracklets together."""
    features = encoder.encode_frames(np.concatenate(clips))
    lengths = [len(clip) for clip in clips]
    batch = np.zeros((len(clips), max(lengths), features.shape[1]), np.float32)
    mask = np.arange(max(lengths)) < np.array(lengths)[:, None]
    batch[mask] = features
    return encoder.encode_sequences(batch, mask)


def seconds(work: Callable[[], object]) -> float:
    """Of one run."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare_speed(place: Path) -> None:
    """Torch and each engine, in turn."""
    import torch

    from polypcount.encoder import new_encoder

    torch.set_num_threads(available_cores())
    torch.manual_seed(0)
    model = new_encoder("lite0").eval()
    clips = tracklets(model.spec.preprocessing.crop.size)
    folder = save_encoder(model, place / "encoder")
    engines = {name: load_encoder(folder, engine=name) for name in ("onnx", "openvino")}
    ratios: dict[str, list[float]] = {name: [] for name in engines}
    for turn in range(ROUNDS + 1):
        theirs = seconds(lambda: by_torch(model, clips))
        ours = {name: seconds(lambda e=encoder: by_us(e, clips)) for name, encoder in engines.items()}  # type: ignore[misc]
        if turn:  # the first one warms up
            for name, taken in ours.items():
                ratios[name].append(theirs / taken)
            each = ", ".join(f"{name} {TRACKLETS / taken:.2f}" for name, taken in ours.items())
            print(f"tracklets a second: torch {TRACKLETS / theirs:.2f}, {each}")
    print(
        f"{TRACKLETS} tracklets, {sum(map(len, clips))} frames of 232 pixels, {available_cores()} cores, against torch:"
    )
    expected = by_torch(model, clips)
    for name, encoder in engines.items():
        difference = float(np.abs(by_us(encoder, clips) - expected).max())
        print(
            f"  {name}: {statistics.median(ratios[name]):.1f} times faster (median of {ROUNDS}; "
            f"{min(ratios[name]):.1f} to {max(ratios[name]):.1f}); vectors differ by up to {difference:.1e}"
        )


def recording(count: int, folder: Path) -> Corpus:
    """So many tracklets, one after the other, in one folder of small pictures, which repeat."""
    from PIL import Image

    rng = np.random.default_rng(0)
    folder.mkdir()
    for frame in range(count * FRAMES):
        if frame < 10:
            Image.fromarray(rng.integers(0, 255, (120, 160, 3), dtype=np.uint8)).save(folder / f"{frame}.jpg")
        else:
            (folder / f"{frame}.jpg").hardlink_to(folder / f"{frame % 10}.jpg")
    frame_of, polyp = np.arange(count * FRAMES), np.repeat(np.arange(count), FRAMES)
    boxes = Boxes(np.zeros_like(frame_of), frame_of, np.tile([40, 30, 80, 70], (len(frame_of), 1)), polyp=polyp)
    video = Video("recording", len(frame_of), 25.0, 160, 120, source=str(folder))
    return Corpus((video,), boxes, tuple(Polyp(f"p{row}", "recording") for row in range(count)))


def compare_memory(place: Path) -> None:
    """The peak of a process of its own for each number of tracklets."""
    from polypcount.encoder import new_encoder

    small = new_encoder("lite0", preprocessing=Preprocessing(crop=CropRule(size=64)))
    save_encoder(small, place / "small")
    for count in (100, 1000):
        recording(count, place / str(count)).save(place / f"corpus-{count}")
        run = [sys.executable, __file__, "--peak", str(place / f"corpus-{count}"), str(place / "small")]
        print(f"peak memory with {count:,} tracklets: {subprocess.check_output(run, text=True).strip()}")


def peak(corpus: str, encoder: str) -> None:
    """Embed, and print the peak of this process."""
    read = Corpus.load(corpus)
    with tempfile.TemporaryDirectory() as cache:
        found = embed(read, link_tracklets(read.boxes), load_encoder(encoder, engine="onnx"), cache=cache)
    # Not ru_maxrss: a process inherits that of the one that started it, which has had torch at work.
    status = Path("/proc/self/status").read_text().splitlines()
    most = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    print(f"{most / 1024:.0f} MB ({len(found):,} vectors, {len(read.boxes):,} crops of 64 pixels)")


def main() -> None:
    """Speed and memory."""
    with tempfile.TemporaryDirectory() as place:
        compare_speed(Path(place))
        compare_memory(Path(place))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        peak(*sys.argv[2:])
    else:
        main()
