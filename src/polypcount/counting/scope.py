"""What can be claimed about a count: an interval holds for recordings like those that it was made on."""

from polypcount.clustering import OperatingPoint, Scope

MUCH_LEFT_OUT = 1 / 3  # share of the boxes


def why_no_interval(point: OperatingPoint, seconds: float | None, tracklets: int, short_share: float) -> str:
    """Why the interval of an operating point says nothing about a recording, for the reader; empty if it does.

    Args:
        point: The operating point of the count.
        seconds: Duration of what was counted; None where the frame rate is not known.
        tracklets: How many tracklets were counted.
        short_share: Share of the boxes that are in tracklets too short to be counted.
    """
    if point.scope is None:
        return (
            "No interval is given: the settings for counting do not say which recordings they were chosen on, so "
            "nothing can be said about others."
        )
    differences = list(_differences(point.scope, seconds, tracklets, short_share))
    if not differences:
        return ""
    length = "" if point.scope.seconds is None else f" of {_from_to(*map(_length, point.scope.seconds))}"
    return (
        f"No interval is given: one was made only for recordings{length} with "
        f"{_from_to(*map(str, point.scope.tracklets))} tracklets. This one {' and '.join(differences)}."
    )


def _differences(scope: Scope, seconds: float | None, tracklets: int, short_share: float) -> list[str]:
    differences = []
    if scope.seconds is not None and seconds is None:
        differences.append("has no known frame rate, so its length is not known")
    elif scope.seconds is not None and seconds is not None and not _inside(seconds, *scope.seconds):
        differences.append(f"lasts {_length(seconds)}")
    if not _inside(tracklets, *scope.tracklets):
        differences.append(f"has {tracklets} tracklets")
    if short_share > MUCH_LEFT_OUT:
        differences.append(f"has {short_share:.0%} of its boxes in tracklets that are too short to be counted")
    return differences


def _inside(value: float, low: float, high: float) -> bool:
    # The length of a video differs by a frame or two from the length that it was made with.
    return low * 0.999 <= value <= high * 1.001


def _length(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds / 60:.3g} minutes"


def _from_to(low: str, high: str) -> str:
    if low == high:
        return low
    number, _, unit = low.partition(" ")
    return f"{number} to {high}" if unit and high.endswith(f" {unit}") else f"{low} to {high}"
