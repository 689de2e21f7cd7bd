"""The timeline of a recording: a lane for each polyp, a bar for each tracklet."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from polypcount.counting.result import CountedPolyp, CountReport
from polypcount.report.words import Clock, amount, minutes

_LANES = 24  # of one drawing, so that it fits on the first printed page
_MOST_TICKS = 6  # the width of a telephone has room for these
_SECONDS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)


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
    clock = Clock(report)
    frames = max([report.video.frame_count, 1, *(tracklet.stop_frame for tracklet in report.tracklets)])
    ticks = tuple(_ticks(_place(report, frames), clock.length is not None))
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
        left, right, end = (_place(report, at) for at in (tracklet.start_frame, tracklet.stop_frame, frames))
        title = f"Polyp {polyp.number}, tracklet {row + 1}: {clock.span(tracklet)}"
        bars.append(TimelineBar(round(100 * left / end, 3), round(100 * (right - left) / end, 3), title))
    return bars


def _place(report: CountReport, frame: int) -> float:
    """Where a frame lies on the time axis: in seconds, or in frames if no times are known."""
    seconds = report.seconds_of(frame)
    return float(frame) if seconds is None else seconds


def _ticks(length: float, in_seconds: bool) -> Iterator[tuple[float, str]]:
    """Round times, beginning with the start, at most six. length: Of the recording, in seconds or in frames."""
    rising = (factor * int(10**power) for power in itertools.count() for factor in (1, 2, 5))
    steps = itertools.chain(_SECONDS, (step for step in rising if step > _SECONDS[-1])) if in_seconds else rising
    step = next(step for step in steps if length / step < _MOST_TICKS)
    for time in (step * index for index in range(int(length / step + 1e-6) + 1)):
        label = minutes(time, int(step < 1)) if in_seconds else f"{time:,.0f}"
        yield round(min(100 * time / length, 100), 3), label
