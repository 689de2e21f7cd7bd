"""What a card shows of a polyp, and what is shown of two tracklets in doubt."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polypcount.counting.result import CountedPolyp, CountedTracklet, CountReport, Picture
from polypcount.report.colours import Look, look_of
from polypcount.report.words import Clock, amount, certainty, doubt

_VIEWS = 8
MOST_PAIRS = 12


@dataclass(frozen=True)
class Shown:
    """A picture as a page needs it.

    uri: the JPEG itself, as a data: address.
    width, height: in pixels. box: left, top, width, height in the same; None where none is drawn.
    when: the moment it was seen. told: what it shows, in words.
    """

    uri: str
    width: int
    height: int
    box: tuple[float, float, float, float] | None
    when: str
    told: str


@dataclass(frozen=True)
class Card:
    """One polyp. facts: names and values, in order."""

    number: int
    look: Look
    best: Shown | None
    views: tuple[Shown, ...]
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class PairSide:
    """One of two tracklets. span: when it was seen."""

    number: int
    look: Look
    picture: Shown | None
    span: str


@dataclass(frozen=True)
class PairCard:
    """Two tracklets about which the repetitions do not agree, and what that means."""

    sides: tuple[PairSide, PairSide]
    told: str


def card_of(report: CountReport, polyp: CountedPolyp) -> Card:
    """The card of one polyp."""
    clock = Clock(report.video.fps)
    mine = [report.tracklets[row] for row in polyp.tracklets]
    facts = (
        ("First seen", clock.moment(first_frame(report, polyp))),
        ("Last seen", clock.moment(last_frame(report, polyp))),
        ("Visible for", clock.span(report.visible_frames(polyp))),
        ("Seen in", amount(len(mine), "tracklet")),
        ("Certainty", certainty(polyp.certainty, len(report.repeated))),
    )
    name = f"Polyp {polyp.number}"
    views = sorted((view for tracklet in mine for view in tracklet.views), key=lambda view: view.frame)
    best = best_picture(mine)
    return Card(
        polyp.number,
        look_of(polyp.number),
        None if best is None else _shown(best, clock, f"{name}, best frame", boxed=True),
        tuple(_shown(view, clock, name) for view in _evenly(views)),
        facts,
    )


def pair_cards(report: CountReport) -> list[PairCard]:
    """The most uncertain decisions, at most twelve."""
    return [
        PairCard((_side(report, pair.first), _side(report, pair.second)), doubt(report, pair))
        for pair in report.pairs[:MOST_PAIRS]
    ]


def first_frame(report: CountReport, polyp: CountedPolyp) -> int:
    """The first frame that shows it."""
    return min(report.tracklets[row].start_frame for row in polyp.tracklets)


def last_frame(report: CountReport, polyp: CountedPolyp) -> int:
    """The last frame that shows it."""
    return max(report.tracklets[row].stop_frame for row in polyp.tracklets) - 1


def best_picture(tracklets: Sequence[CountedTracklet]) -> Picture | None:
    """Of the whole frames, or else of the views, the one in which the polyp is seen best; None without pictures.

    A tracklet that was split has kept the whole frame of one part only.
    """
    wholes = [one.whole for one in tracklets if one.whole]
    return max(wholes or [view for one in tracklets for view in one.views], key=lambda each: each.quality, default=None)


def _side(report: CountReport, row: int) -> PairSide:
    clock, tracklet = Clock(report.video.fps), report.tracklets[row]
    picture = max(tracklet.views, key=lambda view: view.quality, default=tracklet.whole)
    span = f"{clock.moment(tracklet.start_frame)} to {clock.moment(tracklet.stop_frame - 1)}"
    told = f"Polyp {tracklet.polyp}, tracklet {row + 1}"
    shown = None if picture is None else _shown(picture, clock, told, boxed=picture is tracklet.whole)
    return PairSide(tracklet.polyp, look_of(tracklet.polyp), shown, span)


def _evenly(views: Sequence[Picture]) -> list[Picture]:
    """Up to eight of them, at equal distances in their order, the first and the last among them."""
    chosen = np.linspace(0, len(views) - 1, min(_VIEWS, len(views))).round().astype(int)
    return [views[place] for place in chosen]


def _shown(picture: Picture, clock: Clock, told: str, *, boxed: bool = False) -> Shown:
    left, top, right, bottom = (round(float(side), 1) for side in picture.xyxy)
    when = clock.moment(picture.frame)
    return Shown(
        f"data:image/jpeg;base64,{base64.b64encode(picture.jpeg).decode()}",
        picture.width,
        picture.height,
        (left, top, round(right - left, 1), round(bottom - top, 1)) if boxed else None,
        when,
        f"{told}, at {when}",
    )
