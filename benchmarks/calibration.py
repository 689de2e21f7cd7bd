"""How hard the simulated study set is: frozen ImageNet features of EfficientNet-Lite0, as they are, on 19 procedures.

Aimed at: no clustering FR 20 with a spread of 20; threshold FR 8 to 12; affinity propagation 2.5 to 4.5; mean pair AUC
0.75 to 0.8. Also: time alone, and how much more alike tracklets of a polyp are that are near in time.

Difficulty is set on renders 50 and above, which no table uses.

Run: .venv/bin/python benchmarks/calibration.py [--stills KVASIR_SEG] [--renders 3] [--first 0]
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr

import polypcount as pc
from polypcount.corpus import Embeddings
from polypcount.encoder import Encoder, load_encoder, new_encoder, save_encoder
from polypcount.encoder.spec import Preprocessing
from polypcount.evaluation import leave_one_out
from polypcount.simulate.scenes import write_benchmark
from polypcount.tracking import link_tracklets
from polypcount.video import CropRule


def frozen_features(folder: Path) -> Encoder:
    """The backbone as it is; a tracklet is the mean of its frames."""
    start = new_encoder("lite0")
    images = Preprocessing(crop=CropRule(2, 128), mean=start.backbone.mean, std=start.backbone.std)
    encoder = new_encoder("lite0", pooling="mean", d=start.spec.feature_size, preprocessing=images)
    with torch.no_grad():
        encoder.sequence.project.weight.copy_(torch.eye(start.spec.feature_size))
        encoder.sequence.project.bias.zero_()
    return load_encoder(save_encoder(encoder.eval(), folder))


def pair_auc(found: Embeddings) -> float:
    """By Euclidean distance, as published; mean over videos with two polyps."""
    from sklearn.metrics import roc_auc_score

    aucs = []
    for video in range(len(found.videos)):
        mine = found.video == video
        polyp, vectors = found.polyp[mine], found.vectors[mine]
        if len(np.unique(polyp)) > 1:
            i, j = np.triu_indices(len(polyp), 1)
            aucs.append(roc_auc_score(polyp[i] == polyp[j], -np.linalg.norm(vectors[i] - vectors[j], axis=1)))
    return float(np.mean(aucs))


def drift(found: Embeddings) -> float:
    """Rank correlation of cosine and nearness in time over the tracklets of a polyp; mean over polyps with six."""
    unit = found.vectors / np.linalg.norm(found.vectors, axis=1, keepdims=True)
    correlations = []
    for polyp in np.unique(found.polyp):
        mine = np.flatnonzero(found.polyp == polyp)
        i, j = np.triu_indices(len(mine), 1)
        if len(mine) >= 6:
            apart = np.abs(found.start_frame[mine[i]] - found.start_frame[mine[j]])
            correlations.append(spearmanr((unit[mine[i]] * unit[mine[j]]).sum(axis=1), -apart)[0])
    return float(np.mean(correlations))


def main() -> None:
    """Draw, encode, study, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--stills", type=Path)
    parser.add_argument("--renders", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="number of the first render")
    given = parser.parse_args()
    rows: list[list[float]] = []
    with tempfile.TemporaryDirectory() as place:
        encoder = frozen_features(Path(place) / "encoder")
        for render in range(given.first, given.first + given.renders):
            _, study = write_benchmark(Path(place) / str(render), render=render, stills=given.stills, identities=1)
            tracklets = link_tracklets(study.boxes)
            found = pc.embed(study, tracklets, encoder, min_frames=30, cache=Path(place) / "features")
            result = leave_one_out(found, ["none", "threshold", "ap", "temporal-ap", "time-only"], grid="coarse")
            scores = {one.method: one.rules[0].scores["fr"] for one in result.methods}
            rows.append([scores["none"].mean, scores["none"].std])
            rows[-1] += [scores[name].mean for name in ("threshold", "ap", "temporal-ap", "time-only")]
            rows[-1] += [pair_auc(found), drift(found)]
            print(f"render {render}:", *(f"{value:.3f}" for value in rows[-1]), flush=True)
    names = ("none", "its spread", "threshold", "AP", "Temporal-AP", "time only", "pair AUC", "drift")
    for name, values in zip(names, np.transpose(rows), strict=True):
        print(f"{name:12} {values.mean():.3f}  ({values.min():.3f} to {values.max():.3f})")


if __name__ == "__main__":
    main()
