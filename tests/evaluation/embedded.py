"""Small embeddings with known polyps, to study."""

import numpy as np

from polypcount.corpus import Embeddings, Polyp, Video


def embedded(
    counts: list[list[int]], seed: int = 0, noise: float = 0.7, dimension: int = 6, unseen: int = 0
) -> Embeddings:
    """One video for each entry, with a polyp of so many tracklets for each number in it.

    Tracklets of a polyp come one after the other, some return late. unseen: polyps of each video without a tracklet.
    """
    rng = np.random.default_rng(seed)
    videos: list[Video] = []
    polyps: list[Polyp] = []
    rows: list[tuple[int, int, int]] = []
    for place, sizes in enumerate(counts):
        name = f"v{place}"
        videos.append(Video(name, frame_count=100_000, fps=25.0))
        owners = [len(polyps) + k for k, size in enumerate(sizes) for _ in range(size)]
        polyps += [Polyp(f"{name}_{k}", name) for k in range(len(sizes) + unseen)]
        starts = np.sort(rng.choice(np.arange(0, 90_000, 100), len(owners), replace=False))
        late = rng.permutation(len(owners))[: len(owners) // 6]
        order = np.concatenate([np.setdiff1d(np.arange(len(owners)), late), late])
        rows += [(place, int(start), owners[which]) for start, which in zip(starts, order, strict=True)]
    centres = rng.normal(size=(len(polyps), dimension))
    table = np.array(rows).reshape(-1, 3)
    return Embeddings(
        videos=videos,
        polyps=polyps,
        video=table[:, 0],
        start_frame=table[:, 1],
        stop_frame=table[:, 1] + 60,
        box_count=np.full(len(table), 60),
        polyp=table[:, 2],
        vectors=centres[table[:, 2]] + noise * rng.normal(size=(len(table), dimension)),
        encoder="made up",
    )
