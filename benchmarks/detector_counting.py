"""Counting from raw pixels with the bundled detector: the rule for false alarms, and how good the counts are.

Procedures of 1 to 4 minutes (for choosing, of half a minute to 1.5) are simulated, half of animated held-back stills
and half of drawn polyps, and counted from their pixels by `pc.count`, without boxes; and beside that with perfect boxes
and tracks. Some more have no polyp at all. Besides, windows move over real stills, with and without a polyp (see
moving_stills.py). Stills, procedures and seeds for choosing and judging differ; the detector has learnt from none.

--choose   fits the rule that sets tracklets aside as perhaps no polyp, on the tracklets of the choosing set, and puts
           it into detector.json
(none)     judges: polyps found, false polyps, exact counts, mean absolute error, how often the interval holds the true
           number; false tracklets in 10 minutes without polyps. The figures go into detector.json with --write
--perfect  counts with perfect boxes only; no detector is needed yet

Run: .venv/bin/python -m benchmarks.detector_counting KVASIR_SEG POLYPGEN CVC_CLINICDB CP_CHILD OUT
         [--detector FOLDER] [--choose | --perfect] [--write]
"""

import argparse
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.bundled_detector import cp_child
from benchmarks.detector_data import real_frames
from benchmarks.encoder_data import split_stills
from benchmarks.moving_stills import mucosa, recording, with_polyps
from benchmarks.moving_stills import without_polyps as beside_polyps
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
OF_EACH, EMPTY = {"choosing": 3, "judging": 5}, {"choosing": 6, "judging": 6}
SEEDS = {"choosing": 3100, "judging": 3200}
EMPTY_MINUTES, KEPT = 5.0, 0.98
# Real stills of each part with a polyp, beside it, and of mucosa; clips in one recording.
MOVING, CLIPS = (120, 60, 40), 20
NOTHING = {"count": 0, "low": None, "high": None}  # the count without a box


@dataclass(frozen=True)
class Task:
    """One procedure to count.

    Attributes:
        truth: A corpus of one video with the true boxes.
        kind: "stills", "drawn", or "empty" for one without polyps; "moving" or "moving-empty" for real stills.
        detector: Folder of the detector, or "bundled".
        path: File of the result.
        perfect: File of the count with perfect boxes, which all detectors share.
        with_rule: Whether tracklets are set aside by the rule for false alarms.
    """

    truth: Corpus
    kind: str
    detector: str
    path: Path
    perfect: Path
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


def moving(options: argparse.Namespace, part: str) -> list[tuple[str, Corpus]]:
    """Recordings of windows that move over real stills, with their kinds."""
    folder, seed = options.out / part / "moving", SEEDS[part] + 95
    parts = real_frames(options.kvasir_seg, options.polypgen, options.cvc_clinicdb)
    corpus = parts.tuning if part == "choosing" else pc.merge([*parts.held_back.values()])
    shown, beside = with_polyps(corpus, 4, MOVING[0]), beside_polyps(corpus, 2, 2 * MOVING[1], seed)[::2]
    learnt = {str(name) for name in cp_child(options.cp_child).files.name}
    walls = mucosa(options.cp_child, sorted(learnt), 2 * MOVING[2])[0 if part == "choosing" else 1 :: 2]
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    for kind, stills in (("moving", shown), ("moving-empty", [*beside, *walls])):
        for number, start in enumerate(range(0, len(stills), CLIPS)):
            path, own = folder / f"{kind}-{number}.mp4", stills[start : start + CLIPS]
            listed.append((kind, recording(path, own, seed + number)))
    return listed


def counted(task: Task) -> None:
    """Count one procedure from its pixels, and keep the result."""
    video, truth = task.truth.videos[0], task.truth.boxes
    encoder, settings = pc.load_encoder(None, threads=1, engine="onnx"), CountSettings(pictures=False)
    detector = pc.load_detector(task.detector)
    detector = detector if task.with_rule else replace(detector, false_alarm_rule=None)
    report = pc.count(str(video.source), detector=detector, encoder=encoder, settings=settings)
    result = {
        "kind": task.kind,
        "minutes": video.frame_count / float(video.fps or 30) / 60,
        "polyps": len(np.unique(truth.polyp)),
        "pixels": {**ends(report), **what_was_found(report, truth)},
        "tracklets": tracklets_of(report, truth, float(video.fps or 30)),
    }
    task.path.write_text(json.dumps(result))


def counted_perfectly(task: Task) -> None:
    """Count one procedure with perfect boxes and tracks, and keep the result."""
    video, truth = task.truth.videos[0], task.truth.boxes
    encoder, settings = pc.load_encoder(None, threads=1, engine="onnx"), CountSettings(pictures=False)
    boxes = Boxes(truth.video, truth.frame, truth.xyxy, truth.score, track=truth.polyp)
    best = ends(pc.count(str(video.source), boxes, encoder=encoder, settings=settings)) if len(truth) else NOTHING
    task.perfect.write_text(json.dumps(best))


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
    perfect = options.out / f"{part}-perfect"
    for folder in (place, perfect):
        folder.mkdir(parents=True, exist_ok=True)
    tasks = [
        Task(truth, kind, name, place / f"{kind}-{row:03d}.json", perfect / f"{kind}-{row:03d}.json", part == "judging")
        for row, (kind, truth) in enumerate([*procedures(options.out, own, part), *moving(options, part)])
    ]
    tasks.sort(key=lambda task: -task.truth.videos[0].frame_count)  # the longest first, so that no core waits for it
    to_count = [task for task in tasks if not task.perfect.exists() and not task.kind.startswith("moving")]
    run(counted_perfectly, to_count, f"{part}, perfect boxes")
    if options.perfect:
        return []
    run(counted, [task for task in tasks if not task.path.exists()], part)
    return [
        {
            **json.loads(task.path.read_text()),
            "perfect": json.loads(task.perfect.read_text()) if task.perfect.exists() else NOTHING,
        }
        for task in sorted(tasks, key=lambda task: task.path)
    ]


