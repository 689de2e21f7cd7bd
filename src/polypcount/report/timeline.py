"""The timeline of a recording: a lane for each polyp, a bar for each tracklet."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from polypcount.counting.result import CountedPolyp, CountReport
from polypcount.report.words import Clock, amount, minutes

_LANES = 24  # of one drawing, so that it fits on the first printed page
_MOST_TICKS = 6  # the width of a telephone has room for these
_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)


@dataclass(frozen=True)
class TimelineBar:
    """One tracklet; `left` and `width` are percent of the recording, `title` describes it in words."""

    left: float
    width: float
    title: str


@dataclass(frozen=True)
class Timeline:
    """One drawing of up to 24 polyps.

    Attributes:
        title: What it shows, for screen readers.
        description: The same at length.
        unit: Unit of the time axis.
        lanes: The bars of each polyp, by its number.
        ticks: Labels of the time axis: percent of the recording, and text.
    """

    title: str
    description: str
    unit: str
    lanes: dict[int, list[TimelineBar]]
    ticks: tuple[tuple[float, str], ...]


def timelines(report: CountReport) -> list[Timeline]:
    """As many drawings as all polyps need; none without a polyp."""
    clock = Clock(report.video.fps)
    frames = max([report.video.frame_count, 1, *(tracklet.stop_frame for tracklet in report.tracklets)])
    ticks = tuple(_ticks(frames, clock))
    drawings = []
    for start in range(0, len(report.polyps), _LANES):
        lanes = {polyp.number: _bars(report, polyp, frames, clock) for polyp in report.polyps[start : start + _LANES]}
        first, last = min(lanes), max(lanes)
        title = f"When polyp {first} was seen" if first == last else f"When polyps {first} to {last} were seen"
        texts = (f"polyp {number} in {amount(len(bars), 'tracklet')}" for number, bars in lanes.items())
        description = f"A bar for each tracklet: {', '.join(texts)}. The cards below say the same in words."
        drawings.append(Timeline(title, description, clock.unit, lanes, ticks))
    return drawings


def _bars(report: CountReport, polyp: CountedPolyp, frames: int, clock: Clock) -> list[TimelineBar]:
    bars = []
    for row in polyp.tracklets:
        tracklet = report.tracklets[row]
        span = f"{clock.moment(tracklet.start_frame)} to {clock.moment(tracklet.stop_frame - 1)}"
        left = 100 * tracklet.start_frame / frames
        width = 100 * (tracklet.stop_frame - tracklet.start_frame) / frames
        bars.append(TimelineBar(round(left, 3), round(width, 3), f"Polyp {polyp.number}, tracklet {row + 1}: {span}"))
    return bars


def _ticks(frames: int, clock: Clock) -> Iterator[tuple[float, str]]:
    """Round times, beginning with the start, at most six."""
    length = frames if clock.fps is None else frames / clock.fps
    rising = (factor * int(10**power) for power in itertools.count() for factor in (1, 2, 5))
    steps = rising if clock.fps is None else itertools.chain(_SECONDS, (step for step in rising if step > _SECONDS[-1]))
    step = next(step for step in steps if length / step < _MOST_TICKS)
    for time in range(0, int(length) + 1, step):
        yield round(100 * time / length, 3), f"{time:,}" if clock.fps is None else minutes(time)
