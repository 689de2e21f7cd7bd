"""How well recordings are counted, on simulated procedures that nothing was chosen on.

Four sets of procedures: polyps from stills or drawn, up to 12 or up to 5 minutes. Choosing (seeds 700 to 703) and
judging (seeds 800 to 803) use different procedures and stills; neither uses stills that the bundled encoder was trained
on.

Choosing embeds 20 procedures of each set as `polypcount embed` does, chooses an operating point for each method with
`polypcount.counting.calibrate`, and writes them beside the bundled encoder. Judging counts every procedure with
`polypcount.count`, with the boxes and their tracks but not their polyps. It prints the share of exact counts, the mean
absolute error, FR, FPR, and how often the interval holds the true count: for each method at its own operating point,
for thresholds without a limit of FPR, and without clustering. The true count is the number of polyps that own a
tracklet of 30 frames, since a polyp that is never seen for a second cannot be counted.

Run: .venv/bin/python benchmarks/count_accuracy.py KVASIR_SEG OUT --choose [--processes 2]
     .venv/bin/python benchmarks/count_accuracy.py KVASIR_SEG OUT [--procedures 15] [--processes 2] [--write]
     .venv/bin/python benchmarks/count_accuracy.py KVASIR_SEG OUT --jumps    after --choose: how often tracklets of one
         polyp are split for a sudden change of appearance, and how often tracklets joined from two polyps are
"""

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import polypcount as pc
from polypcount.clustering import OperatingPoint
from polypcount.corpus import Boxes, Embeddings
from polypcount.counting import calibrate, read_operating_points, write_operating_points
from polypcount.counting.calibration import DEFAULT_METHOD
from polypcount.counting.decide import group, interval
from polypcount.counting.evidence import Evidence, together_rows
from polypcount.counting.jumps import jumps
from polypcount.encoder import Encoder, bundled_folder, load_encoder
from polypcount.encoder.features import KeptFeatures
from polypcount.evaluation import reidentification_scores
from polypcount.evaluation.pairs import sweep_counts
from polypcount.machine import available_cores
from polypcount.simulate import TimelineSettings, list_stills, simulate_scenes
from polypcount.simulate.stills import Still
from polypcount.tracking import duration_frames, link_tracklets, looked_at
from polypcount.video.store_build import parts_of
from polypcount.workers import in_processes

SETS = {
    "stills, 12 min": (True, 12.0),
    "drawn, 12 min": (False, 12.0),
    "stills, 5 min": (True, 5.0),
    "drawn, 5 min": (False, 5.0),
}
CHOOSING, JUDGING = 700, 800  # seeds of the first set
CHOSEN_ON = 20  # procedures of each set
ANY_FPR, ALONE = "threshold, any FPR", "no clustering"


def encoder() -> Encoder:
    """The bundled encoder, on one thread."""
    return load_encoder(threads=1, engine="onnx")


def corpora(options: argparse.Namespace, seed: int, procedures: int) -> dict[str, pc.Corpus]:
    """The four sets of procedures, as scenes that are drawn when read."""
    unseen = list_stills(options.kvasir_seg)[::3]
    stills: Sequence[Still] = unseen[::2] if seed == CHOOSING else unseen[1::2]
    return {
        name: simulate_scenes(
            options.out / f"scenes-{seed + k}",
            procedures,
            seed + k,
            "study",
            stills=stills if from_stills else None,
            settings=TimelineSettings(width=640, height=512, minutes=minutes),
        )
        for k, (name, (from_stills, minutes)) in enumerate(SETS.items())
    }


def embedded(corpus: pc.Corpus, cache: Path) -> Embeddings:
    """Vectors of all tracklets of 30 frames, of one video."""
    return pc.embed(corpus, link_tracklets(corpus.boxes), encoder(), min_frames=30, cache=cache)


def choose(options: argparse.Namespace) -> None:
    """Choose the operating points for counting, and keep them."""
    sets = corpora(options, CHOOSING, CHOSEN_ON)
    tasks = [
        (corpus.select(videos=[video.id]), options.out / "features")
        for corpus in sets.values()
        for video in corpus.videos
    ]
    procedures: dict[int, Embeddings] = {}
    for number, embeddings in in_processes(embedded, tasks, options.processes):
        procedures[number] = embeddings
        print(f"{len(procedures)} of {len(tasks)} procedures embedded", flush=True)
    # Each procedure is a set of its own, so all weigh the same.
    chosen_on = [procedures[number] for number in range(len(tasks))]
    words = f"{len(chosen_on)} simulated procedures of up to 12 minutes, half of animated stills and half drawn"
    points = calibrate(chosen_on, words)
    for name, point in points.items():
        print(name, json.dumps(point.model_dump(exclude={"values"})), flush=True)
    any_fpr = calibrate(chosen_on, words, methods=["threshold"], most_fpr=1.0)["threshold"]
    (options.out / "any-fpr.json").write_text(any_fpr.model_dump_json())
    write_operating_points(bundled_folder(), points, DEFAULT_METHOD)


