"""A recording that is counted again while somebody looks at its page: nothing of the earlier count stays on it."""

from pathlib import Path
from typing import Any

from polypcount.report import write_report
from tests.review.page_browser import Person, chromium, served
from tests.review.results import report
from tests.review.test_page_similar import STATE

PICTURE_OF_OLD = "404 (Not Found)"  # pictures that the page still asks for until it knows of the new count


def test_a_new_count_is_noticed_at_once(result: Path) -> None:
    """Also one that was made before the page asked for the first time, and if the new state cannot be read at first."""
    with chromium() as browser, served(result) as address:
        anna = Person.opens(browser, address)
        page = anna.page
        page.route("**/version", lambda route: route.abort())
        page.reload()
        anna.waits_until_opened()
        page.keyboard.press("m")  # a window about tracklets of the earlier count
        old = _count_of(anna)
        write_report(report(), result, force=True)
        failed: list[Any] = []

        def fail_once(route: Any) -> None:
            if failed:
                route.continue_()
            else:
                failed.append(route)
                route.abort()

        page.route(STATE, fail_once)
        page.unroute("**/version")
        anna.waits_for(lambda: "counted anew" in anna.sees("#notice"), "that it was counted again")
        anna.waits_until_opened()
        assert failed
        assert page.locator("dialog[open]").count() == 0
        assert _count_of(anna) != old
        assert all("ERR_FAILED" in one or PICTURE_OF_OLD in one for one in anna.problems)
        page.reload()
        anna.waits_until_opened()
        assert not page.locator("#notice").is_visible()  # it is said once


def test_a_decision_about_the_earlier_count_is_refused(result: Path) -> None:
    with chromium() as browser, served(result) as address:
        anna = Person.opens(browser, address)
        page = anna.page
        anna.bar("t3").click()
        page.route("**/version", lambda _: None)  # the page does not hear of it
        write_report(report(), result, force=True)
        page.keyboard.press("w")
        anna.waits_for(lambda: "because this recording was counted anew" in anna.sees("#notice"), "why it was refused")
        anna.waits_until_opened()
        assert "Your decision was not taken" in anna.sees("#notice")
        (refusal,) = [one for one in anna.problems if PICTURE_OF_OLD not in one]
        assert "409 (Conflict)" in refusal
        anna.problems.clear()
        assert (anna.lanes["t3"], anna.history) == ("2", [])
        page.unroute("**/version")
        anna.bar("t3").click()
        page.keyboard.press("w")
        anna.waits_for_lanes(t3=5)
        anna.found_no_fault()


def _count_of(anna: Person) -> str:
    """The count that the newest picture is of."""
    return next(one for one in reversed(anna.requests) if "of=" in one).partition("of=")[2]
