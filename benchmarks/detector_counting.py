"""Counting from raw pixels with the bundled detector: the rule for false alarms, and how good the counts are.

Procedures of 1 to 4 minutes (for choosing, of half a minute to 1.5) are simulated, half of animated held-back stills
and half of drawn polyps, and counted from their pixels by `pc.count`, without boxes; and beside that with perfect boxes
and tracks. Some more have no polyp at all. Stills, procedures and seeds for choosing and judging differ; the detector
has learnt from none of them.

--choose   fits the rule that sets tracklets aside as perhaps no polyp, on the tracklets of the choosing set, and puts
           it into detector.json
(none)     judges: polyps found, false polyps, exact counts, mean absolute error, how often the interval holds the true
           number; false tracklets in 10 minutes without polyps. The figures go into detector.json with --write

Run: .venv/bin/python -m benchmarks.detector_counting KVASIR_SEG POLYPGEN OUT [--detector FOLDER] [--choose] [--write]
"""

import argparse
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.encoder_data import split_stills
from benchmarks.procedures import shown_polyps
from numpy.typing import NDArray

import polypcount as pc
from polypcount.corpus import Boxes, Corpus
from polypcount.counting import CountSettings
from polypcount.counting.tracklets import least_boxes, link_rule
from polypcount.detection.detector_file import DESCRIPTION, find_model
from polypcount.detection.false_alarms import FalseAlarmRule, tracklet_features
from polypcount.machine import available_cores
from polypcount.simulate import Difficulty, TimelineSettings, simulate_scenes
from polypcount.simulate.scene_file import SUFFIX, SceneFile
from polypcount.simulate.stills import Still
from polypcount.simulate.timeline import simulate_timeline
from polypcount.storage import content_key
from polypcount.tracking import TrackRules, link_tracklets
from polypcount.workers import in_processes

# Minutes of the procedures, how many of each length and kind, and how many of 5 minutes without a polyp.
MINUTES = {"choosing": (0.6, 1.0, 1.5), "judging": (1.0, 1.5, 2.0, 4.0)}
OF_EACH, EMPTY = {"choosing": 3, "judging": 5}, {"choosing": 3, "judging": 4}
SEEDS = {"choosing": 3100, "judging": 3200}
EMPTY_MINUTES, KEPT = 5.0, 0.94


@dataclass(frozen=True)
class Task:
    """One procedure to count.

    Attributes:
        truth: A corpus of one video with the true boxes.
        kind: "stills", "drawn", or "empty" for one without polyps.
        detector: Folder of the detector, or "bundled".
        path: File of the result.
        with_rule: Whether tracklets are set aside by the rule for false alarms.
    """

    truth: Corpus
    kind: str
    detector: str
    path: Path
    with_rule: bool


def procedures(folder: Path, stills: Sequence[Still], part: str) -> list[tuple[str, Corpus]]:
    """Procedures with their kinds."""
    listed = []
    for number, minutes in enumerate(MINUTES[part]):
        settings = TimelineSettings(width=640, height=512, minutes=minutes)
        for kind, own in (("stills", stills), ("drawn", None)):
            seed, place = SEEDS[part] + number + (0 if own else 50), folder / part / f"{kind}-{number}"
            corpus = simulate_scenes(place, OF_EACH[part], seed, "all", stills=own, settings=settings)
            listed += [(kind, corpus.select(videos=[video.id])) for video in corpus.videos]
    return listed + [
        ("empty", corpus) for corpus in without_polyps(folder / part / "empty", SEEDS[part] + 90, EMPTY[part])
    ]


def without_polyps(folder: Path, seed: int, count: int) -> list[Corpus]:
    """The first so many procedures of a seed that have no polyp."""
    settings = TimelineSettings(width=640, height=512, minutes=EMPTY_MINUTES)
    found = list[Corpus]()
    for index in itertools.count():
        scene = SceneFile(seed=seed, index=index, like="all", settings=settings, looks=Difficulty(), stills=())
        timeline = simulate_timeline(seed, index, "all", settings).corpus
        if not timeline.polyps:
            path = folder / f"{timeline.videos[0].id}{SUFFIX}"
            path.parent.mkdir(parents=True, exist_ok=True)
            scene.save(path)
            found.append(replace(timeline, videos=(replace(timeline.videos[0], source=str(path)),)))
            if len(found) == count:
                break
    return found


