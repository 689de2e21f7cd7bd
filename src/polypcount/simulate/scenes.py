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
from polypcount.simulate.appearance import Difficulty
from polypcount.simulate.figures import SplitPart, procedures_like
from polypcount.simulate.scene_file import SUFFIX, SceneFile
from polypcount.simulate.settings import TimelineSettings
from polypcount.simulate.stills import Still, list_stills
from polypcount.simulate.timeline import simulate_timeline
from polypcount.workers import in_processes

LEARN_STEP = 4  # every fourth frame, as in the paper


def simulate_scenes(
    folder: str | os.PathLike[str],
    procedures: int,
    seed: int,
    like: SplitPart = "all",
    *,
    stills: Sequence[Still] | None = None,
    difficulty: Difficulty | None = None,
    settings: TimelineSettings | None = None,
    split: str = "",
    processes: int | None = None,
    progress: Progress = no_progress,
) -> Corpus:
    """Procedures that can be drawn: a scene file for each in `folder`, and their corpus, with a box around each polyp.

    Args:
        folder: Folder of the scene files.
        procedures: How many.
        seed: See `simulate_timelines`.
        like: See `simulate_timelines`.
        stills: Stills to take polyps from, each at most once, in an order given by the seed; by default polyps are
            drawn.
        difficulty: By default that of the study preset.
        settings: See `simulate_timelines`; by default frames have 640 x 512 pixels.
        split: Split of all videos.
        processes: None for one per core.
        progress: Counts procedures.
    """
    if procedures < 0:
        raise DataError(f"the number of procedures must be at least 0, found {procedures}")
    settings, difficulty = settings or TimelineSettings(width=640, height=512), difficulty or Difficulty()
    timelines = [simulate_timeline(seed, index, like, settings).corpus for index in range(procedures)]
    needed = sum(len(timeline.polyps) for timeline in timelines)
    if stills is not None and len(stills) < needed:
        raise DataError(
            f"{procedures} procedures have {needed} polyps, and there are {len(stills)} stills; "
            "simulate fewer procedures or add stills"
        )
    order = np.random.default_rng([seed, 2]).permutation(len(stills or ())).tolist()
    shuffled = iter([None] * needed if stills is None else [stills[k] for k in order])
    tasks = []
    for index, timeline in enumerate(timelines):
        chosen = tuple(next(shuffled) for _ in timeline.polyps)
        scene = SceneFile(seed=seed, index=index, like=like, settings=settings, looks=difficulty, stills=chosen)
        tasks.append((scene, Path(folder) / f"{timeline.videos[0].id}{SUFFIX}", split))
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
        "looks": asdict(difficulty),
        "polyps": "drawn" if stills is None else "stills",
    }
    return Corpus(whole.videos, whole.boxes, whole.polyps, provenance=Provenance.now("simulate", (), parameters))


def _write_scene(scene: SceneFile, path: Path, split: str) -> Corpus:
    timeline = scene.timeline().corpus
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
    difficulty: Difficulty | None = None,
    processes: int | None = None,
    progress: Progress = no_progress,
) -> tuple[Corpus, Corpus]:
    """A corpus to train on and one of the 19 study procedures; no polyp is in both.

    Args:
        folder: The scene files are below it.
        render: Another number gives other timelines, patients and, as far as there are enough, polyps.
        stills: Folder to take polyps from; every third still is for the study, the others are to train on. By default
            all polyps are drawn.
        identities: Least number of polyps to train on, in procedures of up to 10 minutes, of which every
            `LEARN_STEP`-th frame is recorded.
        difficulty: Difficulty of both; by default that of the study preset.
        processes: None for one per core.
        progress: Counts procedures.
    """
    listed = None if stills is None else list_stills(stills)
    learnt = None if listed is None else [still for k, still in enumerate(listed) if k % 3]
    studied = None if listed is None else listed[::3]
    polyps = [procedure.polyps for procedure in procedures_like("train")]
    turns, rest = divmod(identities, sum(polyps))
    # Within a turn, procedures come in a random order. So only whole turns are used.
    procedures = len(polyps) * (turns + (rest > 0))
    shorter = TimelineSettings(width=640, height=512, minutes=10, frame_step=LEARN_STEP)
    learn = simulate_scenes(
        folder / "learn",
        procedures,
        100 + render,
        "train",
        stills=learnt,
        difficulty=difficulty,
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
        difficulty=difficulty,
        split="study",
        processes=processes,
        progress=lambda done, _: progress(procedures + done, procedures + 19),
    )
    return learn, study
