"""Times, shares and uncertain decisions in words."""

import math

from polypcount.counting.result import CountedTracklet, CountReport, DoubtfulPair, SetAsideTracklet

NOT_A_DEVICE = "Research software, not a medical device."
_SPACE = "\N{NO-BREAK SPACE}"
_HIGH, _MODERATE = 0.9, 0.7  # lowest certainties that have these names
_LONGEST_IN_SECONDS = 100
_SHORT_SECONDS = (100, 10)  # a recording shorter than these shows tenths, hundredths of a second


class Clock:
    """Times of a recording in words: as min:s, finer in a short recording, or as frames if no times are known.

    Args:
        report: The count of the recording.
    """

    def __init__(self, report: CountReport) -> None:
        self._report = report
        self.length = report.seconds_of(report.video.frame_count)  # seconds; None if not known
        self._decimals = sum(self.length is not None and self.length < longest for longest in _SHORT_SECONDS)

    @property
    def unit(self) -> str:
        """The unit of `moment`."""
        return "frames" if self.length is None else "min:s"

    def moment(self, frame: int) -> str:
        """The time of a frame: "12:04", "0:42.1", "0:00.44", or "frame 18,120"."""
        seconds = self._report.seconds_of(frame)
        return f"frame{_SPACE}{frame:,}" if seconds is None else minutes(seconds, self._decimals)

    def span(self, tracklet: CountedTracklet | SetAsideTracklet) -> str:
        """From the first to the last frame of a tracklet: "12:04 to 12:19"."""
        return f"{self.moment(tracklet.start_frame)} to {self.moment(tracklet.stop_frame - 1)}"


def duration(seconds: float | None, frames: int) -> str:
    """How long something lasts: "8.3 s", "2:05 min", or "250 frames" if the seconds are not known."""
    if seconds is None:
        return amount(frames, "frame")
    return f"{seconds:.1f}{_SPACE}s" if seconds < _LONGEST_IN_SECONDS else f"{minutes(seconds)}{_SPACE}min"


def minutes(seconds: float, decimals: int = 0) -> str:
    """Seconds as min:s, rounded down: 75 minutes are "75:00"; with one decimal, "75:00.0"."""
    scale = 10**decimals
    whole, part = divmod(int((seconds + 1e-6) * scale), scale)  # 3 frames at 0.3 a second are 10 seconds, not 9.99...
    return f"{whole // 60}:{whole % 60:02d}{f'.{part:0{decimals}d}' if decimals else ''}"


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
