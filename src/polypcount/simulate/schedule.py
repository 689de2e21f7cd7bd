"""When each polyp of a procedure is seen: episodes, and in each the runs between which the camera loses it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.errors import DataError
from polypcount.simulate.figures import BOXES_PER_POLYP_FRAME, RealColonProcedure
from polypcount.simulate.settings import TimelineSettings

FrameNumbers = NDArray[np.int64]
_MOST_VISIBLE = 0.7  # largest share of frames that show a polyp; in REAL-Colon it is 0.43


@dataclass(frozen=True)
class Runs:
    """The runs of one polyp in one episode: frames from the start of the episode."""

    polyp: int
    start: FrameNumbers
    length: FrameNumbers

    @property
    def duration(self) -> int:
        """Frames from the first run to the end of the last."""
        return int(self.start[-1] + self.length[-1])


@dataclass
class Episode:
    """A visit to one or two polyps. `when` orders the episodes of a procedure: 0 is the first frame, 1 the last."""

    when: float
    seen: list[Runs]

    @property
    def duration(self) -> int:
        """Frames until all runs have ended."""
        return max(runs.duration for runs in self.seen)


def plan_episodes(
    model: RealColonProcedure, along: NDArray[np.float64], settings: TimelineSettings, rng: np.random.Generator
) -> list[Episode]:
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
                episodes.append(Episode(0.25 * (1 - share), [runs]))
                continue
            episodes.append(Episode(when, [runs]))
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
) -> list[Runs]:
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
        episodes.append(Runs(polyp, start, part))
    return episodes


def _bring_together(episodes: list[Episode], first: int) -> None:
    """Move the first episode of polyp `first + 1` into that of polyp `first`."""
    host, guest = (next(e for e in episodes if e.seen[0].polyp == polyp) for polyp in (first, first + 1))
    host.seen += guest.seen
    episodes.remove(guest)


def _tighter(runs: Runs) -> Runs:
    """The same runs with half the time between them, but at least one frame."""
    lost = np.maximum((runs.start[1:] - runs.start[:-1] - runs.length[:-1]) // 2, 1)
    return Runs(runs.polyp, np.concatenate([[0], np.cumsum(runs.length[:-1] + lost)]), runs.length)


def episode_starts(episodes: list[Episode], frame_count: int) -> FrameNumbers:
    """First frame of each episode: one after the other, with idle time between them according to `when`."""
    durations = np.array([episode.duration for episode in episodes])
    when = np.array([0.0, *(episode.when for episode in episodes), 1.0])
    idle = frame_count - durations.sum()
    before = np.cumsum(np.maximum((np.diff(when) * idle).astype(int), 1))[:-1]
    if before[-1] > idle:  # a very short procedure has too few frames for that
        before = np.arange(1, len(episodes) + 1) * idle // (len(episodes) + 1)
    return np.asarray(before + np.concatenate([[0], np.cumsum(durations)[:-1]]))
