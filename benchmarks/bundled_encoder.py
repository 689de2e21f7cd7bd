"""Make the encoder that comes with the package, and judge it against standardised frozen features.

What it learns from, and what it never sees:
- Kvasir-SEG: of the usable stills, in natural order, every third is for judging; the others are learnt from, 340 of
  them animated and the rest as they are.
- CVC-ClinicDB: sequences 15 to 29 are learnt from; 1 to 14 are for judging. The halves lie apart, since neighbouring
  sequences may be of one patient. The choice of training data was checked with `--tune`, which stays within what is
  learnt from: it learns from half of those stills and from sequences 15 to 22, and is judged on the others and on 23
  to 29. The settings of `small` and the operating points were chosen on other data: see MODEL_CARD.md.
- 85 drawn polyps.

Judged by pair AUC (cosine; tracklets of one polyp against tracklets of two, within a procedure, mean over procedures)
on simulated procedures of stills and of drawn polyps, and on pseudo-procedures of CVC-ClinicDB: 200 draws of 3 to 5
sequences, each cut into tracklets of up to 8 frames. Intervals: 95 %, bootstrap over procedures, or over sequences.

Run: .venv/bin/python benchmarks/bundled_encoder.py CVC_CLINICDB KVASIR_SEG OUT [--tune] [--seed 0]
         [--set KEY=VALUE ...]
     .venv/bin/python benchmarks/bundled_encoder.py CVC_CLINICDB KVASIR_SEG OUT --bundle src/polypcount/encoder/bundled
         then benchmarks/count_accuracy.py chooses its operating points
     .venv/bin/python benchmarks/bundled_encoder.py CVC_CLINICDB KVASIR_SEG OUT --count    only counts the procedures of
         real frames that were held back, with the encoder that is bundled
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import polypcount as pc
from polypcount.corpus import Corpus, Embeddings, Polyp, Tracklets, Video
from polypcount.counting import operating_point
from polypcount.counting.decide import decide
from polypcount.counting.evidence import Evidence
from polypcount.encoder import Encoder, load_encoder, make_bundle
from polypcount.evaluation import pair_auc_by_video, reidentification_scores
from polypcount.reproduce.encoders import save_standardised
from polypcount.simulate import TimelineSettings, list_stills, simulate_scenes
from polypcount.simulate.stills import Still
from polypcount.tracking import duration_frames, evenly, link_tracklets
from polypcount.training import load_recipe

FRAMES_A_POLYP, TRACKLET_FRAMES, DRAWS = 12, 8, 200
Auc = list[float]


def cvc(folder: Path, first: int, last: int) -> Corpus:
    """Some sequences of CVC-ClinicDB."""
    corpus = pc.read_corpus("cvc-clinicdb", folder)
    return corpus.select(
        videos=[video.id for video in corpus.videos if first <= int(video.id.rpartition("-")[2]) <= last]
    )


def thinned(corpus: Corpus, most: int) -> Corpus:
    """The same with at most so many boxes of each polyp, at even distances."""
    rows = [np.flatnonzero(corpus.boxes.polyp == k) for k in range(len(corpus.polyps))]
    keep = np.sort(np.concatenate([mine[evenly(len(mine), most)] for mine in rows]))
    return Corpus(corpus.videos, corpus.boxes.take(keep), corpus.polyps, provenance=corpus.provenance)


def plain_stills(folder: Path, stills: Sequence[Still]) -> Corpus:
    """Stills as they are, those with a single box."""
    corpus = pc.read_corpus("kvasir-seg", folder)
    boxes = np.bincount(corpus.boxes.video, minlength=len(corpus.videos))
    names = {Path(still.image).stem for still in stills}
    return corpus.select(
        videos=[
            video.id
            for video, count in zip(corpus.videos, boxes, strict=True)
            if count == 1 and video.id.removeprefix("kvasir-seg-") in names
        ]
    )


def study_set(place: Path, stills: Sequence[Still] | None, seed: int) -> Corpus:
    """Nineteen procedures to judge on."""
    return simulate_scenes(place / f"study-{'drawn' if stills is None else 'stills'}", 19, seed, "study", stills=stills)


def learning_set(given: argparse.Namespace, stills: Sequence[Still], sequences: tuple[int, int]) -> Corpus:
    """Everything that is learnt from."""
    turns = 2 if given.tune else 4
    settings = TimelineSettings(width=640, height=512, minutes=10)
    place = given.out / "learn"
    animated = simulate_scenes(place / "stills", 27 * turns, 300, "train", stills=stills, settings=settings)
    used = _used(place / "stills")
    rest = [still for still in stills if still.image not in used]
    drawn = simulate_scenes(place / "drawn", 27, 400, "train", settings=settings)
    parts = [thinned(animated, FRAMES_A_POLYP), thinned(drawn, FRAMES_A_POLYP)]
    return pc.merge([*parts, plain_stills(given.kvasir_seg, rest), cvc(given.cvc_clinicdb, *sequences)])


def _used(folder: Path) -> set[str]:
    scenes = [json.loads(path.read_text()) for path in folder.glob("*.scene")]
    return {still["image"] for scene in scenes for still in scene["stills"]}


def simulated_vectors(corpus: Corpus, encoder: Encoder, cache: Path) -> Embeddings:
    """Vectors of all tracklets of 30 frames."""
    tracklets = link_tracklets(corpus.boxes)
    return pc.embed(corpus, tracklets, encoder, min_frames=30, cache=cache)


def simulated_auc(corpus: Corpus, encoder: Encoder, cache: Path) -> Auc:
    """Pair AUC of each procedure with two polyps."""
    found = simulated_vectors(corpus, encoder, cache)
    return [auc for auc in pair_auc_by_video(found).values() if not np.isnan(auc)]


def sequence_vectors(corpus: Corpus, encoder: Encoder, cache: Path) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Vectors of tracklets of up to 8 frames, and their sequences."""
    label = np.empty(len(corpus.boxes), np.int32)
    count = 0
    for polyp in range(len(corpus.polyps)):
        mine = np.flatnonzero(corpus.boxes.polyp == polyp)
        label[mine] = count + np.arange(len(mine)) // TRACKLET_FRAMES
        count = int(label[mine].max()) + 1
    pieces = Tracklets.gather(corpus.boxes, label)
    found = pc.embed(corpus, pieces, encoder, stride=1, cache=cache)
    return found.vectors, found.video


