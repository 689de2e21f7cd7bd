"""What `polypcount count` tells about a count."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from polypcount.cli.texts import harmless

if TYPE_CHECKING:
    from polypcount.counting import CountReport

_MOST_SHOWN = 3  # doubts in the terminal


def counted(report: "CountReport") -> str:
    """The count and its interval, in words."""
    if not report.count:
        return "no polyps counted"
    number = "1 polyp" if report.count == 1 else f"{report.count} polyps"
    if report.interval is None:
        return f"{number} (no interval)"
    return f"{number} ({report.interval.level:.0%}: {report.interval.low} to {report.interval.high})"


def headline(report: "CountReport") -> str:
    """The count in one line."""
    tracklets = "1 tracklet" if len(report.tracklets) == 1 else f"{len(report.tracklets)} tracklets"
    return f"{counted(report)} in {tracklets} of {report.video.id}"


def details(report: "CountReport") -> list[str]:
    """What else a user should know, a line each: the detector, doubts, remarks, and options that would help."""
    lines = [] if report.detector is None else [report.detector.note]
    lines += [report.no_interval] if report.no_interval else []
    for pair in report.pairs[:_MOST_SHOWN]:
        one, other = report.tracklets[pair.first], report.tracklets[pair.second]
        what = (
            f"polyps {one.polyp} and {other.polyp} may be one"
            if pair.doubt == "one?"
            else f"polyp {one.polyp} may be two"
        )
        lines.append(f"unsure: {what}: together in {pair.together:.0%} of {len(report.repeated)} repetitions")
    if len(report.pairs) > _MOST_SHOWN:
        lines.append(f"unsure about {len(report.pairs) - _MOST_SHOWN} more decisions, see the report")
    return [*lines, *report.remarks, *_hints(report)]


def _hints(report: "CountReport") -> list[str]:
    hints = []
    if not report.count and report.boxes is not None and len(report.boxes):
        if report.left_out:
            hints.append("Count shorter tracklets with --min-frames.")
        elif not report.set_aside and report.provenance.parameters.get("tracker") is not None:
            hints.append("Begin tracks with a lower score with --confidence.")
    if report.named_polyps not in (0, report.count) and not report.provenance.parameters.get("keep_polyps"):
        hints.append("Keep the polyps of the boxes with --keep-polyps.")
    if report.video.fps is None:
        hints.append("Set the frame rate with --fps.")
    return hints


def spent(report: "CountReport") -> str:
    """The time that each step took."""
    return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in report.seconds.items() if seconds >= 0.05)


def report_line(folder: Path) -> str:
    """Where the report is."""
    return f"report: {harmless(str(folder / 'report.html'))}"


def review_command(folder: Path) -> str:
    """The command to look at counts and correct them."""
    return f"polypcount review {harmless(shlex.quote(str(folder)))}"
