"""The same job by keyboard alone."""

from pathlib import Path

from tests.review.page_browser import Person, chromium, read_json, served


def test_the_main_path_needs_no_mouse(result: Path) -> None:
    with chromium() as browser, served(result) as address:
        anna = Person.opens(browser, address, reduced_motion="reduce")
        keys = anna.page.keyboard
        assert anna.count == 4
        while anna.question:
            anna.answers("n" if anna.lanes[anna.question[0]] != anna.lanes[anna.question[1]] else "y")
            anna.waits_until_saved()
        assert anna.count == 4
        assert len(anna.history) >= 3

        keys.press("?")
        assert anna.page.locator("#help-dialog").is_visible()
        keys.press("y")  # a window lies over the page, so this answers nothing
        keys.press("Escape")

        keys.press("ArrowDown")  # to the lane of polyp 2
        assert _focused(anna) in {"t1", "t3"}
        keys.press("ArrowRight")
        assert _focused(anna) == "t3"
        keys.press("w")
        anna.waits_for_lanes(t3=5)
        assert _focused(anna) == "t3"
        keys.press("j")
        keys.press("2")
        keys.press("Enter")
        anna.waits_for_lanes(t3=5, t1=5)
        keys.press("p")
        keys.press("Shift+>")
        _plays_to(anna, 140)
        keys.press("c")
        anna.waits_for_lanes(t1=5, t3=6)
        for key in ("Control+z", "Control+z", "Control+z"):
            keys.press(key)
        anna.waits_for_lanes(t1=2, t3=2)

        _goes_to(anna, "t5")
        keys.press("m")
        keys.press("1")
        keys.press("Enter")
        anna.waits_for_lanes(t5=1)
        keys.press("Control+z")
        anna.waits_for_lanes(t5=4)
        keys.press("Control+y")
        anna.waits_for_lanes(t5=1)

        _goes_to(anna, "t4")
        keys.press("Delete")
        anna.waits_for_lanes(t4="none")
        assert _focused(anna) == "t4"  # it went with the tracklet
        keys.press("Control+ArrowRight")  # to the next one that is not counted
        keys.press("x")
        assert anna.sees("#selection") == "2 tracklets selected"
        keys.press("w")
        anna.waits_for(lambda: anna.lanes["t4"] == anna.lanes["s0"] != "none", "both in one new polyp")
        anna.waits_until_saved()

        keys.press("a")
        for _ in range(3):
            keys.press("ArrowLeft")
        keys.press("Shift+ArrowDown")
        keys.press("Enter")
        anna.waits_for(lambda: "h1" in anna.lanes, "the polyp that was added")
        anna.waits_until_saved()
        assert anna.count == 4

        keys.press("e")
        _tabs_to(anna, "export-start")
        keys.press("Enter")
        anna.waits_for(lambda: "Written: 4 polyps." in anna.sees("#export-result"), "the files")
        keys.press("Escape")
        assert read_json(result / "corrected" / "report" / "count.json")["count"] == 4
        assert anna.page.evaluate("matchMedia('(prefers-reduced-motion: reduce)').matches")
        anna.found_no_fault()


def _focused(anna: Person) -> str | None:
    """The tracklet that has the focus."""
    item: str | None = anna.page.evaluate("document.activeElement.closest('.bar')?.dataset.item")
    return item


def _goes_to(anna: Person, item: str) -> None:
    """Walk through the lanes to a tracklet."""
    for key in ["ArrowUp"] * 6 + ["ArrowDown"] * 6:
        anna.page.keyboard.press(key)
        for _ in range(4):
            if _focused(anna) == item:
                return
            anna.page.keyboard.press("ArrowRight")
        if _focused(anna) == item:
            return
    raise AssertionError(f"{item} cannot be reached; the focus is at {_focused(anna)}")


def _plays_to(anna: Person, frame: int) -> None:
    """Step until the playhead is at a frame or after it."""

    def there() -> bool:
        anna.page.keyboard.press("Shift+>")
        return anna.frame >= frame

    anna.waits_for(there, f"frame {frame}")


def _tabs_to(anna: Person, name: str) -> None:
    """Press the tab key until something has the focus."""

    def there() -> bool:
        anna.page.keyboard.press("Tab")
        return bool(anna.page.evaluate("document.activeElement.id") == name)

    anna.waits_for(there, name)
