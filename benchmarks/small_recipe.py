"""What the recipe `small` learns in minutes: retrieval on held-out sequences of CVC-ClinicDB.

Learnt from are sequences 1 to 14 and the stills of Kvasir-SEG; sequences 15 to 29 are held out. The halves lie apart,
since neighbouring sequences may be of one patient. Every held-out frame looks for others of its sequence (HR@1, mAP),
also among those more than 8 frames away only (HR@1 far), and pairs of frames are told apart by their cosine (AUROC).
Beside it: the same encoder untrained, and frozen ImageNet features of EfficientNet-Lite0, as they are and
standardised per dimension by the stills.

Run: .venv/bin/python benchmarks/small_recipe.py CVC_CLINICDB KVASIR_SEG [--seeds 3] [--set KEY=VALUE ...]
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import polypcount as pc
from polypcount.corpus import Tracklets
from polypcount.encoder import Encoder, load_encoder, save_encoder
from polypcount.evaluation import reidentification_scores, retrieval_scores
from polypcount.training import load_recipe
from polypcount.training.start import new_model

LAST_LEARNT, NEAR = 14, 8
Vectors = NDArray[np.float32]


def halves(folder: Path) -> tuple[pc.Corpus, pc.Corpus]:
    """What is learnt from, and what is held out."""
    corpus = pc.read_corpus("cvc-clinicdb", folder)
    first = {video.id: int(video.id.rpartition("-")[2]) <= LAST_LEARNT for video in corpus.videos}
    learnt, held = (corpus.select(videos=[name for name in first if first[name] == one]) for one in (True, False))
    return learnt, held


def single_frames(corpus: pc.Corpus) -> Tracklets:
    """Every box as a tracklet of its own."""
    return Tracklets.gather(corpus.boxes, np.arange(len(corpus.boxes)))


def scores(vectors: Vectors, polyp: NDArray[np.int32], start: NDArray[np.int32]) -> list[float]:
    """HR@1, HR@1 far, mAP, AUROC of single frames."""
    found, pairs = retrieval_scores(vectors, polyp), reidentification_scores(vectors, polyp)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    same = polyp[:, None] == polyp
    near = same & (abs(start[:, None] - start) <= NEAR)
    nearest = np.where(near, -2.0, unit @ unit.T).argmax(axis=1)
    far = (polyp[nearest] == polyp)[(same & ~near).any(axis=1)].mean()
    return [found.hit_rate_1, float(far), found.mean_average_precision, pairs.auroc]


def encoded(corpus: pc.Corpus, pieces: Tracklets, encoder: Encoder, cache: Path) -> list[float]:
    """Scores of what an encoder makes of the frames."""
    found = pc.embed(corpus, pieces, encoder, stride=1, cache=cache)
    return scores(found.vectors, found.polyp, found.start_frame)


def frozen(corpus: pc.Corpus, encoder: Encoder, stills: pc.Corpus) -> tuple[Vectors, Vectors]:
    """Features of frames, as they are and standardised by the stills."""
    from polypcount.video.store_build import parts_of
    from polypcount.video.store_part import crops_of, open_part

    def features(one: pc.Corpus) -> Vectors:
        rule = encoder.spec.preprocessing.crop
        crops = [
            c for part in parts_of(one, np.arange(len(one.boxes)), rule) for c in crops_of(part, open_part(part, 1))
        ]
        return encoder.encode_frames(np.stack(crops))

    known, held = features(stills), features(corpus)
    return held, (held - known.mean(axis=0)) / np.maximum(known.std(axis=0), 1e-6)


def main() -> None:
    """Train with several seeds, and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cvc_clinicdb", type=Path)
    parser.add_argument("kvasir_seg", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], dest="changes")
    given = parser.parse_args()
    learnt, held = halves(given.cvc_clinicdb)
    stills = pc.read_corpus("kvasir-seg", given.kvasir_seg)
    learnt = pc.merge([learnt, stills])
    pieces = single_frames(held)
    table: dict[str, list[list[float]]] = {}
    seconds = []
    with tempfile.TemporaryDirectory() as place:
        cache = Path(place)
        for seed in range(given.seeds):
            recipe = load_recipe("small", [*given.changes, f"seed={seed}"])
            untrained = load_encoder(save_encoder(new_model(recipe), cache / f"untrained-{seed}"))
            start = time.monotonic()
            trained = pc.train(learnt, recipe, cache / f"run-{seed}", cache=cache / "crops", log_to=[])
            seconds.append(time.monotonic() - start)
            for name, encoder in (("untrained", untrained), ("trained", trained)):
                table.setdefault(name, []).append(encoded(held, pieces, encoder, cache / "features"))
        for name, vectors in zip(("frozen", "frozen, standardised"), frozen(held, untrained, stills), strict=True):
            table[name] = [scores(vectors, pieces.polyp, pieces.start_frame)]
    print(
        f"{len(pieces)} frames of {len(np.unique(pieces.polyp))} held-out sequences, "
        f"learnt from {len(learnt.videos)} others"
    )
    print(f"{'':22}  HR@1          HR@1 far      mAP           pair AUROC")
    for name, rows in table.items():
        cells = [
            f"{np.mean(c):.3f} ± {np.std(c, ddof=1):.3f}" if len(c) > 1 else f"{c[0]:.3f}        "
            for c in np.transpose(rows)
        ]
        print(f"{name:22}  {'  '.join(cells)}")
    print(f"training took {np.mean(seconds):.0f} s; {given.seeds} seeds, 0 to {given.seeds - 1}")


if __name__ == "__main__":
    main()
