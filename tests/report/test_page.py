"""What report.html says, read by a parser as a browser would."""

import base64
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import simplejpeg  # type: ignore[import-untyped]

from polypcount.corpus import Video
from polypcount.counting.result import CountedTracklet, CountInterval, DoubtfulPair
from polypcount.report.cards import card_of
from polypcount.report.page import report_page
from tests.report.reports import MEANING, detected_report, picture, report_of

HOSTILE = "<script>alert(1)</script>\" onload='x' {{ 7*7 }} &amp;"


class Page(HTMLParser):
    """Texts, tags with their attributes, and headings of a page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.headings: list[str] = []
        self._in = ""
        self.feed(html)
        self.text = " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in = tag if tag not in ("img", "meta", "bdi", "span") else self._in

    def handle_data(self, data: str) -> None:
        if self._in in ("style", "title", "desc"):
            return
        self.texts.append(data)
        if self._in in ("h1", "h2", "h3") and data.strip():
            self.headings.append(data.strip())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_sections_come_in_the_order_in_which_they_are_read() -> None:
    page = Page(report_page(report_of([1, 2, 3, 1])))
    marks = [
        "distinct polyps",
        "2 to 4",
        MEANING,
        "case-01",
        "34.4 s",
        "4 tracklets counted",
        "2 left out",
        "Timeline",
        "Polyps",
        "Polyp 1 Best frame",
        "Uncertain pairs",
        "Counted as two polyps (1 and 2); in 40 % of 60 repetitions they are one.",
        "Remarks Frames 10 to 20",
        "How this was made",
        "sha256:abc",
    ]
    places = [page.text.find(mark) for mark in marks]
    assert -1 not in places, marks[places.index(-1)]
    assert places == sorted(places)
    assert page.text.count("Research software, not a medical device.") == 2


def test_a_card_shows_the_best_frame_with_its_box_and_views_over_time() -> None:
    report = report_of([1, 2, 1, 1])
    card = card_of(report, report.polyps[0])
    best = max((report.tracklets[row].whole for row in (0, 2, 3)), key=lambda one: one.quality if one else 0)
    assert best is not None
    assert card.best is not None
    assert base64.b64decode(card.best.uri.partition(",")[2]) == best.jpeg
    assert card.best.box == (16, 12, 32, 24)
    views = sorted((view for row in (0, 2, 3) for view in report.tracklets[row].views), key=lambda view: view.frame)
    assert len(views) == 9
    shown = [base64.b64decode(view.uri.partition(",")[2]) for view in card.views]
    assert len(shown) == 8
    assert (shown[0], shown[-1]) == (views[0].jpeg, views[-1].jpeg)
    assert [view.when for view in card.views] == [
        "0:04.0",
        "0:04.5",
        "0:05.0",
        "0:15.2",
        "0:16.2",
        "0:20.8",
        "0:21.3",
        "0:21.8",
    ]
    facts = {name: value.replace("\N{NO-BREAK SPACE}", " ") for name, value in card.facts}
    assert facts == {
        "First seen": "0:04.0",
        "Last seen": "0:22.3",
        "Visible for": "4.8 s",
        "Seen in": "3 tracklets",
        "Certainty": "high (92 %)",
    }


def test_every_picture_is_inside_and_has_words() -> None:
    page = Page(report_page(report_of([1, 2, 1])))
    pictures = page.all("img")
    assert len(pictures) == 2 + 6 + 3 + 2
    for one in pictures:
        source = one["src"] or ""
        assert source.startswith("data:image/jpeg;base64,")
        height, width, *_ = simplejpeg.decode_jpeg_header(base64.b64decode(source.partition(",")[2]))
        assert (str(width), str(height)) == (one["width"], one["height"])
        assert one["alt"]


def test_nothing_is_asked_of_anybody() -> None:
    html = report_page(report_of([1, 2, 1]))
    page = Page(html)
    policy = next(one["content"] for one in page.all("meta") if one.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline';")
    assert not page.all("script")
    assert not page.all("link")
    assert not page.all("iframe")
    assert all((one["href"] or "").startswith("#") for one in page.all("a"))
    assert "http:" not in html
    assert "https:" not in html
    assert "/secret" not in html


def test_texts_from_elsewhere_stay_texts() -> None:
    plain = Page(report_page(report_of([1, 2])))
    report = report_of(
        [1, 2],
        video=Video(HOSTILE, 1000, 25),
        remarks=(HOSTILE,),
        interval=CountInterval(1, 2, 0.95, HOSTILE),
        provenance=replace(
            report_of([1]).provenance,
            made_by=HOSTILE,
            created=HOSTILE,
            package_version=HOSTILE,
            sources=(HOSTILE,),
            parameters={HOSTILE: HOSTILE, "list": [HOSTILE]},
        ),
        seconds={HOSTILE: 1.0},
    )
    html = report_page(report)
    page = Page(html)
    assert "<script" not in html
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in plain.tags}
    assert {name for _, attributes in page.tags for name in attributes} == {
        name for _, attributes in plain.tags for name in attributes
    }
    assert page.text.count("<script>alert(1)</script>\" onload='x' {{ 7*7 }} &amp;") >= 8


def test_no_polyp_is_said_plainly_and_leaves_no_empty_sections() -> None:
    page = Page(report_page(report_of([], remarks=(), left_out=0, interval=None, no_interval="There are no boxes.")))
    assert "No polyps counted There are no boxes." in page.text
    assert "interval" not in page.text
    assert page.headings[0] == "No polyps counted"
    assert not page.all("img")
    assert not page.all("svg")
    for heading in ("Timeline", "Uncertain pairs", "Remarks"):
        assert heading not in page.text


def test_one_tracklet() -> None:
    page = Page(report_page(report_of([1])))
    assert "1 distinct polyp " in page.text
    assert "1 tracklet counted" in page.text
    assert "Uncertain pairs" not in page.text
    assert len(page.all("article")) == 1


def test_without_pictures_there_is_a_word_in_their_place() -> None:
    page = Page(report_page(report_of([1, 2, 1], pictures=False)))
    assert not page.all("img")
    assert page.text.count("No pictures were kept of this polyp.") == 2
    assert page.text.count("No picture was kept.") == 2


def test_a_whole_frame_stands_in_where_a_tracklet_of_a_pair_has_no_view() -> None:
    report = report_of([1, 2])
    bare = tuple(replace(one, views=()) for one in report.tracklets)
    page = Page(report_page(report_of([1, 2], tracklets=bare)))
    assert len(page.all("img")) == 4


def test_without_a_frame_rate_everything_is_in_frames() -> None:
    page = Page(report_page(report_of([1, 2, 1], fps=None)))
    assert "720 frames" in page.text
    assert "frame 100" in page.text
    assert "in frames." in page.text
    assert " s " not in page.text.replace("decode 1.2 s", "")


def test_sixty_polyps_have_sixty_lanes_labelled_with_numbers() -> None:
    page = Page(report_page(report_of(range(1, 61), pictures=False)))
    links = [one for one in page.all("a") if "aria-label" in one]
    assert [one["aria-label"] for one in links] == [f"Polyp {number}" for number in range(1, 61)]
    assert {one["id"] for one in page.all("article")} == {(one["href"] or "#")[1:] for one in links}
    assert {one["id"] for one in page.all("pattern")} == {"stripes", "bars", "dots"}


@pytest.mark.parametrize(("pairs", "shown"), [(1, 1), (12, 12), (13, 12)])
def test_at_most_twelve_pairs_are_shown_and_how_many_there_are(pairs: int, shown: int) -> None:
    groups = list(range(1, pairs + 2))
    doubts = tuple(DoubtfulPair(row, row + 1, 0.5 - row / 100, "one?") for row in range(pairs))
    page = Page(report_page(report_of(groups, pictures=False, pairs=doubts)))
    assert page.text.count("Counted as two polyps") == shown
    assert f"There {'is 1 decision ' if pairs == 1 else f'are {pairs} decisions '}on which" in page.text
    assert ("the 12 most uncertain are shown" in page.text) == (pairs > 12)


def test_cards_link_to_their_pairs_and_pairs_to_their_cards() -> None:
    doubts = (
        DoubtfulPair(0, 2, 0.6, "two?"),
        *(DoubtfulPair(row, row + 1, 0.4, "one?") for row in (1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)),
    )
    groups = [1, 2, 1, *range(3, 15)]
    report = report_of(groups, pictures=False, pairs=doubts)
    cards = [card_of(report, polyp) for polyp in report.polyps]
    assert [card.pairs for card in cards[:4]] == [(1, 2), (2,), (3,), (3, 4)]
    assert (cards[12].pairs, cards[12].more_pairs) == ((12,), 1)
    assert (cards[13].pairs, cards[13].more_pairs) == ((), 1)
    page = Page(report_page(report))
    leads = [(one["href"] or "")[1:] for one in page.all("a")]
    ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    assert set(leads) <= ids
    assert {f"pair-{rank}" for rank in range(1, 13)} <= set(leads)
    assert leads.count("pair-1") == 1
    assert leads.count("pair-2") == 2
    assert leads.count("polyp-1") == 1 + 2 + 1  # its lane, both sides of the first pair, a side of the second


def test_polyps_of_which_only_the_number_is_kept_are_told() -> None:
    page = Page(report_page(report_of([1], retired=4)))
    assert "5 distinct polyps" in page.text
    assert "4 polyps of these were seen so long ago" in page.text


def test_what_a_detector_found_is_said_first_and_what_is_perhaps_no_polyp_last() -> None:
    page = Page(report_page(detected_report()))
    marks = [
        "distinct polyps",
        "The boxes were found by the bundled detector.",
        "2 left out",
        "1 perhaps no polyp",
        "Mean score 0.75 in 20",
        "Best score 0.88",
        "Perhaps no polyp By the scores",
        "this tracklet is perhaps a false alarm",
        "0:02.0 to 0:03.2",
        "Probability of a polyp 25",
        "Uncertain pairs",
    ]
    places = [page.text.replace("\N{NO-BREAK SPACE}", " ").find(mark) for mark in marks]
    assert -1 not in places, marks[places.index(-1)]
    assert places == sorted(places)
    ids = [each["id"] for _, each in page.tags if "id" in each]
    assert len(ids) == len(set(ids))
    many = detected_report()
    (one,) = many.set_aside
    page = Page(report_page(replace(many, set_aside=tuple(replace(one, start_frame=k) for k in range(30)))))
    assert "the 24 of 30 that are most likely polyps are shown" in page.text


def test_no_polyp_but_a_tracklet_that_is_perhaps_none() -> None:
    none = report_of([], interval=None, no_interval="600 looks in 0:48 of recording, no tracklet that is counted.")
    (one,) = detected_report().set_aside
    page = Page(report_page(replace(none, detector=detected_report().detector, set_aside=(one,))))
    assert "No polyps counted" in page.text
    assert page.headings.index("Perhaps no polyp") < page.headings.index("Remarks")


def test_ids_of_a_page_are_unique() -> None:
    ids = [attributes["id"] for _, attributes in Page(report_page(report_of(range(1, 40)))).tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_numbers_of_numpy_are_taken() -> None:
    one = CountedTracklet(np.int64(5), np.int64(50), np.int32(45), 1, (picture(7, 1),), picture(7, 1))  # type: ignore[arg-type]
    assert "0:00" in report_page(report_of([1], tracklets=(one,)))
