"""Encoding tracklets through ONNX Runtime, frames batched across tracklets, against torch one tracklet at a time.

The peer is the published way: torch, one tracklet after the other, batch 1. Both have the same Lite0 encoder with
random weights and the same crops in memory, so that only the network is measured.

Run: .venv/bin/python benchmarks/embedding.py
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from polypcount.encoder import Encoder, TrackletEncoder, load_encoder, new_encoder, save_encoder
from polypcount.machine import available_cores

TRACKLETS, ROUNDS = 12, 5


def tracklets(size: int) -> list[NDArray[np.uint8]]:
    """Crops of tracklets of 8 to 20 looked-at frames."""
    rng = np.random.default_rng(0)
    return [rng.integers(0, 255, (int(rng.integers(8, 21)), size, size, 3), dtype=np.uint8) for _ in range(TRACKLETS)]


def by_torch(model: TrackletEncoder, clips: list[NDArray[np.uint8]]) -> NDArray[np.float32]:
    """One tracklet at a time."""
    images = model.spec.preprocessing
    mean, std = torch.tensor(images.mean).view(3, 1, 1), torch.tensor(images.std).view(3, 1, 1)
    vectors = []
    with torch.inference_mode():
        for clip in clips:
            frames = (torch.from_numpy(clip).permute(0, 3, 1, 2).float() / 255 - mean) / std
            vectors.append(model(frames[None], torch.ones(1, len(clip), dtype=torch.bool)).numpy()[0])
    return np.stack(vectors)


def by_us(encoder: Encoder, clips: list[NDArray[np.uint8]]) -> NDArray[np.float32]:
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


def main() -> None:
    """Compare, in turn."""
    torch.set_num_threads(available_cores())
    torch.manual_seed(0)
    model = new_encoder("lite0", weights=False).eval()
    clips = tracklets(model.spec.preprocessing.crop.size)
    with tempfile.TemporaryDirectory() as place:
        encoder = load_encoder(save_encoder(model, Path(place) / "encoder"))
        ratios = []
        for turn in range(ROUNDS + 1):
            ours, theirs = seconds(lambda: by_us(encoder, clips)), seconds(lambda: by_torch(model, clips))
            if turn:  # the first one warms up
                ratios.append(theirs / ours)
                print(
                    f"ours {TRACKLETS / ours:.2f} tracklets a second, torch {TRACKLETS / theirs:.2f}: "
                    f"{ratios[-1]:.2f} times"
                )
        largest = float(np.abs(by_us(encoder, clips) - by_torch(model, clips)).max())
    print(
        f"{TRACKLETS} tracklets, {sum(map(len, clips))} frames of 232 pixels, {available_cores()} cores: "
        f"{statistics.median(ratios):.1f} times faster (median of {ROUNDS}; {min(ratios):.1f} to {max(ratios):.1f}); "
        f"vectors differ by up to {largest:.1e}"
    )


if __name__ == "__main__":
    main()
