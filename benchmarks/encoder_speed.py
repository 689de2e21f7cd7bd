"""How long the bundled encoder takes to embed crops, against another encoder, in turns on one thread.

Run: .venv/bin/python -m benchmarks.encoder_speed FOLDER [--rounds 9]
"""

import argparse
import time
from pathlib import Path

import numpy as np

import polypcount as pc
from polypcount.encoder import Encoder

CROPS = 64


def seconds(encoder: Encoder) -> float:
    """To embed 64 crops as one tracklet."""
    size = encoder.spec.preprocessing.crop.size
    crops = np.random.default_rng(0).integers(0, 256, (CROPS, size, size, 3), np.uint8)
    start = time.perf_counter()
    encoder.encode_sequences(encoder.encode_frames(crops)[None], np.ones((1, CROPS), bool))
    return time.perf_counter() - start


def main() -> None:
    """Print the median ratio and its range."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    encoders = [pc.load_encoder(folder, threads=1, engine="onnx") for folder in (None, options.folder)]
    for encoder in encoders:
        seconds(encoder)
    ratios = []
    for _ in range(options.rounds):
        own, other = (seconds(encoder) for encoder in encoders)
        ratios.append(own / other)
    print(f"bundled / other: {np.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
