"""Timelines: which polyp is visible when, and where in the frame, without any pixels.

A procedure takes its length, frame rate, number of polyps and number of polyp frames from one of REAL-Colon. The
endoscope is withdrawn past the polyps one after the other. Each is visited in a few episodes, the last of which may
come much later. In an episode it is seen in runs, which end where the camera loses it. Sometimes two polyps are
neighbours and are seen together.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Boxes, Corpus, Polyp, Provenance, Video, concatenate
from polypcount.errors import DataError
from polypcount.progress import Progress, no_progress
from polypcount.simulate.figures import HISTOLOGIES, SITES, SIZES_MM, RealColonProcedure, SplitPart, procedures_like
from polypcount.simulate.paths import CameraPath, Visit
from polypcount.simulate.projection import Values, ellipse_boxes, in_frame, seen_from
from polypcount.simulate.schedule import Episode, episode_starts, plan_episodes
from polypcount.simulate.settings import TimelineSettings

Value = TypeVar("Value")
_LONGEST = 1.5  # length of a polyp by its width
_NEIGHBOUR = 0.16  # how far neighbours are from the middle between them, in widths of the frame


@dataclass(frozen=True, eq=False)
class SimulatedTimeline:
    """One procedure without pixels.

    Attributes:
        corpus: A corpus of one video. The boxes are those of ellipses.
        visits: How each polyp is seen, in every frame of a visit. The boxes are of the frames in which it is seen.
    """

    corpus: Corpus
    visits: tuple[Visit, ...]


def simulate_timelines(
    procedures: int,
    seed: int,
    like: SplitPart = "all",
    settings: TimelineSettings | None = None,
    progress: Progress = no_progress,
) -> Corpus:
    """A corpus of simulated procedures with known polyps and no pixels.

    Args:
        procedures: How many.
        seed: The same seed gives the same corpus.
        like: The procedures of REAL-Colon that they are modelled on. Each is used once, in an order given by the seed,
            before any is used again; so 60 procedures like "all" have the 132 polyps of the dataset.
        settings: The default settings if not given.
        progress: Counts procedures.
    """
    if procedures < 0:
        raise DataError(f"the number of procedures must be at least 0, found {procedures}")
    settings = settings or TimelineSettings()
    parts = []
    for index in range(procedures):
        parts.append(simulate_timeline(seed, index, like, settings).corpus)
        progress(index + 1, procedures)
    parameters = {"procedures": procedures, "seed": seed, "like": like, "settings": asdict(settings)}
    whole = concatenate(parts)
    return Corpus(whole.videos, whole.boxes, whole.polyps, provenance=Provenance.now("simulate", (), parameters))


def simulate_timeline(seed: int, index: int, like: SplitPart, settings: TimelineSettings) -> SimulatedTimeline:
    """One procedure of `simulate_timelines`, by its index."""
    if seed < 0:
        raise DataError(f"the seed must be at least 0, found {seed}")
    models = procedures_like(like)
    turn, position = divmod(index, len(models))
    shuffled = np.random.default_rng([seed, turn, 0]).permutation(len(models))
    rng = np.random.default_rng([seed, index, 1])
    name = f"sim-{seed}-{index:03d}" if like == "all" else f"sim-{like}-{seed}-{index:03d}"
    return _procedure(name, _shortened(models[shuffled[position]], settings), settings, rng)


def _shortened(model: RealColonProcedure, settings: TimelineSettings) -> RealColonProcedure:
    """The procedure in at most `settings.minutes`, at the frame rate that is recorded."""
    minutes = model.frame_count / model.fps / 60
    share = min(1.0, (settings.minutes or minutes) / minutes) / settings.frame_step
    frames, shown = round(model.frame_count * share), round(model.polyp_frames * share)
    return model._replace(fps=model.fps / settings.frame_step, frame_count=frames, polyp_frames=shown)


def _procedure(
    name: str, model: RealColonProcedure, settings: TimelineSettings, rng: np.random.Generator
) -> SimulatedTimeline:
    video = Video(
        id=name,
        frame_count=model.frame_count,
        fps=model.fps,
        width=settings.width,
        height=settings.height,
        dataset="simulated",
    )
    if model.polyps == 0:
        return SimulatedTimeline(Corpus((video,)), ())
    along = _positions(model.polyps, settings.clustered, rng)
    polyps = tuple(_polyp(f"{name}_{k + 1}", name, position, rng) for k, position in enumerate(along))
    ratios = rng.uniform(1, _LONGEST, len(polyps))
    sizes = [polyp.size_mm or 1.0 for polyp in polyps]
    episodes = plan_episodes(model, along, settings, rng)
    visits = []
    for episode, start in zip(episodes, episode_starts(episodes, model.frame_count).tolist(), strict=True):
        visits += _visits(episode, start, model.fps, settings.width / settings.height, sizes, ratios, rng)
    boxes = visited_boxes(visits, [partial(ellipse_boxes, ratio=ratio) for ratio in ratios.tolist()], video)
    return SimulatedTimeline(Corpus((video,), boxes, polyps), tuple(visits))


def _visits(
    episode: Episode,
    start: int,
    fps: float,
    aspect: float,
    sizes_mm: list[float],
    ratios: NDArray[np.float64],
    rng: np.random.Generator,
) -> list[Visit]:
    """Of an episode; of two neighbours, one is on the left and one on the right."""
    path = CameraPath(episode.duration, fps, aspect, rng)
    offsets = (0.0,) if len(episode.seen) == 1 else (-_NEIGHBOUR, _NEIGHBOUR)
    return [
        path.visit(
            runs.polyp,
            start,
            np.column_stack([runs.start, runs.start + runs.length]),
            sizes_mm[runs.polyp],
            float(ratios[runs.polyp]),
            offset,
            rng,
        )
        for runs, offset in zip(episode.seen, offsets, strict=True)
    ]


def visited_boxes(visits: Sequence[Visit], shapes: Sequence[Callable[[Values], Values]], video: Video) -> Boxes:
    """The boxes of visits, ordered by frame.

    Args:
        visits: Of one video.
        shapes: For each polyp, the function that gives the boxes around it for homographies.
        video: With its width and height.
    """
    if not visits:
        return Boxes.empty()
    parts = [shapes[visit.polyp](seen_from(visit.pose[visit.seen])) for visit in visits]
    frame = np.concatenate([visit.start + np.flatnonzero(visit.seen) for visit in visits])
    polyp = np.concatenate([np.full(len(part), visit.polyp) for visit, part in zip(visits, parts, strict=True)])
    xyxy = in_frame(np.concatenate(parts), int(video.width or 0), int(video.height or 0))
    return Boxes(np.zeros(len(frame), np.int32), frame, xyxy, polyp=polyp).ordered()


def _positions(polyps: int, clustered: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """How far along the way back each polyp is, 0 to 1, rising."""
    along = rng.uniform(size=polyps)
    for polyp in range(1, polyps):
        if rng.uniform() < clustered:
            along[polyp] = np.clip(along[rng.integers(polyp)] + rng.normal(0, 0.015), 0, 1)
    return np.sort(along)


def _polyp(name: str, video: str, along: float, rng: np.random.Generator) -> Polyp:
    """A random polyp; its site follows from how far `along` the way back it is."""
    passed = np.cumsum(list(SITES.values())) / sum(SITES.values())
    return Polyp(
        id=name,
        video=video,
        size_mm=float(_draw(SIZES_MM, rng)),
        site=list(SITES)[int(np.searchsorted(passed, along))],
        histology=_draw(HISTOLOGIES, rng),
    )


def _draw(weights: dict[Value, int], rng: np.random.Generator) -> Value:
    shares = np.array(list(weights.values())) / sum(weights.values())
    return list(weights)[int(rng.choice(len(shares), p=shares))]