def run(work: Callable[[Task], None], tasks: Sequence[Task], what: str) -> None:
    """Do some tasks on all cores."""
    for done, _ in enumerate(in_processes(work, [(task,) for task in tasks], available_cores()), 1):
        print(f"{what}: {done} of {len(tasks)} procedures", flush=True)


def choose(options: argparse.Namespace) -> None:
    """Fit the rule for false alarms, and put it into detector.json.

    Its threshold is the highest that keeps 98 % of the tracklets of polyps, simulated and real: a polyp that is not
    counted costs more than a false alarm that a person sees at once. And scores in real recordings are lower than on
    stills that somebody found worth keeping.
    """
    counted_ones = results(options, "choosing")
    summary = figures_of(counted_ones)
    print("without the rule:", json.dumps(summary, indent=1))
    listed = [(one["kind"], tracklet) for one in counted_ones for tracklet in one["tracklets"]]
    real = np.array([kind.startswith("moving") for kind, _ in listed])
    empty = np.array([kind in ("empty", "moving-empty") for kind, _ in listed])
    features = np.array([tracklet["features"] for _, tracklet in listed])
    is_polyp = np.array([tracklet["is_polyp"] for _, tracklet in listed])
    words = (
        f"{len(listed)} tracklets of simulated procedures and of windows that move over real stills, "
        f"{int((~is_polyp).sum())} of them of no polyp"
    )
    rule = FalseAlarmRule.fit(features, is_polyp, fitted_on=words)
    chance = rule.probability(features)
    minutes = [
        max(1e-9, sum(one["minutes"] for one in counted_ones if one["kind"] == kind))
        for kind in ("empty", "moving-empty")
    ]
    rows = []
    for threshold in np.round(np.arange(0.0, 0.96, 0.05), 2).tolist():
        kept = chance >= threshold
        shares = [float(kept[is_polyp & (real == of_real)].mean()) for of_real in (False, True)]
        alarms = [
            10 * int(kept[empty & ~is_polyp & (real == of_real)].sum()) / lasting
            for of_real, lasting in zip((False, True), minutes, strict=True)
        ]
        rows.append((threshold, shares, alarms))
        print(
            f"threshold {threshold:.2f}: keeps {shares[0]:.3f} of the tracklets of simulated polyps, {shares[1]:.3f} "
            f"of real ones, {kept[~is_polyp].mean():.3f} of the others; false in 10 minutes without polyps: "
            f"{alarms[0]:.2f} simulated, {alarms[1]:.2f} real"
        )
    threshold, shares, alarms = [row for row in rows if min(row[1]) >= KEPT][-1]
    rule = rule.model_copy(update={"threshold": threshold})
    print(f"{words}; threshold {threshold}; weights {np.round(rule.weights, 2)}")
    fitted_on = {
        "without_the_rule": summary,
        "kept_of_simulated_polyps": shares[0],
        "kept_of_real_polyps": shares[1],
        "kept_of_others": float((chance >= threshold)[~is_polyp].mean()),
        "false_in_10_minutes": {"simulated": alarms[0], "real": alarms[1]},
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
    shown = [one for one in listed if one["kind"] in ("stills", "drawn")]
    empty = [one for one in listed if one["polyps"] == 0 and one["kind"] != "moving-empty"]
    figures: dict[str, Any] = {"procedures": len(shown), "polyps": sum(one["polyps"] for one in shown)}
    for name in ("pixels", "perfect"):
        own = [(one["polyps"], one[name]) for one in shown]
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
    figures["without_polyps"] = {"procedures": len(empty), **alarms(empty)}
    moving_ones = [one for one in listed if one["kind"] == "moving"]
    figures["moving_stills"] = {
        "polyps": sum(one["polyps"] for one in moving_ones),
        "found": sum(one["pixels"]["found"] for one in moving_ones) / max(1, sum(one["polyps"] for one in moving_ones)),
        "with_polyps": alarms(moving_ones),
        "without_polyps": alarms([one for one in listed if one["kind"] == "moving-empty"]),
    }
    return figures


def alarms(listed: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Tracklets that show no polyp, and those that were set aside, in 10 minutes."""
    minutes = sum(one["minutes"] for one in listed)
    values = {"minutes": minutes}
    for name in ("false_tracklets", "set_aside"):
        values[f"{name}_in_10_minutes"] = 10 * sum(one["pixels"][name] for one in listed) / max(minutes, 1e-9)
    return values


def into_description(options: argparse.Namespace, values: Mapping[str, Any]) -> None:
    """Add values to detector.json."""
    _, model = find_model("bundled" if options.detector is None else options.detector)
    path = model.with_name(DESCRIPTION)
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}, indent=1) + "\n")


def main() -> None:
    """Choose or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("kvasir_seg", "polypgen", "cvc_clinicdb", "cp_child", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--detector", type=Path)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--perfect", action="store_true")
    options = parser.parse_args()
    options.out = options.out.resolve()
    if options.perfect:
        for part in MINUTES:
            results(options, part)
    elif options.choose:
        choose(options)
    else:
        judge(options)


if __name__ == "__main__":
    main()
