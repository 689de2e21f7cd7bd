"""The questions and the list of what looks alike: what is said there is true, and is about what it says."""

import re
from pathlib import Path
from typing import Any

from tests.review.page_browser import Person, chromium, served

STATE = re.compile(r"/api/procedures/[0-9a-f]{12}$")


def test_the_list_is_about_what_it_says(result: Path) -> None:
    with chromium() as browser, served(result) as address:
        anna = Person.opens(browser, address)
        page = anna.page
        page.keyboard.press("l")
        anna.bar("t3").click()
        anna.waits_for(lambda: "Polyp 2, 0:06 to" in anna.sees("#similar-title"), "the list of tracklet 4")
        page.route("**/similar/**", lambda _: None)  # the next list never comes
        anna.bar("t5").click()
        page.locator(".similar-row[data-item=t4]").get_by_role("button", name="Same polyp").click()
        anna.waits_for_lanes(t3=2, t4=2, t5=4)
        assert anna.history == ["merge polyps 2 and 3"]
        row = page.locator(".similar-row[data-item=t4]")
        assert row.locator(".same").inner_text() == "One polyp already"
        page.unroute("**/similar/**")

        anna.lane(2).click()
        anna.waits_for(lambda: anna.sees("#similar-title") == "Polyp 2, 3 tracklets", "the list of the polyp")
        assert any(one.endswith("?polyp=true") for one in anna.requests)
        listed = page.eval_on_selector_all(".similar-row", "all => all.map(one => one.dataset.item)")
        assert sorted(listed) == ["t0", "t2", "t5"]
        row = page.locator(".similar-row[data-item=t2]")
        assert "Cannot be it: seen in one frame together" in row.inner_text()
        assert row.locator(".same").is_disabled()
        assert "later" in page.locator(".similar-row[data-item=t5]").inner_text()
        page.locator(".similar-row[data-item=t5]").get_by_role("button", name="Same polyp").click()
        anna.waits_for_lanes(t1=2, t3=2, t4=2, t5=2)

        anna.bar("a0").click()
        anna.waits_for(lambda: page.locator(".similar-row").count() == 0, "an empty list")
        assert anna.sees("#similar-empty").startswith("Only tracklets that are counted")
        anna.found_no_fault()


def test_more_questions_than_were_sent(result: Path) -> None:
    """Who skips all that were sent is told that there are more."""
    with chromium() as browser, served(result) as address:
        anna = Person.opens(browser, address)
        page = anna.page

        def send_one(route: Any) -> None:
            answer = route.fetch()
            state = answer.json()
            route.fulfill(response=answer, json={**state, "questions": state["questions"][:1], "questions_left": 205})

        page.route(STATE, send_one)
        page.reload()
        anna.waits_for(lambda: anna.sees("#questions-left") == "205 open", "the questions")
        question = anna.question
        anna.answers("s")
        assert anna.question == ()
        assert (
            anna.sees("#no-question-text")
            == "1 question skipped. 204 more are open; they come up as these are answered."
        )
        page.get_by_role("button", name="Ask the skipped questions again").click()
        assert anna.question == question
        anna.found_no_fault()
