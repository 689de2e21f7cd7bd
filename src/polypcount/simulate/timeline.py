"""Timelines: which polyp is visible when, and where in the frame, without any pixels.

A procedure takes its length, frame rate, number of polyps and number of polyp frames from one of REAL-Colon. The
endoscope is withdrawn past the polyps one after the other. Each is visited in a few episodes, the last of which may
come much later. In an episode it is seen in runs, which end where the camera loses it. Sometimes two polyps are
neighbours and are seen together.
"""

from dataclasses import asdict, dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Boxes, Corpus, Polyp, Provenance, Video, concatenate
from polypcount.errors import DataError
from polypcount.progress import Progress, no_progress
from polypcount.simulate.figures import (
    BOXES_PER_POLYP_FRAME,
    HISTOLOGIES,
    SITES,
    SIZES_MM,
    RealColonProcedure,
    SplitPart,
    procedures_like,
)
from polypcount.simulate.paths import CameraPath

FrameNumbers = NDArray[np.int64]
Value = TypeVar("Value")
_MOST_VISIBLE = 0.7  # largest share of frames that show a polyp; in REAL-Colon it is 0.43
_RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("width", "height"), (64, 16384)),
    **dict.fromkeys(("run_seconds", "lost_seconds"), (0.01, 1000)),
    **dict.fromkeys(("run_spread", "lost_spread", "steadiness_spread"), (0, 5)),
    **dict.fromkeys(("more_episodes", "late_return", "way_in", "clustered", "neighbours"), (0, 1)),
    "most_episodes": (1, 1000),
    "minutes": (0.2, 1000),
    "frame_step": (1, 100),
}


@dataclass(frozen=True)
class TimelineSettings:
    """What decides a timeline; the defaults match what is published about REAL-Colon.

    Attributes:
        width: Width of the frames in pixels.
        height: Height of the frames in pixels.
        run_seconds: Median length of a run.
        run_spread: Standard deviation of the logarithm of that length.
        lost_seconds: Median time for which the camera loses a polyp within an episode.
        lost_spread: Standard deviation of the logarithm of that time.
        steadiness_spread: Standard deviation of the logarithm of a factor on `run_seconds`, drawn once per procedure.
        more_episodes: Probability of another episode after each, up to `most_episodes`.
        most_episodes: Most episodes of a polyp.
        late_return: Probability that the last of several episodes comes at any later time.
        way_in: Probability that the first of several episodes is on the way in, long before the others.
        clustered: Probability that a polyp is close to another, so that their episodes alternate.
        neighbours: Probability that two polyps of a procedure are close enough to be seen together.
        minutes: Longest procedure. A longer one is shortened, together with its episodes. None for no limit.
        frame_step: Every `frame_step`-th frame is recorded: the same seconds at a lower frame rate.
    """

    width: int = 1240
    height: int = 1080
    run_seconds: float = 1.75
    run_spread: float = 1.45
    lost_seconds: float = 0.8
    lost_spread: float = 1.2
    steadiness_spread: float = 0.2
    more_episodes: float = 0.7
    most_episodes: int = 5
    late_return: float = 0.25
    way_in: float = 0.5
    clustered: float = 0.6
    neighbours: float = 0.27
    minutes: float | None = None
    frame_step: int = 1

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise DataError(f"{name} must be from {least} to {most}, found {value}")


@dataclass(frozen=True)
class _Runs:
    """The runs of one polyp in one episode: frames from the start of the episode."""

    polyp: int
    start: FrameNumbers
    length: FrameNumbers

    @property
    def duration(self) -> int:
        return int(self.start[-1] + self.length[-1])


@dataclass
class _Episode:
    """A visit to one or two polyps. `when` orders the episodes of a procedure: 0 is the first frame, 1 the last."""

    when: float
    seen: list[_Runs]

    @property
    def duration(self) -> int:
        return max(runs.duration for runs in self.seen)


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
        parts.append(simulate_timeline(seed, index, like, settings))
        progress(index + 1, procedures)
    parameters = {"procedures": procedures, "seed": seed, "like": like, "settings": asdict(settings)}
    whole = concatenate(parts)
    return Corpus(whole.videos, whole.boxes, whole.polyps, provenance=Provenance.now("simulate", (), parameters))


def simulate_timeline(seed: int, index: int, like: SplitPart, settings: TimelineSettings) -> Corpus:
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


def _procedure(name: str, model: RealColonProcedure, settings: TimelineSettings, rng: np.random.Generator) -> Corpus:
    video = Video(
        id=name,
        frame_count=model.frame_count,
        fps=model.fps,
        width=settings.width,
        height=settings.height,
        dataset="simulated",
    )
    if model.polyps == 0:
        return Corpus((video,))
    along = _positions(model.polyps, settings.clustered, rng)
    polyps = tuple(_polyp(f"{name}_{k + 1}", name, position, rng) for k, position in enumerate(along))
    episodes = _episodes(model, along, settings, rng)
    parts = [
        _boxes_of(episode, start, [polyp.size_mm or 1.0 for polyp in polyps], settings, model.fps, rng)
        for episode, start in zip(episodes, _starts(episodes, model.frame_count), strict=True)
    ]
    frame, xyxy, owner = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Corpus((video,), Boxes(np.zeros(len(frame), np.int32), frame, xyxy, polyp=owner), polyps)


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


