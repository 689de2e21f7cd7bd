"""The whole job in a browser, as a person would do it."""

from pathlib import Path

import numpy as np

from tests.review.page_browser import Person, chromium, read_json, served

HOSTILE = "<img src=x onerror=alert(1)> & \"quoted\" 'name'"
BOX = (30, 20), (70, 60)  # in pixels of the recording
TRUTH = {"t0": "A", "t1": "B", "t2": "A", "t3": "B", "t4": "C", "t5": "A"}


def test_the_whole_job(result: Path) -> None:
    with chromium() as browser:
        with served(result) as address:
            anna = Person.opens(browser, address)
            _regroups(anna)
            _answers(anna)
            _drags(anna)
            _counts_what_was_not_counted(anna)
            _describes(anna)
            lanes, history = anna.lanes, anna.history
            anna.page.reload()
            anna.waits_until_saved()
            assert (anna.lanes, anna.history) == (lanes, history)
            anna.found_no_fault()
            anna.page.close()
        with served(result) as address:  # another process, another port
            anna = Person.opens(browser, address)
            anna.waits_until_saved()
            assert (anna.lanes, anna.history) == (lanes, history)
            _exports(anna, result)
            anna.found_no_fault()


def _regroups(anna: Person) -> None:
    """What would change is shown first, and the number that is known is kept to."""
    page, before = anna.page, anna.lanes
    assert "token" not in page.url  # it would be copied with the address
    assert before == {"t0": "1", "t1": "2", "t2": "1", "t3": "2", "t4": "3", "t5": "4", "a0": "none", "s0": "none"}
    assert anna.count == 4
    assert anna.sees("#saved") == "No changes yet"
    assert anna.sees("#player-title").startswith("Polyp 1, tracklet ")  # so that the player is not empty
    page.keyboard.press("r")
    anna.waits_for(lambda: anna.sees("#regroup-summary") == "Nothing would change: 4 polyps.", "a preview")
    assert page.locator("#regroup-accept").is_disabled()
    page.locator("#hint-most").fill("3")
    page.get_by_role("button", name="Use", exact=True).click()
    anna.waits_for(lambda: anna.sees("#regroup-summary").startswith("3 polyps ("), "a preview")
    changes = page.locator("#regroup-changes li")
    moved, (source, target) = changes.get_attribute("data-item"), changes.locator(".badge").all_inner_texts()
    assert before[moved] == source
    assert anna.count == 4
    page.get_by_role("button", name="Accept the changes").click()
    anna.waits_for_lanes(**{moved: target})
    assert anna.lanes == {**before, moved: target}
    assert (anna.count, anna.history) == (3, ["regroup", "number of polyps: at most 3"])
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")  # waits for the one before
    anna.waits_for(lambda: "number of polyps" in page.locator("#redo").get_attribute("title"), "both undone")
    anna.waits_for_lanes(**before)


def _answers(anna: Person) -> None:
    """The queue, answered by keys and by clicks, leads to the true number."""
    skipped = anna.question
    anna.answers("s")
    turn = 0
    while question := anna.question:
        is_one = TRUTH[question[0]] == TRUTH[question[1]]
        if turn % 2:
            anna.page.get_by_role("button", name="Yes, one" if is_one else "No, two").click()
            anna.waits_until_asked_after(question)
        else:
            anna.answers("y" if is_one else "n")
        anna.waits_until_saved()
        turn += 1
        if not anna.question and anna.page.locator("#ask-skipped").is_visible():
            anna.page.locator("#ask-skipped").click()
            assert anna.question == skipped
    assert 3 <= turn <= 6
    assert anna.sees("#settled").endswith("more answers would not change the count.")
    assert (anna.count, anna.sees("#interval")) == (3, "exactly 3")
    assert anna.lanes == {"t0": "1", "t1": "2", "t2": "1", "t3": "2", "t4": "3", "t5": "1", "a0": "none", "s0": "none"}
    assert len(anna.history) == turn  # what was undone cannot be redone any more


def _drags(anna: Person) -> None:
    """Bars to lanes, names to names; what was joined comes apart again as it was."""
    anna.drags(anna.bar("t3"), anna.page.locator("#new-lane"))
    anna.waits_for_lanes(t3=5)  # 4 was used
    assert anna.count == 4
    anna.drags(anna.lane(5), anna.lane(2))
    anna.waits_for_lanes(t3=2)
    assert anna.count == 3
    anna.card(2).get_by_role("button", name="Take back").click()
    anna.waits_for_lanes(t3=5)
    anna.drags(anna.bar("t3"), anna.bar("t1"))
    anna.waits_for_lanes(t3=2)
    anna.drags(anna.bar("t1"), anna.lane(1))  # seen in one frame with t2
    anna.waits_for(lambda: "seen in one frame together" in anna.sees("#notice"), "a refusal")
    refusal = anna.problems.pop()  # the browser notes every refusal of the server
    assert "400 (Bad Request)" in refusal
    assert anna.lanes["t1"] == "2"
    anna.lane(1).click()
    assert anna.sees("#player-title") == "Polyp 1"
    anna.page.locator(".cut[data-frame='260']").click()
    anna.waits_for_lanes(t0=1, t2=1, t5=6)
    anna.page.get_by_role("button", name="Undo").click()
    anna.waits_for_lanes(t5=1)
    anna.page.keyboard.press("Control+Shift+Z")
    anna.waits_for_lanes(t5=6)
    anna.page.keyboard.press("Control+z")
    anna.waits_for_lanes(t5=1)
    anna.page.get_by_role("button", name="Redo").click()
    anna.waits_for_lanes(t5=6)
    anna.page.keyboard.press("Control+z")
    anna.waits_for_lanes(t5=1)
    assert anna.history[0] == "split polyp 1(undone)"