def judged(corpus: pc.Corpus, any_fpr: OperatingPoint) -> dict[str, Any]:
    """One procedure, counted by each method on the same vectors."""
    model = encoder()
    video, boxes = corpus.videos[0], corpus.boxes
    unnamed = Boxes(boxes.video, boxes.frame, boxes.xyxy, boxes.score, track=boxes.polyp)
    report = pc.count(str(video.source), unnamed, encoder=model, settings=pc.CountSettings(pictures=False))
    assert report.tracklet is not None
    assert report.embeddings is not None
    truth = np.array([boxes.polyp[np.argmax(report.tracklet == row)] for row in range(len(report.tracklets))], np.int32)
    evidence = [
        Evidence(row, 0, one.start_frame, one.stop_frame, one.box_count, vector[None])
        for row, (one, vector) in enumerate(zip(report.tracklets, report.embeddings.vectors, strict=True))
    ]
    together = together_rows(evidence, report.embeddings.together)
    points = {**read_operating_points(model.folder).points, ANY_FPR: any_fpr}
    # Also where the report gives no interval, since the recording is not like those it was made on.
    low, high = interval(report.repeated, report.count, points[DEFAULT_METHOD].level)
    duration = duration_frames(video.frame_count, video.fps)
    labels = {name: group(evidence, together, duration, point) for name, point in points.items() if evidence}
    labels[DEFAULT_METHOD] = np.array([one.polyp for one in report.tracklets], np.int32)
    labels[ALONE] = np.arange(len(evidence), dtype=np.int32)
    return {
        "video": video.id,
        "polyps": len(np.unique(truth)),
        "annotated": len(corpus.polyps),
        "tracklets": len(evidence),
        "pair_auc": pair_auc(report.embeddings.vectors, truth),
        "low": low,
        "high": high,
        "methods": {name: scores(labels.get(name, truth), truth) for name in (*points, ALONE)},
    }


def pair_auc(vectors: NDArray[np.float32], truth: NDArray[np.int32]) -> float | None:
    """By cosine, of the pairs of tracklets of one polyp against those of two; None where there are not both."""
    auc = reidentification_scores(vectors, truth).auroc if len(truth) > 1 else math.nan
    return None if math.isnan(auc) else float(auc)


def scores(labels: NDArray[np.int32], truth: NDArray[np.int32]) -> dict[str, float | None]:
    """Count and FPR of one procedure; the FPR is None where there are not two polyps."""
    if not len(labels):
        return {"count": 0, "fpr": None}
    counts = sweep_counts(np.unique(labels, return_inverse=True)[1].astype(np.int32)[None], truth)
    negative = int(counts.false_positive[0] + counts.true_negative[0])
    return {
        "count": int(counts.groups[0]),
        "fpr": int(counts.false_positive[0]) / negative if negative else None,
    }


