"""Timelines: which polyp is visible when, and where in the frame, without any pixels.

A procedure takes its length, frame rate, number of polyps and amount of polyp frames from one of REAL-Colon. The
endoscope is withdrawn past the polyps one after the other. Each is visited in a few episodes, the last of which may
come much later; in an episode it is seen in runs, broken where the camera loses it. Now and then two polyps are
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
    Part,
    Procedure,
    procedures_like,
)
from polypcount.simulate.paths import CameraPath

FrameNumbers = NDArray[np.int64]
Value = TypeVar("Value")
_MOST_VISIBLE = 0.7  # of the frames of a procedure can show a polyp; in REAL-Colon 0.43 of one do


@dataclass(frozen=True)
class TimelineSettings:
    """What decides how a timeline looks; the defaults match what is published of REAL-Colon.

    width, height: of the frames in pixels.
    run_seconds, run_spread: median length of a run, and standard deviation of its logarithm.
    lost_seconds, lost_spread: the same of the time for which the camera loses a polyp within an episode.
    steadiness_spread: standard deviation of the logarithm of a factor on `run_seconds`, one draw a procedure.
    more_episodes: probability of another episode after each, up to `most_episodes`.
    late_return: probability that the last of several episodes comes at any later time.
    way_in: probability that the first of several episodes is on the way in, long before the others.
    clustered: probability that a polyp sits close to another, so that their episodes alternate.
    neighbours: probability that two polyps of a procedure lie close enough to be seen together.
    minutes: longest procedure; a longer one is shortened with all that is seen in it. None for the dataset's lengths.
    frame_step: only every so-many-th frame is recorded: the same seconds at a lower rate.
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
        if not (64 <= self.width <= 16384 and 64 <= self.height <= 16384):
            raise DataError(f"frames must be 64 to 16384 pixels wide and high, found {self.width} x {self.height}")
        for name in ("run_seconds", "lost_seconds"):
            if not 0.01 <= getattr(self, name) <= 1000:
                raise DataError(f"{name} must be between 0.01 and 1000, found {getattr(self, name)}")
        for name in ("run_spread", "lost_spread", "steadiness_spread"):
            if not 0 <= getattr(self, name) <= 5:
                raise DataError(f"{name} must be between 0 and 5, found {getattr(self, name)}")
        for name in ("more_episodes", "late_return", "way_in", "clustered", "neighbours"):
            if not 0 <= getattr(self, name) <= 1:
                raise DataError(f"{name} is a probability between 0 and 1, found {getattr(self, name)}")
        if self.minutes is not None and not 0.2 <= self.minutes <= 1000:
            raise DataError(f"minutes must be between 0.2 and 1000, found {self.minutes}")
        if not 1 <= self.frame_step <= 100:
            raise DataError(f"frame_step must be between 1 and 100, found {self.frame_step}")
        if self.most_episodes < 1:
            raise DataError(f"most_episodes must be at least 1, found {self.most_episodes}")


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
    """A visit. `when` orders the episodes of a procedure: 0 is the first frame, 1 the last."""

    when: float
    seen: list[_Runs]

    @property
    def duration(self) -> int:
        return max(runs.duration for runs in self.seen)


