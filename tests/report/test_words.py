"""Times, shares, doubts, colours and provenance as people read them."""

import math
from dataclasses import replace
from typing import Literal

import pytest

from polypcount.corpus import Video
from polypcount.counting.result import DoubtfulPair
from polypcount.report.colours import COLOURS, TEXTURES, contrast, mark_of
from polypcount.report.provenance import appendix_rows, file_name, provenance_rows, without_folders
from polypcount.report.words import Clock, amount, certainty, doubt, duration, interval, minutes, percent
from tests.report.reports import report_of


def clock(fps: float | None, frames: int = 150_000) -> Clock:
    """Of a recording with this many frames."""
    return Clock(report_of([1], pictures=False, video=Video("a", frames, fps)))


@pytest.mark.parametrize(
    ("frame", "fps", "told"),
    [
        (0, 25, "0:00"),
        (24, 25, "0:00"),
        (25, 25, "0:01"),
        (18_119, 25, "12:04"),
        (3, 0.3, "0:10"),
        (112_500, 25, "75:00"),
    ],
)
def test_moments_are_minutes_and_whole_seconds(frame: int, fps: float, told: str) -> None:
    assert clock(fps).moment(frame) == told


def test_a_short_recording_has_parts_of_a_second() -> None:
    ten, hundred = clock(25, frames=9 * 25), clock(25, frames=99 * 25)
    assert [hundred.moment(frame) for frame in (0, 10, 12, 1525)] == ["0:00.0", "0:00.4", "0:00.4", "1:01.0"]
    assert [ten.moment(frame) for frame in (0, 1, 12, 219)] == ["0:00.00", "0:00.04", "0:00.48", "0:08.76"]
    assert len({ten.moment(frame) for frame in range(225)}) == 225
    assert "." not in clock(25, frames=101 * 25).moment(12)


def test_without_a_frame_rate_moments_and_spans_are_frames() -> None:
    unknown = clock(None)
    assert [plain(unknown.moment(18_120)), plain(duration(None, 1)), plain(duration(None, 250))] == [
        "frame 18,120",
        "1 frame",
        "250 frames",
    ]
    assert unknown.unit == "frames"


@pytest.mark.parametrize(("frames", "told"), [(0, "0.0 s"), (207, "8.3 s"), (2499, "100.0 s"), (3125, "2:05 min")])
def test_spans(frames: int, told: str) -> None:
    assert plain(duration(frames / 25, frames)) == told


@pytest.mark.parametrize(
    ("share", "told"),
    [(0, "0 %"), (0.001, "1 %"), (0.4, "40 %"), (0.999, "99 %"), (1, "100 %"), (0.005, "1 %"), (0.996, "99 %")],
)
def test_percent_says_all_or_none_only_where_it_is_so(share: float, told: str) -> None:
    assert plain(percent(share)) == told


@pytest.mark.parametrize(
    ("share", "repetitions", "told"),
    [
        (1.0, 60, "high (100 %)"),
        (0.9, 60, "high (90 %)"),
        (0.89, 60, "moderate (89 %)"),
        (0.7, 60, "moderate (70 %)"),
        (0.69, 60, "low (69 %)"),
        (0.5, 0, "not measured"),
        (math.nan, 60, "not measured"),
    ],
)
def test_certainty(share: float, repetitions: int, told: str) -> None:
    assert plain(certainty(share, repetitions)) == told


def test_small_words() -> None:
    assert [interval(3, 5), interval(2, 2), plain(amount(1, "polyp")), plain(amount(1200, "polyp"))] == [
        "3 to 5",
        "2",
        "1 polyp",
        "1,200 polyps",
    ]
    assert [minutes(59.9), minutes(60)] == ["0:59", "1:00"]


