"""The cards of a page: one for each polyp, one for each uncertain pair of tracklets."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polypcount.counting.result import CountedPolyp, CountedTracklet, CountReport, LookScores, Picture
from polypcount.report.words import Clock, amount, certainty, doubt, duration, percent

_VIEWS = 8
MOST_PAIRS = 12
MOST_SET_ASIDE = 24


@dataclass(frozen=True)
class PagePicture:
    """A picture as a page needs it.

    Attributes:
        uri: The JPEG itself, as a data: address.
        width: In pixels.
        height: In pixels.
        box: Left, top, width and height of the box to draw, in pixels; None for no box.
        when: Time of its frame in the recording.
        text: What it shows, in words.
    """

    uri: str
    width: int
    height: int
    box: tuple[float, float, float, float] | None
    when: str
    text: str


@dataclass(frozen=True)
class PolypCard:
    """One polyp.

    Attributes:
        number: Its number.
        best: Its best frame.
        views: Pictures over time.
        facts: Names and values, in order.
        pairs: Numbers of the shown uncertain pairs that concern it.
        more_pairs: How many others concern it.
    """

    number: int
    best: PagePicture | None
    views: tuple[PagePicture, ...]
    facts: tuple[tuple[str, str], ...]
    pairs: tuple[int, ...] = ()
    more_pairs: int = 0


@dataclass(frozen=True)
class PairSide:
    """One tracklet of an uncertain pair; `span` says when it is visible."""

    number: int
    picture: PagePicture | None
    span: str


@dataclass(frozen=True)
class SetAsideCard:
    """A tracklet that is perhaps no polyp.

    Attributes:
        number: 1, 2, ... in time order.
        best: Its best frame.
        views: Pictures over time.
        facts: Names and values, in order.
    """

    number: int
    best: PagePicture | None
    views: tuple[PagePicture, ...]
    facts: tuple[tuple[str, str], ...]


def card_of(report: CountReport, polyp: CountedPolyp) -> PolypCard:
    """The card of one polyp."""
    clock = Clock(report)
    tracklets = [report.tracklets[row] for row in polyp.tracklets]
    first, last = first_and_last_frame(report, polyp)
    facts = (
        ("First seen", clock.moment(first)),
        ("Last seen", clock.moment(last)),
        ("Visible for", duration(report.visible_seconds(polyp), report.visible_frames(polyp))),
        ("Seen in", amount(len(tracklets), "tracklet")),
        ("Certainty", certainty(polyp.certainty, len(report.repeated))),
        *_score_facts([tracklet.scores for tracklet in tracklets if tracklet.scores is not None]),
    )
    name = f"Polyp {polyp.number}"
    best = best_picture(tracklets)
    views = sorted((view for tracklet in tracklets for view in tracklet.views), key=lambda view: view.frame)
    # Equally spaced in their order, with the first and the last.
    chosen = np.linspace(0, len(views) - 1, min(_VIEWS, len(views))).round().astype(int)
    concern = [
        rank
        for rank, pair in enumerate(report.pairs, 1)
        if polyp.number in (report.tracklets[pair.first].polyp, report.tracklets[pair.second].polyp)
    ]
    pairs = tuple(rank for rank in concern if rank <= MOST_PAIRS)
    return PolypCard(
        polyp.number,
        None if best is None else _page_picture(best, clock, f"{name}, best frame", boxed=True),
        tuple(_page_picture(views[index], clock, name) for index in chosen),
        facts,
        pairs,
        len(concern) - len(pairs),
    )


def set_aside_cards(report: CountReport) -> list[SetAsideCard]:
    """The cards of tracklets that are perhaps no polyp, most likely first, at most `MOST_SET_ASIDE`."""
    clock, cards = Clock(report), []
    likely_first = sorted(report.set_aside, key=lambda one: -one.probability)[:MOST_SET_ASIDE]
    for number, tracklet in enumerate(sorted(likely_first, key=lambda one: one.start_frame), 1):
        facts = (
            ("Seen", clock.span(tracklet)),
            ("Boxes", f"{tracklet.box_count:,}"),
            *_score_facts([tracklet.scores]),
            ("Probability of a polyp", percent(tracklet.probability)),
        )
        best = tracklet.whole
        name = "Perhaps no polyp"
        shown = None if best is None else _page_picture(best, clock, f"{name}, best frame", boxed=True)
        views = tuple(_page_picture(view, clock, name) for view in tracklet.views)
        cards.append(SetAsideCard(number, shown, views, facts))
    return cards


def pair_cards(report: CountReport) -> list[tuple[str, PairSide, PairSide]]:
    """The most uncertain pairs, at most twelve: what is uncertain, in words, and both tracklets."""
    return [
        (doubt(report, pair), _side(report, pair.first), _side(report, pair.second))
        for pair in report.pairs[:MOST_PAIRS]
    ]


def first_and_last_frame(report: CountReport, polyp: CountedPolyp) -> tuple[int, int]:
    """The first and the last frame that show the polyp."""
    tracklets = [report.tracklets[row] for row in polyp.tracklets]
    return min(tracklet.start_frame for tracklet in tracklets), max(tracklet.stop_frame for tracklet in tracklets) - 1


def best_picture(tracklets: Sequence[CountedTracklet]) -> Picture | None:
    """The whole frame of the best quality, or else the view of the best quality; None without pictures.

    A tracklet that was split has the whole frame of one part only.
    """
    wholes = [tracklet.whole for tracklet in tracklets if tracklet.whole]
    views = [view for tracklet in tracklets for view in tracklet.views]
    return max(wholes or views, key=lambda picture: picture.quality, default=None)


def _score_facts(scores: Sequence[LookScores]) -> tuple[tuple[str, str], ...]:
    """Mean and best score of the boxes that a detector gave; none for boxes from elsewhere."""
    if not scores:
        return ()
    looks = sum(each.looks for each in scores)
    mean = sum(each.mean * each.looks for each in scores) / looks
    return (
        ("Mean score", f"{mean:.2f} in {amount(looks, 'look')}"),
        ("Best score", f"{max(each.best for each in scores):.2f}"),
    )


def _side(report: CountReport, row: int) -> PairSide:
    clock, tracklet = Clock(report), report.tracklets[row]
    picture = max(tracklet.views, key=lambda view: view.quality, default=tracklet.whole)
    text = f"Polyp {tracklet.polyp}, tracklet {row + 1}"
    shown = None if picture is None else _page_picture(picture, clock, text, boxed=picture is tracklet.whole)
    return PairSide(tracklet.polyp, shown, clock.span(tracklet))


def _page_picture(picture: Picture, clock: Clock, text: str, *, boxed: bool = False) -> PagePicture:
    left, top, right, bottom = (round(float(side), 1) for side in picture.xyxy)
    when = clock.moment(picture.frame)
    return PagePicture(
        f"data:image/jpeg;base64,{base64.b64encode(picture.jpeg).decode()}",
        picture.width,
        picture.height,
        (left, top, round(right - left, 1), round(bottom - top, 1)) if boxed else None,
        when,
        f"{text}, at {when}",
    )