def _episodes(
    model: RealColonProcedure, along: NDArray[np.float64], settings: TimelineSettings, rng: np.random.Generator
) -> list[_Episode]:
    """The visits of a procedure, in time order, short enough together to fit into it."""
    box_count = model.polyp_frames * BOXES_PER_POLYP_FRAME
    visible = np.ceil(np.maximum(rng.dirichlet(np.full(len(along), 1.5)) * box_count, 40)).astype(int)
    if visible.sum() > _MOST_VISIBLE * model.frame_count:  # a very short procedure: equal shares
        visible = np.minimum(visible, max(1, int(_MOST_VISIBLE * model.frame_count / len(along))))
    steadiness = rng.lognormal(0, settings.steadiness_spread)
    episodes = []
    for polyp, (share, frames) in enumerate(zip(along, visible, strict=True)):
        # The endoscope first goes in, and polyps are looked at mostly on the way back.
        when = 0.25 + 0.7 * share
        visits = _runs(polyp, int(frames), steadiness * model.fps, settings, model.fps, rng)
        for number, runs in enumerate(visits):
            if number == 0 and len(visits) > 1 and rng.uniform() < settings.way_in:
                episodes.append(_Episode(0.25 * (1 - share), [runs]))
                continue
            episodes.append(_Episode(when, [runs]))
            when = min(when + rng.exponential(0.02), 0.97)
        if rng.uniform() < settings.late_return and len(episodes) > 1 and episodes[-2].seen[0].polyp == polyp:
            episodes[-1].when = rng.uniform(episodes[-2].when, 0.97)
    if len(along) > 1 and rng.uniform() < settings.neighbours:
        _bring_together(episodes, int(rng.integers(len(along) - 1)))
    episodes.sort(key=lambda episode: episode.when)
    while sum(episode.duration for episode in episodes) > 0.9 * model.frame_count:
        before = [episode.duration for episode in episodes]
        for episode in episodes:
            episode.seen = [_tighter(runs) for runs in episode.seen]
        if [episode.duration for episode in episodes] == before:
            raise DataError("the polyps do not fit into a procedure", mend="minutes")
    return episodes


def _runs(
    polyp: int,
    visible: int,
    run_scale: float,
    settings: TimelineSettings,
    fps: float,
    rng: np.random.Generator,
) -> list[_Runs]:
    """The runs of one polyp, about `visible` frames in all, for each of its episodes."""
    lengths: list[int] = []
    while (left := visible - sum(lengths)) > 0:
        drawn = rng.lognormal(np.log(settings.run_seconds * run_scale), settings.run_spread)
        lengths.append(min(max(int(drawn), 1), left))
    count = 1
    while count < min(settings.most_episodes, len(lengths)) and rng.uniform() < settings.more_episodes:
        count += 1
    cuts = np.sort(rng.permutation(np.arange(1, len(lengths)))[: count - 1])
    episodes = []
    for part in np.split(np.array(lengths), cuts):
        lost = rng.lognormal(np.log(settings.lost_seconds * fps), settings.lost_spread, len(part))
        lost = np.maximum(lost.astype(int), 1)
        start = np.concatenate([[0], np.cumsum(part[:-1] + lost[:-1])])
        episodes.append(_Runs(polyp, start, part))
    return episodes


def _bring_together(episodes: list[_Episode], first: int) -> None:
    """Move the first episode of polyp `first + 1` into that of polyp `first`."""
    host, guest = (next(e for e in episodes if e.seen[0].polyp == polyp) for polyp in (first, first + 1))
    host.seen += guest.seen
    episodes.remove(guest)


def _tighter(runs: _Runs) -> _Runs:
    """The same runs with half the time between them, but at least one frame."""
    lost = np.maximum((runs.start[1:] - runs.start[:-1] - runs.length[:-1]) // 2, 1)
    return _Runs(runs.polyp, np.concatenate([[0], np.cumsum(runs.length[:-1] + lost)]), runs.length)


def _starts(episodes: list[_Episode], frame_count: int) -> FrameNumbers:
    """First frame of each episode: one after the other, with idle time between them according to `when`."""
    durations = np.array([episode.duration for episode in episodes])
    when = np.array([0.0, *(episode.when for episode in episodes), 1.0])
    idle = frame_count - durations.sum()
    before = np.cumsum(np.maximum((np.diff(when) * idle).astype(int), 1))[:-1]
    if before[-1] > idle:  # a very short procedure has too few frames for that
        before = np.arange(1, len(episodes) + 1) * idle // (len(episodes) + 1)
    return np.asarray(before + np.concatenate([[0], np.cumsum(durations)[:-1]]))


def _boxes_of(
    episode: _Episode,
    start: int,
    sizes_mm: list[float],
    settings: TimelineSettings,
    fps: float,
    rng: np.random.Generator,
) -> tuple[FrameNumbers, NDArray[np.float32], FrameNumbers]:
    """Frames, boxes and polyps of one episode; of two neighbours, one is on the left and one on the right."""
    path = CameraPath.random(rng)
    frames, boxes, owners = [], [], []
    for side, runs in enumerate(episode.seen):
        within = np.concatenate(
            [np.arange(length) + begin for begin, length in zip(runs.start, runs.length, strict=True)]
        )
        offset = 0.0 if len(episode.seen) == 1 else (-0.16, 0.16)[side % 2]
        boxes.append(path.boxes(within / fps, sizes_mm[runs.polyp], offset, settings.width, settings.height, rng))
        frames.append(start + within)
        owners.append(np.full(len(within), runs.polyp))
    return np.concatenate(frames), np.concatenate(boxes), np.concatenate(owners)
