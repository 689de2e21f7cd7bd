"""Make the bundled encoder, and judge it against standardised frozen features and against the earlier settings.

It learns from nearly all stills of Kvasir-SEG and PolypGen that are not held back (see encoder_data.py), animated and
as they are; from 170 drawn polyps; and from sequences 15 to 29 of CVC-ClinicDB. The earlier settings (`--earlier`) are
recipe `small` on 340 animated stills of Kvasir-SEG, the others as they are, 85 drawn polyps and the same sequences.

`--tune` chooses settings without held-back data and without CVC-ClinicDB: it learns from three quarters of the stills,
and is judged on the others and on sequences 15 to 29, which are of a hospital that it has never seen.

Judged by pair AUC (cosine; tracklets of one polyp against tracklets of two, within a procedure, mean over procedures)
on simulated procedures of held-back stills and of drawn polyps, and on pseudo-procedures of CVC-ClinicDB: 200 draws of
3 to 5 sequences, each cut into tracklets of up to 8 frames. Intervals: 95 %, bootstrap over procedures, or over
sequences. Also, without an interval, the AUC over all pairs of single frames of these sequences, and over those of one
sequence that are far apart against those of two.

Run: .venv/bin/python -m benchmarks.bundled_encoder CVC_CLINICDB KVASIR_SEG POLYPGEN OUT [--seed 0]
         [--set KEY=VALUE ...] [--tune] [--earlier]
     .venv/bin/python -m benchmarks.bundled_encoder ... --earlier, then again with
         --bundle src/polypcount/encoder/bundled    compares with the earlier settings, and puts it into the package;
         then benchmarks/count_accuracy.py chooses its operating points
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.encoder_data import (
    LEARN_SETTINGS,
    animated,
    cvc,
    plain_stills,
    same_polyps,
    split_stills,
    thinned,
    with_centre,
)
from benchmarks.procedures import sequence_tracklets
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

import polypcount as pc
from polypcount.corpus import Corpus, Tracklets
from polypcount.encoder import Encoder, load_encoder, make_bundle
from polypcount.evaluation import pair_auc_by_video, reidentification_scores
from polypcount.reproduce.encoders import save_standardised
from polypcount.simulate import simulate_scenes
from polypcount.simulate.stills import Still
from polypcount.tracking import link_tracklets
from polypcount.training import load_recipe

FRAMES_A_POLYP, EARLIER_FRAMES, DRAWS, JUDGED = 16, 12, 200, 38
EARLIER_TURNS, FAR = 4, 12


@dataclass(frozen=True)
class Data:
    """What an encoder learns from and what it is judged on."""

    learnt: list[Still]
    judged: list[Still]
    sequences: tuple[int, int] | None
    held_back: tuple[int, int]
    seed: int


def data_of(options: argparse.Namespace) -> Data:
    """By the split rule, or for `--tune`, within what is learnt from."""
    stills = split_stills([options.kvasir_seg, options.polypgen])
    if options.tune:
        learnt = [still for k, still in enumerate(stills.learnt) if k % 4]
        return Data(learnt, stills.learnt[::4], None, (15, 29), 500)
    return Data(stills.learnt, stills.choosing + stills.judging, (15, 29), (1, 14), 600)


def learning_set(options: argparse.Namespace, data: Data) -> Corpus:
    """Everything that is learnt from."""
    place = options.out / "learn"
    moving = animated(place, data.learnt, 1000, FRAMES_A_POLYP)
    stills = same_polyps(moving, plain_stills([options.kvasir_seg, options.polypgen], data.learnt))
    drawn = simulate_scenes(place / "drawn", 54, 1100, "train", settings=LEARN_SETTINGS)
    parts = [stills, with_centre(thinned(drawn, FRAMES_A_POLYP), ["drawn"] * len(drawn.videos))]
    return pc.merge([*parts, *([cvc(options.cvc_clinicdb, *data.sequences)] if data.sequences else [])])


def earlier_set(options: argparse.Namespace, data: Data) -> Corpus:
    """What the earlier encoder learnt from, drawn anew."""
    place, kvasir = options.out / "earlier", split_stills([options.kvasir_seg]).learnt
    stills = [still for still in data.learnt if still in kvasir]
    turns = 27 * EARLIER_TURNS
    moving = simulate_scenes(place / "stills", turns, 300, "train", stills=stills, settings=LEARN_SETTINGS)
    scenes = [json.loads(path.read_text()) for path in (place / "stills").glob("*.scene")]
    used = {still["image"] for scene in scenes for still in scene["stills"]}
    rest = plain_stills([options.kvasir_seg], [still for still in stills if still.image not in used])
    drawn = simulate_scenes(place / "drawn", 27, 400, "train", settings=LEARN_SETTINGS)
    parts = [thinned(moving, EARLIER_FRAMES), thinned(drawn, EARLIER_FRAMES), rest]
    return pc.merge([*parts, *([cvc(options.cvc_clinicdb, *data.sequences)] if data.sequences else [])])


def trained(options: argparse.Namespace, data: Data) -> Path:
    """The folder of the encoder; it is trained if it is not there."""
    run: Path = options.out / f"{'earlier' if options.earlier else options.name}-{options.seed}"
    if (run / "encoder.json").exists():
        return run
    changes = ["data.validation_share=0", f"seed={options.seed}", *options.changes]
    recipe = load_recipe("small" if options.earlier else "bundled", changes)
    corpus = earlier_set(options, data) if options.earlier else learning_set(options, data)
    print(f"{len(corpus.polyps)} polyps, {len(corpus.boxes)} boxes", flush=True)
    start = time.monotonic()
    resume = (run / "run.json").exists()
    pc.train(corpus, recipe, run, cache=options.out / "cache" / "crops", log_to=[], resume=resume)
    print(f"trained in {time.monotonic() - start:.0f} s", flush=True)
    return run


def simulated_auc(corpus: Corpus, encoder: Encoder, cache: Path) -> list[float]:
    """Pair AUC of each procedure with two polyps."""
    vectors = pc.embed(corpus, link_tracklets(corpus.boxes), encoder, min_frames=30, cache=cache)
    return [auc for auc in pair_auc_by_video(vectors).values() if not np.isnan(auc)]


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


def frame_aucs(corpus: Corpus, encoder: Encoder, cache: Path) -> tuple[float, float]:
    """AUC over all pairs of frames, and without those of one sequence that are less than 12 frames apart."""
    first = np.unique(np.column_stack([corpus.boxes.video, corpus.boxes.frame]), axis=0, return_index=True)[1]
    label = np.full(len(corpus.boxes), -1, np.int32)
    label[np.sort(first)] = np.arange(len(first))
    frames = pc.embed(corpus, Tracklets.gather(corpus.boxes, label), encoder, stride=1, cache=cache)
    unit = frames.vectors / np.linalg.norm(frames.vectors, axis=1, keepdims=True)
    left, right = np.triu_indices(len(unit), 1)
    alike, same = (unit @ unit.T)[left, right], frames.video[left] == frames.video[right]
    kept = ~same | (np.abs(frames.start_frame[left] - frames.start_frame[right]) >= FAR)
    return float(roc_auc_score(same, alike)), float(roc_auc_score(same[kept], alike[kept]))


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
    """A table of pair AUCs, printed and given back; the differences are those of the last encoder to each other one."""
    names, table = list(encoders), dict[str, dict[str, str]]()
    aucs = {
        title: {name: simulated_auc(corpus, encoder, cache) for name, encoder in encoders.items()}
        for title, corpus in simulated.items()
    }
    aucs["all simulated"] = {name: [auc for title in simulated for auc in aucs[title][name]] for name in names}
    for title, of_encoder in aucs.items():
        row = {name: interval(of_encoder[name]) for name in names}
        for name in names[:-1]:
            row[f"less {name}"] = interval(np.subtract(of_encoder[names[-1]], of_encoder[name]).tolist())
        table[f"{title} ({len(of_encoder[names[0]])} procedures)"] = row
    tracklets = sequence_tracklets(real)
    vectors = {name: pc.embed(real, tracklets, encoder, stride=1, cache=cache) for name, encoder in encoders.items()}
    rng = np.random.default_rng(1)
    draws = pseudo_procedures(np.arange(len(real.videos)), DRAWS, np.random.default_rng(0))
    again = [pseudo_procedures(rng.integers(len(real.videos), size=len(real.videos)), 20, rng) for _ in range(200)]
    whole = {name: real_auc(one.vectors, one.video, draws) for name, one in vectors.items()}
    spread = {
        name: np.array([real_auc(one.vectors, one.video, some) for some in again]) for name, one in vectors.items()
    }
    row = {name: spanned(whole[name], spread[name]) for name in names}
    for name in names[:-1]:
        row[f"less {name}"] = spanned(whole[names[-1]] - whole[name], spread[names[-1]] - spread[name])
    table["CVC-ClinicDB"] = row
    aucs_of_frames = {name: frame_aucs(real, encoder, cache) for name, encoder in encoders.items()}
    for place, title in enumerate(("CVC-ClinicDB, frames", "CVC-ClinicDB, far frames")):
        table[title] = {name: f"{aucs_of_frames[name][place]:.3f}" for name in names}
    for title, row in table.items():
        for name, cell in row.items():
            print(f"{title:40} {name:16} {cell}", flush=True)
    return table


def main() -> None:
    """Train or take what is there, judge, and bundle where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("cvc_clinicdb", "kvasir_seg", "polypgen", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--earlier", action="store_true", help="train with the earlier settings and data")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], dest="changes")
    parser.add_argument("--name", default="bundled")
    parser.add_argument("--bundle", type=Path)
    options = parser.parse_args()
    options.out /= "tune" if options.tune else "final"
    data = data_of(options)
    run, frozen, earlier = trained(options, data), options.out / "frozen", options.out / f"earlier-{options.seed}"
    if options.earlier:
        return
    if not (frozen / "encoder.json").exists():
        stills = plain_stills([options.kvasir_seg, options.polypgen], data.learnt)
        save_standardised(stills, load_recipe("small", ["data.validation_share=0"]), frozen)
    folders = {"frozen": frozen, "earlier": earlier, options.name: run}
    encoders = {name: load_encoder(folder) for name, folder in folders.items() if (folder / "encoder.json").exists()}
    place, cache = options.out / "judged", options.out / "cache" / "features"
    simulated = {
        name: simulate_scenes(
            place / name, JUDGED, data.seed + k, "study", stills=None if k else data.judged, settings=LEARN_SETTINGS
        )
        for k, name in enumerate(("stills", "drawn"))
    }
    table = judge(encoders, simulated, cvc(options.cvc_clinicdb, *data.held_back), cache)
    (options.out / f"judged-{run.name}.json").write_text(json.dumps(table, indent=1))
    if options.bundle:
        make_bundle(run, options.bundle)


if __name__ == "__main__":
    main()