def _counts_what_was_not_counted(anna: Person) -> None:
    """Tracklets go to "Not counted" and come from there; a polyp that no box showed is added by hand."""
    page = anna.page
    anna.drags(anna.bar("s0"), anna.lane(3))
    anna.waits_for_lanes(s0=3)
    anna.bar("a0").click()
    page.get_by_role("button", name="New polyp").click()
    anna.waits_for_lanes(a0=7)
    assert anna.count == 4
    page.keyboard.press("Delete")
    anna.waits_for_lanes(a0="none")
    ruler = page.locator("#ruler").bounding_box()
    page.mouse.click(ruler["x"] + ruler["width"] * 350.5 / 360, ruler["y"] + 8)
    anna.waits_for(lambda: anna.frame == 350, "frame 350")
    page.get_by_role("button", name="Add polyp").click()
    screen = page.locator("#draw-layer").bounding_box()
    corners = [(screen["x"] + screen["width"] * x / 160, screen["y"] + screen["height"] * y / 128) for x, y in BOX]
    page.mouse.move(*corners[0])
    page.mouse.down()
    page.mouse.move(*corners[1], steps=4)
    page.mouse.up()
    page.get_by_role("button", name="Add this polyp").click()
    anna.waits_for_lanes(h1=8)
    assert anna.count == 4


def _describes(anna: Person) -> None:
    """What is said about a polyp is kept as it was written."""
    card = anna.card(1)
    card.get_by_label("Name").fill(HOSTILE)
    card.get_by_label("Site").fill("Cecum")
    card.get_by_label("Size in mm").fill("6.5")
    card.get_by_label("Histology").fill("SSL")
    card.get_by_label("Note").fill("flat\nlooks < others")
    anna.lane(3).click()
    anna.waits_for(lambda: anna.sees(".lane-label[data-polyp='1'] .lane-name") == HOSTILE, "the name")
    anna.waits_until_saved()
    facts = card.locator("dl").inner_text().split("\n")
    assert {"Cecum", "6.5 mm", "SSL"} <= set(facts)
    assert card.locator(".card-title").inner_text() == HOSTILE
    assert anna.page.locator("img[src=x]").count() == 0


def _exports(anna: Person, result: Path) -> None:
    """The files say what the page shows."""
    page = anna.page
    page.get_by_label("Reviewer").fill("Dr. Anna <Admin>")
    page.get_by_role("button", name="Export").click()
    assert "4 polyps" in anna.sees("#export-dialog p")
    assert "Dr. Anna <Admin>" in anna.sees("#export-dialog p")
    page.get_by_label("MOT").uncheck()
    page.get_by_role("button", name="Export now").click()
    anna.waits_for(lambda: "Written" in anna.sees("#export-result"), "the files")
    written = anna.page.locator("#export-result li").all_inner_texts()
    corrected = result / "corrected"
    assert {"report/count.json", "report/boxes-coco/boxes.json", "corpus/corpus.json"} <= set(written)
    assert all((corrected / name).is_file() for name in written)
    assert [name for name in written if "mot" in name] == []
    count = read_json(corrected / "report" / "count.json")
    groups = {(5, 80, 260), (60, 140), (200, 310), (350,)}  # the first frames of the tracklets of each polyp
    starts = [one["start_frame"] for one in count["tracklets"]]
    assert count["count"] == len(groups) == anna.count
    assert {tuple(starts[row] for row in polyp["tracklets"]) for polyp in count["polyps"]} == groups
    (added,) = [one for one in count["tracklets"] if one["start_frame"] == 350]
    assert added["stop_frame"] == 351
    remarks = " ".join(count["remarks"])
    assert "by Dr. Anna <Admin> on" in remarks
    assert f"Polyp 1: {HOSTILE}, Cecum, 6.5 mm, SSL, flat" in remarks
    boxes = read_json(corrected / "report" / "boxes-coco" / "boxes.json")
    left, top, width, height = max(boxes["annotations"], key=lambda one: int(one["image_id"]))["bbox"]
    assert np.allclose([left, top, left + width, top + height], np.ravel(BOX), atol=1)
