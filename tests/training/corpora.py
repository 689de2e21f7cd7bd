"""A small corpus with pixels: coloured discs that move, return and look alike within a polyp; and small trainings."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from polypcount.corpus import Boxes, Corpus, Polyp, Video
from polypcount.training.checkpoint import load_state

WIDTH, HEIGHT, SEEN, PAUSE = 48, 40, 34, 3


def drawn_corpus(folder: Path, videos: int = 4, polyps: int = 2, returns: int = 2, split: str = "") -> Corpus:
    """Videos as folders of PNG frames; each polyp is seen in `returns` tracklets of 34 frames, one polyp at a time."""
    rng = np.random.default_rng(0)
    rows, xyxy, names, records = [], [], [], []
    for row in range(videos):
        place = folder / f"video-{row}"
        place.mkdir(parents=True)
        length = polyps * returns * (SEEN + PAUSE)
        colours = rng.integers(40, 255, (polyps, 3))
        for frame in range(length):
            turn, inside = divmod(frame, SEEN + PAUSE)
            picture = rng.integers(0, 40, (HEIGHT, WIDTH, 3)).astype(np.uint8)
            if inside < SEEN:
                left, top = 8 + inside // 4, 10 + turn % 3
                picture[top : top + 14, left : left + 16] = colours[turn % polyps]
                rows.append((row, frame, row * polyps + turn % polyps))
                xyxy.append((left, top, left + 16, top + 14))
            Image.fromarray(picture).save(place / f"{frame:04d}.png")
        names += [Polyp(f"polyp-{row}-{k}", f"video-{row}") for k in range(polyps)]
        records.append(
            Video(f"video-{row}", length, fps=25.0, width=WIDTH, height=HEIGHT, source=str(place), split=split)
        )
    video, frame, polyp = np.array(rows).T
    boxes = Boxes(video, frame, np.array(xyxy), polyp=polyp)
    return Corpus(tuple(records), boxes, tuple(names))


# Changes that make any recipe small enough for a test: two steps of a few dozen crops.
TINY = (
    "model.backbone=tiny",
    "model.d=16",
    "model.layers=1",
    "model.heads=2",
    "model.ff=32",
    "crop.size=32",
    "epochs=1",
    "batches_per_epoch=2",
    "data.leave_out=[study, test]",
    "data.validation=[val, validation]",
    "data.validation_share=0.25",
    "validation.batches=2",
    "optimizer.lr=1e-3",
)
WHOLE = ("epochs=2", "augmentation.rotation=20")
_FEW = {"sfe": "samples=6", "mve": "samples=3", "tpc": "samples=3"}


def tiny(recipe: str) -> list[str]:
    """Changes for a recipe that comes with the package."""
    few = [f"sampler.{_FEW[recipe]}"] if recipe in _FEW else ["sampler.polyps=3", "sampler.views=4"]
    return [*TINY, *few]


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    return list(csv.DictReader(path.read_text().splitlines()))


def weights(run: Path) -> dict[str, Any]:
    """Weights and the optimiser's state in the last checkpoint."""
    return load_state(run / "checkpoints" / "last.safetensors")[0]


def equal(a: Path, b: Path) -> bool:
    """Whether two runs have the same last checkpoint, bit by bit."""
    first, second = weights(a), weights(b)
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def assert_same_gradients(a: Path, b: Path) -> None:
    """After one step the first moment of AdamW is a tenth of the gradient."""
    first, second = ({n: v for n, v in weights(run).items() if n.endswith("exp_avg")} for run in (a, b))
    assert first.keys() == second.keys()
    largest = max(float(values.abs().max()) for values in first.values())
    assert largest > 1e-4
    for name in first:
        assert torch.allclose(first[name], second[name], rtol=0, atol=1e-6 * max(largest, 0.1)), name