def judge(options: argparse.Namespace) -> None:
    """Count procedures that nothing was chosen on, and print the table."""
    any_fpr = OperatingPoint.model_validate_json((options.out / "any-fpr.json").read_text())
    sets = corpora(options, JUDGING, options.procedures)
    tasks = [(corpus.select(videos=[video.id]), any_fpr) for corpus in sets.values() for video in corpus.videos]
    names, by_set = list(sets), dict[str, list[dict[str, Any]]]()
    for number, row in in_processes(judged, tasks, options.processes):
        by_set.setdefault(names[number // options.procedures], []).append(row)
        print(f"{sum(map(len, by_set.values()))} of {len(tasks)} counted", flush=True)
    rows = [row for of_set in by_set.values() for row in of_set]
    (options.out / "judged.json").write_text(json.dumps(by_set, indent=1))
    print("| procedures | method | exact | mean abs. error | FR | FPR | interval holds |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for name, of_set in {**{key: by_set[key] for key in SETS}, "all": rows}.items():
        for method in rows[0]["methods"]:
            print(f"| {name} ({len(of_set)}) | {method} | {line(of_set, method)} |")
    holds = [row["low"] <= row["polyps"] <= row["high"] for row in rows]
    width = np.mean([row["high"] - row["low"] for row in rows])
    share, spread = np.mean(holds), 1.96 * math.sqrt(np.mean(holds) * (1 - np.mean(holds)) / len(holds))
    annotated = np.mean([row["low"] <= row["annotated"] <= row["high"] for row in rows])
    print(
        f"interval: holds {share:.3f} (+- {spread:.3f}), mean width {width:.2f}; all annotated polyps {annotated:.3f}"
    )
    aucs = [row["pair_auc"] for row in rows if row["pair_auc"] is not None]
    print(f"pair AUC: {np.mean(aucs):.3f}, mean over {len(aucs)} procedures")
    if options.write:
        kept = read_operating_points(bundled_folder())
        points = {name: with_measured(point, rows, name, float(share)) for name, point in kept.points.items()}
        write_operating_points(bundled_folder(), points, kept.default)


def with_measured(
    point: OperatingPoint, rows: Sequence[dict[str, Any]], method: str, coverage: float
) -> OperatingPoint:
    """The operating point with what was measured; the interval was measured for the default method only."""
    exact, error, _, fpr = numbers(rows, method)
    chosen = {name: value for name, value in point.measured.items() if name.startswith("selection")}
    measured = {**chosen, "procedures": float(len(rows)), "exact": exact, "mean_absolute_error": error, "fpr": fpr}
    if method == DEFAULT_METHOD:
        measured["coverage"] = coverage
    return point.model_copy(update={"measured": measured})


def numbers(rows: Sequence[dict[str, Any]], method: str) -> tuple[float, float, float, float]:
    """Share of exact counts, mean absolute error, mean FR, mean FPR."""
    errors = np.array([abs(row["methods"][method]["count"] - row["polyps"]) for row in rows])
    rate = [row["methods"][method]["count"] / row["polyps"] for row in rows if row["polyps"]]
    fpr = [row["methods"][method]["fpr"] for row in rows if row["methods"][method]["fpr"] is not None]
    return float((errors == 0).mean()), float(errors.mean()), float(np.mean(rate)), float(np.mean(fpr))


def line(rows: Sequence[dict[str, Any]], method: str) -> str:
    """The cells of one row."""
    exact, error, rate, fpr = numbers(rows, method)
    holds = np.mean([row["low"] <= row["polyps"] <= row["high"] for row in rows])
    return f"{exact:.2f} | {error:.2f} | {rate:.2f} | {fpr:.3f} | {f'{holds:.2f}' if method == DEFAULT_METHOD else ''}"


def jump_rates(options: argparse.Namespace) -> None:
    """Tracklets of one polyp that are split, and of halves of two polyps, on the procedures that were chosen on."""
    model, rng = encoder(), np.random.default_rng(0)
    for name, corpus in corpora(options, CHOOSING, CHOSEN_ON).items():
        single, joined = [], []
        for video in corpus.videos:
            one = corpus.select(videos=[video.id])
            tracklets = link_tracklets(one.boxes)
            boxes = [looked_at(tracklets.rows(k)) for k in np.flatnonzero(tracklets.box_count >= 30).tolist()]
            if not boxes:
                continue
            rows = np.unique(np.concatenate(boxes))
            parts = parts_of(one, rows, model.spec.preprocessing.crop)
            kept = KeptFeatures.of_parts(parts, model, options.out / "features")
            for _ in kept.make(parts, model):
                pass
            features = [kept.take(np.searchsorted(rows, chosen)) for chosen in boxes]
            polyp = [int(one.boxes.polyp[chosen[0]]) for chosen in boxes]
            single += [bool(jumps(each, model)) for each in features]
            pairs = [(i, j) for i in range(len(boxes)) for j in range(len(boxes)) if polyp[i] != polyp[j]]
            for chosen in rng.permutation(len(pairs))[:15].tolist():
                first, second = pairs[chosen]
                joined.append(bool(jumps(np.concatenate([features[first][::2], features[second][::2]]), model)))
        print(f"{name}: split {np.mean(single):.4f} of {len(single)} of one polyp,", end=" ")
        print(f"{np.mean(joined):.3f} of {len(joined)} of two")


def main() -> None:
    """Parse, choose or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kvasir_seg", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--jumps", action="store_true")
    parser.add_argument("--procedures", type=int, default=15, help="of each of the four sets, to judge on")
    parser.add_argument("--processes", type=int, default=available_cores())
    parser.add_argument("--write", action="store_true", help="keep what was measured beside the bundled encoder")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    (choose if options.choose else jump_rates if options.jumps else judge)(options)


if __name__ == "__main__":
    main()
