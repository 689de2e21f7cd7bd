"""Two windows at once, and connections that break: nothing is lost, and nothing is done twice."""

import json
from pathlib import Path
from typing import Any

from tests.review.page_browser import Person, chromium, served


def test_two_windows_end_in_the_same_state(result: Path) -> None:
    with chromium() as browser, served(result) as address:
        anna, bert = Person.opens(browser, address), Person.opens(browser, address)
        _sees_the_others_changes(anna, bert)
        _is_refused_on_an_old_view(anna, bert)
        _both_at_once(anna, bert)
        anna.found_no_fault()
        bert.found_no_fault()


def _sees_the_others_changes(anna: Person, bert: Person) -> None:
    anna.bar("t3").click()
    anna.page.keyboard.press("w")
    bert.waits_for_lanes(t3=5)
    assert bert.count == 5
    assert "changed in another window" in bert.sees("#notice")
    bert.page.keyboard.press("Control+z")
    anna.waits_for_lanes(t3=2)
    assert anna.count == 4


def _is_refused_on_an_old_view(anna: Person, bert: Person) -> None:
    """Bert's page does not hear of Anna's decision before he decides himself."""
    version = bert.page.evaluate(
        "async () => { const {procedures} = await (await fetch('/api/procedures')).json();"
        " return (await fetch(`/api/procedures/${procedures[0].id}/version`)).json(); }"
    )
    bert.page.route("**/version", lambda route: route.fulfill(json=version))
    anna.bar("t4").click()
    anna.page.keyboard.press("Delete")
    anna.waits_for_lanes(t4="none")
    assert bert.lanes["t4"] == "3"
    bert.bar("t5").click()
    bert.page.keyboard.press("Delete")
    bert.waits_for_lanes(t4="none", t5=4)  # he sees hers, and his own was not done
    assert "Your decision was not taken" in bert.sees("#notice")
    assert "409 (Conflict)" in bert.problems.pop()
    bert.page.unroute("**/version")
    bert.page.keyboard.press("Delete")  # he has looked, and decides again
    anna.waits_for_lanes(t4="none", t5="none")
    assert anna.count == bert.count == 2
    assert len([one for one in anna.history if "shows no polyp" in one]) == 2


def _both_at_once(anna: Person, bert: Person) -> None:
    """They decide as fast as they can. What a page has shown as saved is on record, once."""
    before = len(anna.history)
    for _ in range(4):
        for person, item in ((anna, "t0"), (bert, "t3")):
            person.bar(item).click()
            person.page.keyboard.press("w")
    for person in (anna, bert):
        person.waits_until_saved()
    anna.waits_for(lambda: anna.lanes == bert.lanes and anna.history == bert.history, "the same state")
    for person in (anna, bert):
        assert all("409 (Conflict)" in problem for problem in person.problems)
    refused = len(anna.problems) + len(bert.problems)
    decided = list(anna.history[: len(anna.history) - before])
    assert all(one.startswith("move tracklet") for one in decided)
    assert len(decided) <= 8 - refused  # "new polyp" of what is a new polyp already is no decision
    anna.problems.clear()
    bert.problems.clear()


def test_what_follows_a_refused_decision_is_not_sent(result: Path) -> None:
    """Ctrl Z was meant for the merge. It must not undo what was decided before."""
    with chromium() as browser, served(result) as address:
        anna = Person.opens(browser, address)
        page = anna.page
        anna.bar("t3").click()
        page.keyboard.press("w")
        anna.waits_for_lanes(t3=5)
        held: list[Any] = []
        page.route("**/decisions", lambda route: held.append(route))
        anna.lane(1).click()
        page.keyboard.press("j")
        anna.chooses(2)
        page.keyboard.press("Control+z")
        anna.waits_for(lambda: held, "the merge")
        assert anna.sees("#saved") == "Saving …"
        held[0].continue_()
        anna.waits_for(lambda: "seen in one frame together" in anna.sees("#notice"), "a refusal")
        assert "What you decided after that was not taken either" in anna.sees("#notice")
        assert "400 (Bad Request)" in anna.problems.pop()
        anna.waits_until_saved()
        assert (anna.lanes["t3"], anna.history) == ("5", ["move tracklet 4 to a new polyp"])
        assert len(held) == 1
        page.unroute("**/decisions")
        page.keyboard.press("Control+z")
        anna.waits_for_lanes(t3=2)
        anna.found_no_fault()


def test_a_fault_of_the_server_does_not_block_the_page(result: Path) -> None:
    with chromium() as browser, served(result) as address:
        anna = Person.opens(browser, address)
        page = anna.page
        fault = {"status": 500, "json": {"detail": "a fault in polypcount; the terminal says more"}}
        held: list[Any] = []
        page.route("**/decisions", lambda route: held.append(route))
        anna.bar("t3").click()
        page.keyboard.press("w")
        page.keyboard.press("Control+z")
        anna.waits_for(lambda: held, "the decision")
        held[0].fulfill(**fault)
        anna.waits_for(lambda: "A fault in polypcount" in anna.sees("#notice"), "that there is a fault")
        assert "Your last 2 decisions were not taken." in anna.sees("#notice")
        assert anna.sees("#saved") == "No changes yet"
        assert not page.get_by_role("button", name="Try again").is_visible()
        page.unroute("**/decisions")

        def save_and_fail(route: Any) -> None:
            route.fetch()
            route.fulfill(**fault)

        page.route("**/decisions", save_and_fail)
        page.keyboard.press("w")
        anna.waits_for_lanes(t3=5)
        assert "The newest decision on record is now: move tracklet 4 to a new polyp." in anna.sees("#notice")
        page.unroute("**/decisions")
        page.keyboard.press("Control+z")
        anna.waits_for_lanes(t3=2)
        assert len(held) == 1  # nothing was tried again
        assert all("500 (Internal Server Error)" in problem for problem in anna.problems)


def test_a_broken_connection_loses_nothing(result: Path) -> None:
    with chromium() as browser, served(result) as address:
        anna = Person.opens(browser, address)
        page = anna.page
        anna.bar("t3").click()
        page.context.set_offline(True)
        page.keyboard.press("w")
        page.keyboard.press("Control+z")  # waits behind the other
        anna.waits_for(lambda: anna.sees("#saved") == "Not saved: 2 waiting", "that nothing is saved")
        assert "kept here" in anna.sees("#notice")
        assert anna.lanes["t3"] == "2"
        page.context.set_offline(False)
        page.get_by_role("button", name="Try again").click()
        anna.waits_until_saved()
        assert (anna.lanes["t3"], anna.history) == ("2", ["move tracklet 4 to a new polyp(undone)"])

        def lose_the_answer(route: object) -> None:
            answer = route.fetch()  # type: ignore[attr-defined]
            assert json.loads(answer.text())["version"] == 3
            route.abort()  # type: ignore[attr-defined]

        page.route("**/decisions", lose_the_answer)
        page.keyboard.press("w")
        anna.waits_for(lambda: anna.sees("#saved").startswith("Not saved"), "that the answer was lost")
        page.unroute("**/decisions")
        page.keyboard.press("t")
        anna.waits_for_lanes(t3=6)  # 5 was used
        assert "The connection broke while a decision was being saved" in anna.sees("#notice")
        assert "move tracklet 4 to a new polyp" in anna.sees("#notice")
        assert anna.history == ["move tracklet 4 to a new polyp"]