def simulate_timelines(
    procedures: int,
    seed: int,
    like: Part = "all",
    settings: TimelineSettings | None = None,
    progress: Progress = no_progress,
) -> Corpus:
    """A corpus of simulated procedures with known polyps and no pixels; the same seed gives the same corpus.

    like: the procedures of REAL-Colon to take after. Each is taken once, in an order that the seed decides, before
        any is taken again; so 60 procedures like "all" have the 132 polyps of the dataset.
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


def simulate_timeline(seed: int, index: int, like: Part, settings: TimelineSettings) -> Corpus:
    """The procedure with this index of those that `simulate_timelines` gives."""
    if seed < 0:
        raise DataError(f"the seed must be at least 0, found {seed}")
    models = procedures_like(like)
    turn, place = divmod(index, len(models))
    shuffled = np.random.default_rng([seed, turn, 0]).permutation(len(models))
    rng = np.random.default_rng([seed, index, 1])
    name = f"sim-{seed}-{index:03d}" if like == "all" else f"sim-{like}-{seed}-{index:03d}"
    return _procedure(name, _shortened(models[shuffled[place]], settings), settings, rng)


def _shortened(model: Procedure, settings: TimelineSettings) -> Procedure:
    """The procedure in at most so many minutes, at the frame rate that is recorded."""
    minutes = model.frame_count / model.fps / 60
    kept = min(1.0, (settings.minutes or minutes) / minutes) / settings.frame_step
    frames, shown = round(model.frame_count * kept), round(model.polyp_frames * kept)
    return model._replace(fps=model.fps / settings.frame_step, frame_count=frames, polyp_frames=shown)


def _procedure(name: str, model: Procedure, settings: TimelineSettings, rng: np.random.Generator) -> Corpus:
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
    along = _places(model.polyps, settings.clustered, rng)
    polyps = tuple(_polyp(f"{name}_{k + 1}", name, where, rng) for k, where in enumerate(along))
    episodes = _episodes(model, along, settings, rng)
    parts = [
        _boxes_of(episode, start, [polyp.size_mm or 1.0 for polyp in polyps], settings, model.fps, rng)
        for episode, start in zip(episodes, _starts(episodes, model.frame_count), strict=True)
    ]
    frame, xyxy, owner = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Corpus((video,), Boxes(np.zeros(len(frame), np.int32), frame, xyxy, polyp=owner), polyps)


def _places(polyps: int, clustered: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """How far along the way back each polyp sits, 0 to 1, rising."""
    along = rng.uniform(size=polyps)
    for polyp in range(1, polyps):
        if rng.uniform() < clustered:
            along[polyp] = np.clip(along[rng.integers(polyp)] + rng.normal(0, 0.015), 0, 1)
    return np.sort(along)


def _polyp(name: str, video: str, along: float, rng: np.random.Generator) -> Polyp:
    """along: how far down the colon it sits, as a share of all polyps that lie before it."""
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
    model: Procedure, along: NDArray[np.float64], settings: TimelineSettings, rng: np.random.Generator
) -> list[_Episode]:
    """The visits of a procedure, in time order, short enough together to fit into it."""
    box_count = model.polyp_frames * BOXES_PER_POLYP_FRAME
    visible = np.ceil(np.maximum(rng.dirichlet(np.full(len(along), 1.5)) * box_count, 40)).astype(int)
    if visible.sum() > _MOST_VISIBLE * model.frame_count:  # a very short procedure, in which each has an equal share
        visible = np.minimum(visible, max(1, int(_MOST_VISIBLE * model.frame_count / len(along))))
    steadiness = rng.lognormal(0, settings.steadiness_spread)
    episodes = []
    for polyp, (share, frames) in enumerate(zip(along, visible, strict=True)):
        # The endoscope first goes in, seeing little, and looks at polyps on the way back.
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
            raise DataError("what is to be seen does not fit into a procedure; set longer run_seconds, or more minutes")
    return episodes


def _runs(
    polyp: int,
    visible: int,
    run_scale: float,
    settings: TimelineSettings,
    fps: float,
    rng: np.random.Generator,
) -> list[_Runs]:
    """The runs of one polyp, which add up to about `visible` frames, dealt out to episodes."""
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
    """Let the first episode of polyp `first + 1` take place within that of polyp `first`."""
    host = next(episode for episode in episodes if episode.seen[0].polyp == first)
    guest = next(episode for episode in episodes if episode.seen[0].polyp == first + 1)
    host.seen += guest.seen
    episodes.remove(guest)


def _tighter(runs: _Runs) -> _Runs:
    """The same runs with half the time between them, but never none."""
    lost = runs.start[1:] - runs.start[:-1] - runs.length[:-1]
    lost = np.maximum(lost // 2, 1)
    return _Runs(runs.polyp, np.concatenate([[0], np.cumsum(runs.length[:-1] + lost)]), runs.length)


def _starts(episodes: list[_Episode], frame_count: int) -> FrameNumbers:
    """First frame of each episode: one after the other, with the idle time shared out as `when` asks for."""
    durations = np.array([episode.duration for episode in episodes])
    when = np.array([0.0, *(episode.when for episode in episodes), 1.0])
    idle = frame_count - durations.sum()
    before = np.cumsum(np.maximum((np.diff(when) * idle).astype(int), 1))[:-1]
    if before[-1] > idle:  # a very short procedure has no frame to spare between all of them
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
    """Frames, boxes and polyps of one episode; neighbours keep to their own side of what the camera looks at."""
    path = CameraPath.random(rng)
    frames, boxes, owners = [], [], []
    for side, runs in enumerate(episode.seen):
        within = np.repeat(runs.start, runs.length) + _count_up(runs.length)
        offset = 0.0 if len(episode.seen) == 1 else (-0.16, 0.16)[side % 2]
        boxes.append(path.boxes(within / fps, sizes_mm[runs.polyp], offset, settings.width, settings.height, rng))
        frames.append(start + within)
        owners.append(np.full(len(within), runs.polyp))
    return np.concatenate(frames), np.concatenate(boxes), np.concatenate(owners)


def _count_up(lengths: FrameNumbers) -> FrameNumbers:
    """0 .. length - 1 for each length, one after the other."""
    ends = np.cumsum(lengths)
    return np.asarray(np.arange(ends[-1]) - np.repeat(ends - lengths, lengths))
