"""The procedure from left to right, a lane for each polyp, a bar for each tracklet."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from polypcount.counting.result import CountedPolyp, CountReport
from polypcount.report.colours import Look, look_of
from polypcount.report.words import Clock, amount, minutes

_LANES = 24  # of one drawing, so that it fits on the first printed page
_MOST_TICKS = 6  # for which there is room on a telephone
_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)


@dataclass(frozen=True)
class Bar:
    """A tracklet. left, width: percent of the procedure. title: what it is, in words."""

    left: float
    width: float
    title: str


@dataclass(frozen=True)
class Lane:
    """The tracklets of one polyp."""

    number: int
    look: Look
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Tick:
    """A labelled place of the time axis. left: percent of the procedure."""

    left: float
    label: str


@dataclass(frozen=True)
class Timeline:
    """One drawing, of up to 24 polyps.

    title, description: what it shows, for those who do not see it.
    unit: what the axis is in.
    """

    title: str
    description: str
    unit: str
    lanes: tuple[Lane, ...]
    ticks: tuple[Tick, ...]


def timelines(report: CountReport) -> list[Timeline]:
    """Drawings of all polyps, as many as are needed; none where there is no polyp."""
    clock = Clock(report.video.fps)
    frames = max([report.video.frame_count, 1, *(tracklet.stop_frame for tracklet in report.tracklets)])
    lanes = [_lane(report, polyp, frames, clock) for polyp in report.polyps]
    ticks = tuple(_ticks(frames, clock))
    return [_drawing(lanes[start : start + _LANES], ticks, clock) for start in range(0, len(lanes), _LANES)]


def _drawing(lanes: list[Lane], ticks: tuple[Tick, ...], clock: Clock) -> Timeline:
    first, last = lanes[0].number, lanes[-1].number
    title = f"When polyp {first} was seen" if first == last else f"When polyps {first} to {last} were seen"
    told = (f"polyp {lane.number} in {amount(len(lane.bars), 'tracklet')}" for lane in lanes)
    description = f"A bar for each tracklet: {', '.join(told)}. The cards below tell the same in words."
    return Timeline(title, description, clock.unit, tuple(lanes), ticks)


def _lane(report: CountReport, polyp: CountedPolyp, frames: int, clock: Clock) -> Lane:
    bars = []
    for row in polyp.tracklets:
        one = report.tracklets[row]
        span = f"{clock.moment(one.start_frame)} to {clock.moment(one.stop_frame - 1)}"
        left, width = 100 * one.start_frame / frames, 100 * (one.stop_frame - one.start_frame) / frames
        bars.append(Bar(round(left, 3), round(width, 3), f"Polyp {polyp.number}, tracklet {row + 1}: {span}"))
    return Lane(polyp.number, look_of(polyp.number), tuple(bars))


def _ticks(frames: int, clock: Clock) -> Iterator[Tick]:
    """Round times, from the start on, at most six."""
    length = frames if clock.fps is None else frames / clock.fps
    step = _step(length, seconds=clock.fps is not None)
    for place in range(0, int(length) + 1, step):
        yield Tick(round(100 * place / length, 3), f"{place:,}" if clock.fps is None else minutes(place))


def _step(length: float, *, seconds: bool) -> int:
    """The smallest round step that gives at most six ticks, the one at the start included."""
    rising = (factor * int(10**power) for power in itertools.count() for factor in (1, 2, 5))
    steps = itertools.chain(_SECONDS, (step for step in rising if step > _SECONDS[-1])) if seconds else rising
    return next(step for step in steps if length / step < _MOST_TICKS)
