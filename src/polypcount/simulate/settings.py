"""Settings of a timeline."""

from dataclasses import dataclass

from polypcount.errors import DataError

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
    lost_seconds: float = 0.42
    lost_spread: float = 1.2
    steadiness_spread: float = 0.2
    more_episodes: float = 0.7
    most_episodes: int = 5
    late_return: float = 0.25
    way_in: float = 0.5
    clustered: float = 0.6
    neighbours: float = 0.22
    minutes: float | None = None
    frame_step: int = 1

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise DataError(f"{name} must be from {least} to {most}, found {value}")