def pseudo_procedures(sequences: NDArray[np.int64], draws: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Draws of 3 to 5 different ones of these sequences."""
    members = np.unique(sequences)
    return [rng.permutation(members)[: rng.integers(3, 6)] for _ in range(draws)]


def real_auc(vectors: NDArray[np.float32], sequence: NDArray[np.int32], draws: Sequence[NDArray[np.int64]]) -> float:
    """Mean pair AUC over pseudo-procedures."""
    aucs = []
    for draw in draws:
        mine = np.isin(sequence, draw)
        aucs.append(reidentification_scores(vectors[mine], sequence[mine]).auroc)
    return float(np.nanmean(aucs))


def interval(values: Sequence[float]) -> str:
    """Mean over procedures with its 95 % bootstrap interval."""
    rng = np.random.default_rng(0)
    drawn = np.asarray(values)[rng.integers(len(values), size=(2000, len(values)))].mean(axis=1)
    return spanned(float(np.mean(values)), drawn)


def spanned(value: float, resampled: NDArray[np.float64]) -> str:
    """A value with the middle 95 % of what it was over bootstrap samples."""
    low, high = np.quantile(resampled, [0.025, 0.975])
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def judge(encoders: dict[str, Encoder], simulated: dict[str, Corpus], real: Corpus, cache: Path) -> dict[str, Any]:
    """A table of pair AUCs, printed and given back; differences are to the first encoder."""
    table: dict[str, Any] = {}
    names = list(encoders)
    for title, corpus in simulated.items():
        found = {name: simulated_auc(corpus, encoder, cache) for name, encoder in encoders.items()}
        for name in names:
            less = np.subtract(found[name], found[names[0]]).tolist()
            table.setdefault(name, {})[title] = {"auc": interval(found[name]), "difference": interval(less)}
    vectors = {name: sequence_vectors(real, encoder, cache) for name, encoder in encoders.items()}
    draws = pseudo_procedures(np.arange(len(real.videos)), DRAWS, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    again = [pseudo_procedures(rng.integers(len(real.videos), size=len(real.videos)), 20, rng) for _ in range(200)]
    aucs = {name: real_auc(*vectors[name], draws) for name in names}
    resampled = {name: np.array([real_auc(*vectors[name], some) for some in again]) for name in names}
    for name in names:
        table[name]["CVC-ClinicDB"] = {
            "auc": spanned(aucs[name], resampled[name]),
            "difference": spanned(aucs[name] - aucs[names[0]], resampled[name] - resampled[names[0]]),
        }
    for name, row in table.items():
        for title, cell in row.items():
            print(f"{name:14} {title:20} AUC {cell['auc']:24} less {names[0]}: {cell['difference']}", flush=True)
    return table


def real_procedures(corpus: Corpus, encoder: Encoder, cache: Path) -> Embeddings:
    """Held-back sequences as procedures of 3 to 4, one after the other in time, a minute apart."""
    vectors, sequence = sequence_vectors(corpus, encoder, cache)
    groups = np.array_split(np.arange(len(corpus.videos)), 4)
    owner = np.concatenate([np.full(len(group), k) for k, group in enumerate(groups)])
    videos = [Video(f"sequences-{k + 1}", frame_count=7200 * len(group), fps=30) for k, group in enumerate(groups)]
    polyps = [Polyp(video.id, videos[owner[k]].id) for k, video in enumerate(corpus.videos)]
    within = np.concatenate([np.arange((sequence == k).sum()) for k in range(len(corpus.videos))])
    place = np.concatenate([np.arange(len(group)) for group in groups])[sequence]
    start = 7200 * place + 300 * within
    return Embeddings(
        videos=videos,
        polyps=polyps,
        video=owner[sequence],
        start_frame=start,
        stop_frame=start + TRACKLET_FRAMES,
        box_count=np.full(len(vectors), TRACKLET_FRAMES),
        polyp=sequence,
        vectors=vectors,
        encoder=encoder.fingerprint,
    )


def count_real(corpus: Corpus, cache: Path) -> None:
    """Print the polyps counted in each procedure of real frames."""
    encoder = load_encoder()
    point, procedures = operating_point(encoder), real_procedures(corpus, encoder, cache)
    for number, video in enumerate(procedures.videos):
        rows = np.flatnonzero(procedures.video == number).tolist()
        # Without resampled frames, since their vectors are not at hand: the same vector twice.
        evidence = [
            Evidence(row, 0, int(start), int(start) + 1, 1, np.stack([procedures.vectors[row]] * 2))
            for row, start in zip(rows, procedures.start_frame[rows], strict=True)
        ]
        together = np.empty((0, 2), np.int64)
        decision = decide(evidence, together, duration_frames(video.frame_count, video.fps), point)
        true, counted = len(np.unique(procedures.polyp[rows])), len(np.unique(decision.labels))
        print(f"{video.id}: counted {counted} ({decision.low} to {decision.high}) of {true}, {len(rows)} tracklets")


def main() -> None:
    """Train or take what is there, judge, and bundle where asked."""
    parser = argparse.ArgumentParser()
    for name in ("cvc_clinicdb", "kvasir_seg", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], dest="changes")
    parser.add_argument("--name", default="bundled")
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--count", action="store_true")
    given = parser.parse_args()
    if given.count:
        return count_real(cvc(given.cvc_clinicdb, 1, 14), given.out / "features")
    given.out /= "tune" if given.tune else "final"
    stills = list_stills(given.kvasir_seg)
    learnt = [still for k, still in enumerate(stills) if k % 3]
    judged, sequences, held = stills[::3], (15, 29), (1, 14)
    if given.tune:
        learnt, judged, sequences, held = learnt[::2], learnt[1::2], (15, 22), (23, 29)
    corpus = learning_set(given, learnt, sequences)
    cache = given.out / "cache"
    recipe = load_recipe("small", ["data.validation_share=0", f"seed={given.seed}", *given.changes])
    run, frozen = given.out / f"{given.name}-{given.seed}", given.out / "frozen"
    if not (frozen / "encoder.json").exists():
        save_standardised(plain_stills(given.kvasir_seg, learnt), recipe, frozen)
    if not (run / "encoder.json").exists():
        print(f"{len(corpus.polyps)} polyps, {len(corpus.boxes)} boxes", flush=True)
        start = time.monotonic()
        pc.train(corpus, recipe, run, cache=cache / "crops", log_to=[], resume=(run / "run.json").exists())
        print(f"trained in {time.monotonic() - start:.0f} s", flush=True)
    encoders = {"frozen": load_encoder(frozen), given.name: load_encoder(run)}
    seed = 500 if given.tune else 600
    simulated = {
        "simulated, stills": study_set(given.out, judged, seed),
        "simulated, drawn": study_set(given.out, None, seed + 50),
    }
    real = cvc(given.cvc_clinicdb, *held)
    table = judge(encoders, simulated, real, cache / "features")
    (given.out / f"judged-{run.name}.json").write_text(json.dumps(table, indent=1))
    if given.bundle:
        make_bundle(run, given.bundle)
    return None


if __name__ == "__main__":
    main()
