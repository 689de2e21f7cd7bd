"""Times, shares and uncertain decisions in words."""

import math
from dataclasses import dataclass

from polypcount.counting.result import CountReport, DoubtfulPair

NOT_A_DEVICE = "Research software, not a medical device."
_SPACE = "\N{NO-BREAK SPACE}"
_HIGH, _MODERATE = 0.9, 0.7  # lowest certainties that have these names
_LONGEST_IN_SECONDS = 100


@dataclass(frozen=True)
class Clock:
    """Times of a recording as min:s, or as frames if the frame rate is not known.

    Attributes:
        fps: Frames per second; None if it is not known.
    """

    fps: float | None

    @property
    def unit(self) -> str:
        """The unit of `moment`."""
        return "frames" if self.fps is None else "min:s"

    def moment(self, frame: int) -> str:
        """The time of a frame: "12:04", or "frame 18,120"."""
        return f"frame{_SPACE}{frame:,}" if self.fps is None else minutes(frame / self.fps)

    def span(self, frames: int) -> str:
        """A number of frames as a duration: "8.3 s", "2:05 min", or "250 frames"."""
        if self.fps is None:
            return amount(frames, "frame")
        seconds = frames / self.fps
        return f"{seconds:.1f}{_SPACE}s" if seconds < _LONGEST_IN_SECONDS else f"{minutes(seconds)}{_SPACE}min"


def minutes(seconds: float) -> str:
    """Seconds as min:s, rounded down: 75 minutes are "75:00"."""
    whole = int(seconds + 1e-6)  # 3 frames at 0.3 a second are 10 seconds, in spite of rounding
    return f"{whole // 60}:{whole % 60:02d}"


def amount(number: int, thing: str) -> str:
    """A number of things: "1 polyp", "2 polyps"."""
    return f"{number:,}{_SPACE}{thing}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """A share as whole percent; 0 % and 100 % only if it is exactly that."""
    rounded = round(100 * share)
    if 0 < share < 1:
        rounded = min(max(rounded, 1), 99)
    return f"{rounded}{_SPACE}%"


def certainty(share: float, repetitions: int) -> str:
    """The certainty of a polyp: "high (95 %)"."""
    if repetitions == 0 or math.isnan(share):
        return "not measured"
    word = "high" if share >= _HIGH else "moderate" if share >= _MODERATE else "low"
    return f"{word} ({percent(share)})"


def interval(low: int, high: int) -> str:
    """From low to high, both included: "3 to 5", or "3" if they are equal."""
    return str(low) if low == high else f"{low} to {high}"


def doubt(report: CountReport, pair: DoubtfulPair) -> str:
    """What was decided about two tracklets, how many repetitions differ, and what would change."""
    first, second = sorted(report.tracklets[row].polyp for row in (pair.first, pair.second))
    repetitions = amount(len(report.repeated), "repetition")
    if pair.doubt == "one?":
        decided = f"Counted as two polyps ({first} and {second})"
        return f"{decided}; in {percent(pair.together)} of {repetitions} they are one. If so, the count is one lower."
    decided = f"Counted as one polyp ({first})"
    return f"{decided}; in {percent(1 - pair.together)} of {repetitions} they are two. If so, the count is one higher."
