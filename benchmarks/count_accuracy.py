"""How well recordings are counted: choose the operating point on some simulated procedures, judge it on others.

Procedures of up to 12 and up to 5 minutes, of animated stills and of drawn polyps. Of the stills that the bundled
encoder never saw (every third of the usable ones), every second is for choosing and the others are for judging; drawn
polyps have other seeds. Boxes are the simulation's, with tracks but without polyps.

Choosing writes the entry `counting` of the encoder's operating-points.json. Judging counts every procedure as
`polypcount count` does and prints share of exact counts, mean absolute error, FR, FPR, and how often the interval holds
the true count; against thresholds on looks alone (chosen likewise: with the same limit of FPR, and without) and no
clustering on the same vectors. True is the number of polyps that own a tracklet of 30 frames; a polyp that is never
seen for a second cannot be counted.

Run: .venv/bin/python benchmarks/count_accuracy.py KVASIR_SEG OUT --choose [--processes 2]
     .venv/bin/python benchmarks/count_accuracy.py KVASIR_SEG OUT [--procedures 15] [--processes 2] [--write]
     .venv/bin/python benchmarks/count_accuracy.py KVASIR_SEG OUT --jumps    after --choose: how often tracklets of one
         polyp are split for their looks, and how often those joined from two are
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
from polypcount.clustering import Grid, Threshold
from polypcount.clustering.grid import steps
from polypcount.corpus import Boxes, Embeddings
from polypcount.counting import CountingPoint, Procedure
from polypcount.counting.count import look_at
from polypcount.counting.decide import duration_of, groups_of
from polypcount.counting.jumps import jumps
from polypcount.encoder import bundled_folder, keep_counting_point, load_encoder, operating_points
from polypcount.encoder.embed import evenly
from polypcount.encoder.features import KeptFeatures
from polypcount.evaluation.counting_point import counting_point
from polypcount.evaluation.pairs import sweep_counts
from polypcount.machine import available_cores
from polypcount.simulate import TimelineSettings, list_stills, simulate_scenes
from polypcount.simulate.scene_file import Still
from polypcount.tracking import link_tracklets
from polypcount.video import open_video
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
THRESHOLDS = Grid({"threshold": steps(0.4, 0.99, 0.005)})


def corpora(given: argparse.Namespace, seed: int, procedures: int) -> dict[str, pc.Corpus]:
    """The four sets of procedures, as scenes that are drawn when read."""
    unseen = list_stills(given.kvasir_seg)[::3]
    mine: Sequence[Still] = unseen[::2] if seed == CHOOSING else unseen[1::2]
    return {
        name: simulate_scenes(
            given.out / f"scenes-{seed + k}",
            procedures,
            seed + k,
            "study",
            stills=mine if stills else None,
            settings=TimelineSettings(width=640, height=512, minutes=minutes),
        )
        for k, (name, (stills, minutes)) in enumerate(SETS.items())
    }


def embedded(corpus: pc.Corpus, cache: Path) -> Embeddings:
    """Vectors of all tracklets of 30 frames, of one video."""
    encoder = load_encoder(threads=1)
    return pc.embed(
        corpus, link_tracklets(corpus.boxes), encoder, stride=1, least=32, most=32, min_frames=30, cache=cache
    )


def choose(given: argparse.Namespace) -> None:
    """Choose the operating points for counting, and keep them."""
    sets = corpora(given, CHOOSING, CHOSEN_ON)
    tasks = [
        (corpus.select(videos=[video.id]), given.out / "features")
        for corpus in sets.values()
        for video in corpus.videos
    ]
    names, parts = list(sets), dict[str, list[Embeddings]]()
    for number, found in in_processes(embedded, tasks, given.processes):
        parts.setdefault(names[number // CHOSEN_ON], []).append(found)
        print(f"{sum(map(len, parts.values()))} of {len(tasks)} procedures embedded", flush=True)
    # Each procedure has the weight of its set's share, whatever its length.
    chosen_on = [one for name in SETS for one in parts[name]]
    told = f"{len(chosen_on)} simulated procedures of up to 12 minutes, half of animated stills and half drawn"
    point = counting_point(chosen_on, told)
    plain = {
        name: counting_point(chosen_on, told, method=Threshold(similarity="cosine"), grid=THRESHOLDS, most_fpr=limit)
        for name, limit in (("thresholds", 0.1), ("thresholds, any FPR", 1.0))
    }
    print(json.dumps(point, indent=1))
    (given.out / "threshold.json").write_text(json.dumps(plain, indent=1))
    keep_counting_point(bundled_folder(), point)


def judged(corpus: pc.Corpus, plain: dict[str, Any]) -> dict[str, Any]:
    """One procedure, counted in three ways."""
    encoder = load_encoder(threads=1)
    point = CountingPoint.of(encoder)
    video, boxes = corpus.videos[0], corpus.boxes
    unnamed = Boxes(boxes.video, boxes.frame, boxes.xyxy, boxes.score, track=boxes.polyp)
    seen = look_at(Procedure(open_video(video), video, unnamed, ()), encoder, point, pictures=False)
    rows = seen.tally.ended
    heads = [seen.tracklets.rows(one.number)[0] for one in rows]
    truth = boxes.polyp[heads]
    report = seen.tally.report(video, corpus.provenance)
    vectors = np.stack([one.vectors[0] for one in rows]) if rows else np.empty((0, 1), np.float32)
    start = np.array([one.start_frame for one in rows], np.int64)
    pairs = seen.tally.pairs(rows)
    ways = {
        "polypcount": np.array([one.polyp for one in report.tracklets], np.int32),
        **{
            name: groups_of(vectors, start, duration_of(video.frame_count, video.fps), pairs, _point(entry))
            if rows
            else truth
            for name, entry in plain.items()
        },
        "no clustering": np.arange(len(rows), dtype=np.int32),
    }
    return {
        "video": video.id,
        "polyps": len(np.unique(truth)),
        "annotated": len(corpus.polyps),
        "tracklets": len(rows),
        "low": report.interval.low,
        "high": report.interval.high,
        "ways": {name: scores(labels, truth) for name, labels in ways.items()},
    }


def _point(entry: dict[str, Any]) -> CountingPoint:
    return CountingPoint(**{**entry, "values": tuple(entry["values"])})


def scores(labels: NDArray[np.int32], truth: NDArray[np.int32]) -> dict[str, float | None]:
    """Count, FR and FPR of one procedure; None where there are not two polyps."""
    if not len(labels):
        return {"count": 0, "fpr": None}
    counts = sweep_counts(np.unique(labels, return_inverse=True)[1].astype(np.int32)[None], truth)
    negative = int(counts.false_positive[0] + counts.true_negative[0])
    return {
        "count": int(counts.groups[0]),
        "fpr": int(counts.false_positive[0]) / negative if negative else None,
    }


def judge(given: argparse.Namespace) -> None:
    """Count procedures that nothing was chosen on, and print the table."""
    plain = json.loads((given.out / "threshold.json").read_text())
    sets = corpora(given, JUDGING, given.procedures)
    tasks = [(corpus.select(videos=[video.id]), plain) for corpus in sets.values() for video in corpus.videos]
    names, found = list(sets), dict[str, list[dict[str, Any]]]()
    for number, row in in_processes(judged, tasks, given.processes):
        found.setdefault(names[number // given.procedures], []).append(row)
        print(f"{sum(map(len, found.values()))} of {len(tasks)} counted", end="\r", flush=True)
    whole = [row for rows in found.values() for row in rows]
    (given.out / "judged.json").write_text(json.dumps(found, indent=1))
    print("| procedures | method | exact | mean abs. error | FR | FPR | interval holds |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for name, rows in {**{key: found[key] for key in SETS}, "all": whole}.items():
        for way in rows[0]["ways"]:
            print(f"| {name} ({len(rows)}) | {way} | {line(rows, way)} |")
    holds = [row["low"] <= row["polyps"] <= row["high"] for row in whole]
    width = np.mean([row["high"] - row["low"] for row in whole])
    share, spread = np.mean(holds), 1.96 * math.sqrt(np.mean(holds) * (1 - np.mean(holds)) / len(holds))
    annotated = np.mean([row["low"] <= row["annotated"] <= row["high"] for row in whole])
    print(
        f"interval: holds {share:.3f} (+- {spread:.3f}), mean width {width:.2f}; all annotated polyps {annotated:.3f}"
    )
    if given.write:
        entry = operating_points(bundled_folder())["counting"]
        chosen = {name: value for name, value in entry["measured"].items() if name.startswith("selection")}
        exact, error, _, fpr = numbers(whole, "polypcount")
        measured = {
            "procedures": len(whole),
            "coverage": share,
            "exact": exact,
            "mean_absolute_error": error,
            "fpr": fpr,
        }
        keep_counting_point(
            bundled_folder(),
            {**entry, "measured": {**chosen, **{name: float(value) for name, value in measured.items()}}},
        )


def numbers(rows: Sequence[dict[str, Any]], way: str) -> tuple[float, float, float, float]:
    """Share of exact counts, mean absolute error, mean FR, mean FPR."""
    wrong = np.array([abs(row["ways"][way]["count"] - row["polyps"]) for row in rows])
    rate = [row["ways"][way]["count"] / row["polyps"] for row in rows if row["polyps"]]
    fpr = [row["ways"][way]["fpr"] for row in rows if row["ways"][way]["fpr"] is not None]
    return float((wrong == 0).mean()), float(wrong.mean()), float(np.mean(rate)), float(np.mean(fpr))


def line(rows: Sequence[dict[str, Any]], way: str) -> str:
    """The cells of one row."""
    exact, error, rate, fpr = numbers(rows, way)
    holds = np.mean([row["low"] <= row["polyps"] <= row["high"] for row in rows])
    return f"{exact:.2f} | {error:.2f} | {rate:.2f} | {fpr:.3f} | {f'{holds:.2f}' if way == 'polypcount' else ''}"


def jump_rates(given: argparse.Namespace) -> None:
    """Tracklets of one polyp that are split, and of halves of two polyps, on the procedures that were chosen on."""
    encoder, rng = load_encoder(), np.random.default_rng(0)
    for name, corpus in corpora(given, CHOOSING, CHOSEN_ON).items():
        own, joined = [], []
        for video in corpus.videos:
            one = corpus.select(videos=[video.id])
            tracklets = link_tracklets(one.boxes)
            kept = [tracklets.rows(k) for k in np.flatnonzero(tracklets.box_count >= 30).tolist()]
            looked_at = [rows[evenly(len(rows), 32)] for rows in kept]
            if not looked_at:
                continue
            rows = np.unique(np.concatenate(looked_at))
            parts = parts_of(one, rows, encoder.spec.preprocessing.crop)
            features = KeptFeatures.of_parts(parts, encoder, given.out / "features")
            for _ in features.make(parts, encoder):
                pass
            found = [features.take(np.searchsorted(rows, chosen)) for chosen in looked_at]
            polyp = [int(one.boxes.polyp[chosen[0]]) for chosen in looked_at]
            own += [bool(jumps(each, encoder)) for each in found]
            pairs = [(i, j) for i in range(len(found)) for j in range(len(found)) if polyp[i] != polyp[j]]
            for place in rng.permutation(len(pairs))[:15].tolist():
                first, second = pairs[place]
                joined.append(bool(jumps(np.concatenate([found[first][::2], found[second][::2]]), encoder)))
        print(f"{name}: split {np.mean(own):.4f} of {len(own)} of one polyp,", end=" ")
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
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    (choose if given.choose else jump_rates if given.jumps else judge)(given)


if __name__ == "__main__":
    main()