def counted(task: Task) -> None:
    """Count one procedure from its pixels, and with perfect boxes, and keep the result."""
    video, truth = task.truth.videos[0], task.truth.boxes
    encoder, settings = pc.load_encoder(None, threads=1, engine="onnx"), CountSettings(pictures=False)
    detector = pc.load_detector(task.detector)
    detector = detector if task.with_rule else replace(detector, false_alarm_rule=None)
    report = pc.count(str(video.source), detector=detector, encoder=encoder, settings=settings)
    perfect = Boxes(truth.video, truth.frame, truth.xyxy, truth.score, track=truth.polyp)
    best = pc.count(str(video.source), perfect, encoder=encoder, settings=settings) if len(truth) else None
    result = {
        "kind": task.kind,
        "minutes": video.frame_count / float(video.fps or 30) / 60,
        "polyps": len(np.unique(truth.polyp)),
        "visible": len(np.unique(truth.polyp[truth.polyp >= 0])),
        "pixels": {**ends(report), **what_was_found(report, truth)},
        "perfect": None if best is None else ends(best),
        "tracklets": tracklets_of(report, truth, float(video.fps or 30)),
    }
    task.path.write_text(json.dumps(result))


def ends(report: pc.CountReport) -> dict[str, Any]:
    """The count and its interval."""
    interval = report.interval
    return {"count": report.count, "low": interval and interval.low, "high": interval and interval.high}


def what_was_found(report: pc.CountReport, truth: Boxes) -> dict[str, int]:
    """How many polyps are among the counted ones, and how many counted ones, and tracklets, show no polyp."""
    assert report.boxes is not None
    shown, owners = shown_polyps(report.boxes, truth), list[int]()
    for row in range(len(report.tracklets)):
        owners.append(owner_of(shown[report.tracklet == row]))
    false = sum(all(owners[row] < 0 for row in polyp.tracklets) for polyp in report.polyps)
    return {
        "found": len(set(owners) - {-1}),
        "false_polyps": false,
        "false_tracklets": sum(owner < 0 for owner in owners),
        "set_aside": len(report.set_aside),
    }


def tracklets_of(report: pc.CountReport, truth: Boxes, fps: float) -> list[dict[str, Any]]:
    """What the detector says about each tracklet that is long enough, counted or set aside, and what it shows."""
    boxes, detected = report.boxes, report.detected
    assert boxes is not None
    assert detected is not None
    assert report.detector is not None
    shown, step = shown_polyps(boxes, truth), report.detector.step
    tracklets, least = link_tracklets(boxes, *link_rule(True, fps, TrackRules())), least_boxes(report.video.frame_count)
    rows_of = [tracklets.rows(row) for row in np.flatnonzero(tracklets.box_count >= least).tolist()]
    listed = []
    for rows in rows_of:
        looks = rows[detected[rows]]
        span = int(boxes.frame[looks[-1]] - boxes.frame[looks[0]]) // step + 1
        listed.append(
            {
                "features": tracklet_features(boxes.score[looks], max(span, len(looks))).tolist(),
                "is_polyp": owner_of(shown[rows]) >= 0,
            }
        )
    return listed


def owner_of(shown: NDArray[np.int32]) -> int:
    """The polyp that at least half of the boxes of a tracklet show, -1 for none."""
    votes = np.bincount(shown[shown >= 0], minlength=1)
    return int(votes.argmax()) if votes.max() * 2 >= max(1, len(shown)) else -1


def results(options: argparse.Namespace, part: str) -> list[dict[str, Any]]:
    """The results of a part; what is there is not counted again."""
    stills = split_stills([options.kvasir_seg, options.polypgen])
    own = stills.choosing if part == "choosing" else stills.judging
    name = "bundled" if options.detector is None else str(options.detector)
    place = options.out / f"{part}-{pc.load_detector(name).fingerprint[:12]}"
    if part == "judging":  # other results with another rule
        rule = pc.load_detector(name).false_alarm_rule
        place = place.with_name(
            f"{place.name}-{content_key('rule', '' if rule is None else rule.model_dump_json())[:8]}"
        )
    place.mkdir(parents=True, exist_ok=True)
    listed = procedures(options.out, own, part)
    tasks = [
        Task(truth, kind, name, place / f"{kind}-{row:03d}.json", part == "judging")
        for row, (kind, truth) in enumerate(listed)
    ]
    missing = [(task,) for task in tasks if not task.path.exists()]
    missing.sort(key=lambda one: -one[0].truth.videos[0].frame_count)
    for done, _ in enumerate(in_processes(counted, missing, available_cores()), 1):
        print(f"{part}: {done} of {len(missing)} procedures", flush=True)
    return [json.loads(task.path.read_text()) for task in tasks]


