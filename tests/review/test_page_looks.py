"""Every state of the page can be read by everybody: sizes, colours, names, and results with nothing in them."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polypcount as pc
from polypcount.report import write_report
from tests.review.page_browser import Person, chromium, served
from tests.review.results import boxes, copy_of_result, doubtful_encoder, recording

SIZES = [(1024, 700), (1440, 900), (1920, 1080)]
HOSTILE = "<img src=x onerror=alert(1)> \"&' " + "long-name-" * 6
DIALOGS = {"?": "help", "m": "choose", "r": "regroup", "h": "history", "e": "export"}
# Controls that are cut off, or that reach out of the part of the page that they are in.
CUT_OFF = """() => [...document.querySelectorAll("button, input, select, #count, #interval, #ruler text, .answers, h2")]
    .filter(one => one.checkVisibility() && !one.closest("dialog, .panel-body, #lane-scroll"))
    .filter(one => {
        const {left, right, bottom} = one.getBoundingClientRect();
        const room = one.closest(".panel, .tabs, #timeline, .bar").getBoundingClientRect();
        return left < room.left - 1 || right > room.right + 1 || bottom > innerHeight;
    })
    .concat([...document.querySelectorAll(".answers button")].filter(one => one.checkVisibility()
        && one.getBoundingClientRect().right > one.closest(".panel").getBoundingClientRect().right))
    .map(one => one.id || one.outerHTML)"""
# Words about the question that cannot be read without scrolling: all lines, at both ends.
HIDDEN_WORDS = """() => {
    const words = document.querySelector("#question-chance"), range = document.createRange();
    range.selectNodeContents(words);
    return [...range.getClientRects()]
        .flatMap(({left, right, top, bottom}) => [left + 2, right - 2]
            .map(x => document.elementFromPoint(x, (top + bottom) / 2)))
        .filter(one => one !== words).map(one => one?.outerHTML ?? "outside of the window");
}"""


def _is_readable(anna: Person) -> None:
    """No rule of WCAG 2.1 AA that can be checked by a program is broken."""
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

    rules = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
    result = Axe().run(anna.page, options=rules).response
    assert [(rule["id"], [node["html"][:200] for node in rule["nodes"][:3]]) for rule in result["violations"]] == []
    assert "color-contrast" in {rule["id"] for rule in result["passes"]}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nobody_is_shut_out(result: Path, scheme: str) -> None:
    with chromium() as browser, served(result) as address:
        anna = Person.opens(browser, address, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce")
        page = anna.page
        card = anna.card(1)
        card.get_by_label("Name").fill(HOSTILE)
        page.locator("#timeline-view").focus()
        anna.waits_until_saved()
        assert page.locator("img[src=x]").count() == 0
        anna.answers("y")
        anna.waits_until_saved()
        page.keyboard.press("l")
        anna.waits_for(lambda: page.locator(".similar-row").count() == 5, "what looks alike")
        _is_readable(anna)
        page.keyboard.press("k")
        page.keyboard.press("Escape")
        page.keyboard.press("w")  # a message, as nothing is selected
        anna.waits_for(lambda: page.locator("#notice").is_visible(), "a message")
        _is_readable(anna)
        page.get_by_role("button", name="Close this message").click()
        anna.bar("t3").click()
        for key, name in DIALOGS.items():
            page.keyboard.press(key)
            anna.waits_for(page.locator(f"#{name}-dialog").is_visible, name)
            if name == "regroup":
                anna.waits_for(lambda: "would" in anna.sees("#regroup-summary"), "a preview")
            _is_readable(anna)
            page.keyboard.press("Escape")
        page.keyboard.press("a")
        _is_readable(anna)
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Details of this count").click()
        assert "4 polyps" in anna.sees("#about-dialog")
        _is_readable(anna)
        page.keyboard.press("Escape")
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
            # The time axis follows the window a moment later.
            anna.waits_for(lambda: page.evaluate(CUT_OFF) == [], f"nothing cut off at {page.viewport_size}")
            assert anna.question
            assert page.evaluate(HIDDEN_WORDS) == [], page.viewport_size
            shown = page.locator("#screen").bounding_box()
            assert shown["width"] / shown["height"] == pytest.approx(160 / 128, abs=0.02)
        anna.found_no_fault()


def test_a_list_of_procedures(tmp_path: Path) -> None:
    """Counts, a recording that is not counted yet, and one that only has the name of a recording."""
    copy_of_result(tmp_path / "one")
    copy_of_result(tmp_path / "two")
    shutil.copy(recording(), tmp_path / f"{HOSTILE[:60].replace('/', '-')}.mp4")
    (tmp_path / "broken.mp4").write_bytes(b"not a recording")
    with chromium() as browser, served(tmp_path) as address:
        anna = Person.opens(browser, address, bypass_csp=True)
        page = anna.page
        assert (anna.sees("#sum-counted"), anna.sees("#sum-polyps")) == ("2 of 4", "8")
        assert page.locator("img[src=x]").count() == 0
        _is_readable(anna)
        page.get_by_role("button", name="Count: broken").click()
        row = page.locator("tr", has=page.get_by_text("broken"))
        anna.waits_for(lambda: "Could not be counted" in row.inner_text(), "the failure")
        assert str(tmp_path) not in row.inner_text()
        waiting = page.locator("tr", has_text=HOSTILE[:20])
        waiting.get_by_role("button").click()
        anna.waits_for(lambda: waiting.get_by_role("button").inner_text() == "Stop", "the way to stop")
        waiting.get_by_role("button").click()
        anna.waits_for(lambda: "Not counted yet" in waiting.inner_text(), "the end")
        page.get_by_role("button", name="Review").first.click()
        anna.waits_for(lambda: page.locator("#review").is_visible(), "the review")
        anna.bar("t3").click()
        page.keyboard.press("w")
        anna.waits_for_lanes(t3=5)
        page.get_by_role("link", name="Procedures").click()
        anna.waits_for(lambda: page.locator("#list").is_visible(), "the list")
        assert anna.sees("#sum-polyps") == "9"
        anna.found_no_fault()


def test_one_procedure_opens_without_the_list(tmp_path: Path) -> None:
    """A slow list is not asked for again before it has come, and is not needed to open one procedure."""
    for name in ("one", "two", "broken"):
        copy_of_result(tmp_path / name)
    (tmp_path / "broken" / "review" / "review.json").write_text("{}")
    with chromium() as browser, served(tmp_path) as address:
        anna = Person.opens(browser, address)
        page = anna.page
        row = page.locator("tr", has_text="Cannot be opened")
        assert "review.json" in row.locator(".message").inner_text()
        assert not row.get_by_role("button").is_visible()
        asked: list[Any] = []
        page.route("**/api/procedures", lambda route: asked.append(route))
        anna.waits_for(lambda: asked, "the next list")
        page.wait_for_timeout(2500)
        assert len(asked) == 1
        page.get_by_role("button", name="Review").first.click()
        anna.waits_for(lambda: page.locator("#review").is_visible(), "the review")
        assert (anna.count, len(asked)) == (4, 1)
        anna.found_no_fault()


def test_a_result_without_tracklets(tmp_path: Path) -> None:
    nothing = boxes().take(np.array([], np.int64))
    write_report(pc.count(recording(), nothing, encoder=doubtful_encoder()), tmp_path / "result")
    with chromium() as browser, served(tmp_path / "result") as address:
        anna = Person.opens(browser, address, size=(1024, 700))
        assert (anna.count, anna.lanes, anna.question) == (0, {}, ())
        assert anna.sees("#settled").startswith("No question is open")
        assert anna.sees("#no-polyps") == "No polyps are counted."
        assert anna.sees("#player-title") == "Nothing selected"
        anna.waits_for(lambda: anna.frame == 0, "the first frame")
        for key in ("y", "w", "j", "c", "f", "p", "Delete", "Control+z", "ArrowDown", "ArrowRight"):
            anna.page.keyboard.press(key)  # nothing to do, and no harm
        anna.page.keyboard.press("a")
        anna.page.keyboard.press("Enter")
        anna.waits_for_lanes(h1=1)
        assert anna.count == 1
        anna.found_no_fault()


def test_without_the_recording_there_are_pictures(result: Path) -> None:
    (result / "review" / "recording.json").unlink()
    with chromium() as browser, served(result) as address:
        anna = Person.opens(browser, address)
        picture = anna.page.locator("#still")
        anna.waits_for(lambda: picture.evaluate("one => one.naturalWidth > 0"), "a picture")
        assert "The recording is not available" in anna.sees("#no-recording")
        assert anna.page.get_by_role("button", name="Add polyp").is_disabled()
        anna.bar("t3").click()
        anna.waits_for(lambda: "Picture of tracklet 4, frame 1" in picture.get_attribute("alt"), "its picture")
        anna.bar("s0").click()
        anna.waits_for(lambda: "No pictures were kept" in anna.sees("#screen-text"), "that there is none")
        anna.page.keyboard.press("a")
        assert "where the recording is available" in anna.sees("#notice")
        anna.found_no_fault()
