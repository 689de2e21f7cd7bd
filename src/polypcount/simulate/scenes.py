"""Corpora of scenes: procedures with known polyps, whose pixels are drawn when they are read."""

import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from polypcount.corpus import Corpus, Provenance, concatenate
from polypcount.errors import DataError
from polypcount.machine import available_cores
from polypcount.progress import Progress, no_progress
from polypcount.simulate.appearance import Looks
from polypcount.simulate.figures import Part, procedures_like
from polypcount.simulate.scene_file import SUFFIX, SceneFile, Still
from polypcount.simulate.still_list import list_stills
from polypcount.simulate.timeline import TimelineSettings, simulate_timeline
from polypcount.workers import in_processes

LEARN_STEP = 4  # every fourth frame, as the paper looks at tracklets


def simulate_scenes(
    folder: Path,
    procedures: int,
    seed: int,
    like: Part = "all",
    *,
    stills: Sequence[Still] | None = None,
    looks: Looks | None = None,
    settings: TimelineSettings | None = None,
    split: str = "",
    processes: int | None = None,
    progress: Progress = no_progress,
) -> Corpus:
    """Procedures that can be drawn: a file for each in `folder`, and the corpus of them, with a box around each polyp.

    like, settings: see `simulate_timelines`. stills: to take polyps from, each at most once, shuffled by the seed;
        not given, polyps are drawn. looks: strength of each difficulty. split: of all videos.
    """
    if procedures < 0:
        raise DataError(f"the number of procedures must be at least 0, found {procedures}")
    settings, looks = settings or TimelineSettings(width=640, height=512), looks or Looks()
    timelines = [simulate_timeline(seed, index, like, settings) for index in range(procedures)]
    needed = sum(len(timeline.polyps) for timeline in timelines)
    if stills is not None and len(stills) < needed:
        raise DataError(
            f"{procedures} procedures have {needed} polyps, and there are {len(stills)} stills; "
            "simulate fewer procedures or add stills"
        )
    order = np.random.default_rng([seed, 2]).permutation(len(stills or ())).tolist()
    tasks, used = [], 0
    for index, timeline in enumerate(timelines):
        mine = range(used, used + len(timeline.polyps))
        used = mine.stop
        polyps = tuple(None if stills is None else stills[order[k]] for k in mine)
        path = folder / f"{timeline.videos[0].id}{SUFFIX}"
        tasks.append((SceneFile(seed, index, like, settings, looks, polyps), path, split))
    parts: dict[int, Corpus] = {}
    for number, part in in_processes(_write_scene, tasks, available_cores() if processes is None else processes):
        parts[number] = part
        progress(len(parts), procedures)
    whole = concatenate([parts[number] for number in range(procedures)])
    parameters = {
        "procedures": procedures,
        "seed": seed,
        "like": like,
        "settings": asdict(settings),
        "looks": asdict(looks),
        "polyps": "drawn" if stills is None else "stills",
    }
    return Corpus(whole.videos, whole.boxes, whole.polyps, provenance=Provenance.now("simulate", (), parameters))


def _write_scene(scene: SceneFile, path: Path, split: str) -> Corpus:
    timeline = scene.timeline()
    video = replace(timeline.videos[0], source=os.path.abspath(path), split=split)
    boxes = scene.scene().boxes if timeline.polyps else timeline.boxes
    scene.save(path)
    return Corpus((video,), boxes, timeline.polyps)


def write_benchmark(
    folder: Path,
    *,
    render: int,
    stills: Path | None,
    identities: int = 170,
    looks: Looks | None = None,
    processes: int | None = None,
    progress: Progress = no_progress,
) -> tuple[Corpus, Corpus]:
    """What is learnt from, and the 19 procedures that are studied, with no polyp in both.

    render: number of the draw; another one has other timelines, patients and, as far as there are, polyps.
    stills: folder to take polyps from; every third still is for the study, the others are to learn from. Not given, all
        polyps are drawn. identities: least number of polyps to learn from, in procedures of up to 10 minutes, of which
        every `LEARN_STEP`-th frame is recorded, since methods that take every frame would need four times as many.
    looks: how strong each difficulty is, of both; that of the study preset, where not given.
    """
    listed = None if stills is None else list_stills(stills)
    learnt = None if listed is None else [still for k, still in enumerate(listed) if k % 3]
    studied = None if listed is None else listed[::3]
    polyps = [procedure.polyps for procedure in procedures_like("train")]
    turns, rest = divmod(identities, sum(polyps))
    # Within a turn procedures come in a random order, so the last turn is a whole one, or none.
    procedures = len(polyps) * (turns + (rest > 0))
    shorter = TimelineSettings(width=640, height=512, minutes=10, frame_step=LEARN_STEP)
    learn = simulate_scenes(
        folder / "learn",
        procedures,
        100 + render,
        "train",
        stills=learnt,
        looks=looks,
        settings=shorter,
        split="train",
        processes=processes,
        progress=lambda done, _: progress(done, procedures + 19),
    )
    study = simulate_scenes(
        folder / "study",
        19,
        200 + render,
        "study",
        stills=studied,
        looks=looks,
        split="study",
        processes=processes,
        progress=lambda done, _: progress(procedures + done, procedures + 19),
    )
    return learn, study