@pytest.mark.parametrize(
    ("groups", "kind", "together", "decided", "otherwise"),
    [
        ([1, 2], "one?", 0.4, "two polyps (1 and 2); in 40 %", "one. If so, the count is one lower."),
        ([1, 1], "two?", 0.55, "one polyp (1); in 45 %", "two. If so, the count is one higher."),
    ],
)
def test_a_doubt_in_words(
    groups: list[int], kind: Literal["one?", "two?"], together: float, decided: str, otherwise: str
) -> None:
    told = plain(doubt(report_of(groups, pictures=False), DoubtfulPair(0, 1, together, kind)))
    assert told == f"Counted as {decided} of 60 repetitions they are {otherwise}"


def test_the_two_polyps_of_a_doubt_are_told_in_rising_order() -> None:
    report = report_of([1, 2, 1], pictures=False)
    assert "(1 and 2)" in doubt(report, DoubtfulPair(1, 2, 0.5, "one?"))


@pytest.mark.parametrize("number", range(1, 61))
def test_every_colour_stands_out_and_carries_text(number: int) -> None:
    look = mark_of(number)
    assert contrast(look.colour, "#ffffff") >= 3
    assert contrast(look.colour, look.ink) >= 4.5


def test_colours_come_again_with_another_texture() -> None:
    looks = [mark_of(number) for number in range(1, len(COLOURS) * len(TEXTURES) + 1)]
    assert len({(look.colour, look.texture) for look in looks}) == len(looks)
    assert mark_of(len(looks) + 1) == looks[0]


@pytest.mark.parametrize(
    ("one", "other", "ratio"), [("#000000", "#ffffff", 21), ("#777777", "#ffffff", 4.48), ("#123456", "#123456", 1)]
)
def test_contrast_is_that_of_wcag(one: str, other: str, ratio: float) -> None:
    assert contrast(one, other) == pytest.approx(ratio, abs=0.005)
    assert contrast(other, one) == contrast(one, other)


@pytest.mark.parametrize("path", ["/a/b/case.mp4", r"C:\a\b\case.mp4", r"\\server\share\case.mp4", "case.mp4"])
def test_of_a_path_the_name_alone(path: str) -> None:
    assert file_name(path) == "case.mp4"
    assert without_folders({"a": [{"b": path}], "n": 1}) == {"a": [{"b": "case.mp4"}], "n": 1}


@pytest.mark.parametrize("text", ["temporal-ap", "coco/mot", "1/2", "", "a sentence. /not/a path"])
def test_texts_that_are_no_absolute_paths_are_kept(text: str) -> None:
    assert without_folders(text) == text


def test_provenance_is_a_short_table_and_an_appendix_that_begins_with_encoder_and_method() -> None:
    report = report_of([1, 2, 1], pictures=False)
    assert [(name, plain(value)) for name, value in provenance_rows(report)] == [
        ("Recording", "case-01"),
        ("Frames", "720, 25 frames a second, 64 x 48 pixels"),
        ("Files", "case-01.mp4, boxes.json"),
        ("Made by", "polypcount 0.1.0, count"),
        ("Created", "2025-01-02 03:04 UTC"),
    ]
    assert [(name, plain(value)) for name, value in appendix_rows(report)] == [
        ("Encoder fingerprint", "sha256:abc"),
        ("Method", "ap"),
        ("Fewest boxes of a tracklet", "30"),
        ("Parameters", "alpha 0.5, of x"),
        ("Repetitions", "60, with counts of 2"),
        ("Time taken", "decode 1.2 s, embed 1:15 min"),
    ]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "none"),
        ("", "none"),
        ([], "none"),
        ({}, "none"),
        (True, "yes"),
        (False, "no"),
        (0, "0"),
        (0.1 + 0.2, "0.3"),
        ([1, 2.5, "x"], "1, 2.5, x"),
        (list(range(14)), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 others"),
        ({"a_b": {"c": None}}, "a b c none"),
        ("y" * 400, "y" * 300 + " ..."),
    ],
)
def test_parameters_of_any_kind_are_told(value: object, told: str) -> None:
    made = replace(report_of([1]).provenance, parameters={"some_thing": value})
    rows = dict(appendix_rows(report_of([1], pictures=False, provenance=made)))
    assert plain(rows["Some thing"]) == told


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")