def choose(options: argparse.Namespace) -> None:
    """Fit the rule for false alarms, and put it into detector.json.

    Its threshold is the highest that keeps 94 % of the tracklets of polyps: a polyp that is not counted costs more than
    a false alarm that a person sees at once. And real polyps have lower scores than simulated ones.
    """
    counted_ones = results(options, "choosing")
    summary = figures_of(counted_ones)
    print("without the rule:", json.dumps(summary, indent=1))
    listed = [tracklet for result in counted_ones for tracklet in result["tracklets"]]
    features = np.array([tracklet["features"] for tracklet in listed])
    is_polyp = np.array([tracklet["is_polyp"] for tracklet in listed])
    words = f"{len(listed)} tracklets of simulated procedures, {int((~is_polyp).sum())} of them of no polyp"
    rule = FalseAlarmRule.fit(features, is_polyp, fitted_on=words)
    chance = rule.probability(features)
    tried = np.arange(0.05, 0.96, 0.05)
    keeping = [threshold for threshold in tried.tolist() if (chance >= threshold)[is_polyp].mean() >= KEPT]
    rule = rule.model_copy(update={"threshold": round(max(keeping, default=0.0), 2)})
    kept = chance >= rule.threshold
    print(
        f"{words}; threshold {rule.threshold}: keeps {kept[is_polyp].mean():.3f} of the tracklets of polyps and "
        f"{kept[~is_polyp].mean():.3f} of the others; weights {np.round(rule.weights, 2)}"
    )
    fitted_on = {
        "without_the_rule": summary,
        "kept": float(kept[is_polyp].mean()),
        "of_others": float(kept[~is_polyp].mean()),
    }
    into_description(options, {"false_alarms": rule.to_json(), "false_alarms_fitted_on": fitted_on})


def judge(options: argparse.Namespace) -> None:
    """Print how good counts from pixels are, beside counts with perfect boxes."""
    figures = figures_of(results(options, "judging"))
    print(json.dumps(figures, indent=1))
    if options.write:
        into_description(options, {"end_to_end_figures": figures})


def figures_of(listed: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How good counts from pixels are, beside counts with perfect boxes."""
    shown = [one for one in listed if one["kind"] != "empty"]
    empty = [one for one in listed if one["polyps"] == 0]
    figures: dict[str, Any] = {"procedures": len(shown), "polyps": sum(one["polyps"] for one in shown)}
    for name in ("pixels", "perfect"):
        own = [(one["polyps"], one[name] or {"count": 0, "low": None, "high": None}) for one in shown]
        errors = np.array([count["count"] - polyps for polyps, count in own])
        claimed = [(polyps, count) for polyps, count in own if count["low"] is not None]
        held = [count["low"] <= polyps <= count["high"] for polyps, count in claimed]
        figures[name] = {
            "exact": float((errors == 0).mean()),
            "mean_absolute_error": float(np.abs(errors).mean()),
            "bias": float(errors.mean()),
            "with_interval": len(held),
            "coverage": float(np.mean(held)) if held else None,
            "width": float(np.mean([count["high"] - count["low"] for _, count in claimed])) if held else None,
        }
    pixels = [one["pixels"] for one in shown]
    figures["polyps_found"] = sum(one["found"] for one in pixels) / max(1, figures["polyps"])
    figures["false_polyps_a_procedure"] = float(np.mean([one["false_polyps"] for one in pixels]))
    minutes = sum(one["minutes"] for one in empty)
    figures["without_polyps"] = {
        "procedures": len(empty),
        "minutes": minutes,
        "false_tracklets_in_10_minutes": 10 * sum(one["pixels"]["false_tracklets"] for one in empty) / minutes,
        "set_aside_in_10_minutes": 10 * sum(one["pixels"]["set_aside"] for one in empty) / minutes,
    }
    return figures


def into_description(options: argparse.Namespace, values: Mapping[str, Any]) -> None:
    """Add values to detector.json."""
    _, model = find_model("bundled" if options.detector is None else options.detector)
    path = model.with_name(DESCRIPTION)
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}, indent=1) + "\n")


def main() -> None:
    """Choose or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("kvasir_seg", "polypgen", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--detector", type=Path)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    options.out = options.out.resolve()
    if options.choose:
        choose(options)
    else:
        judge(options)


if __name__ == "__main__":
    main()
