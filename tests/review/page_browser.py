"""A person at the page of the review: the program serves it, and Chromium shows it."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PROGRAM

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if "CI" not in os.environ:  # there, a missing browser is a failure
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no chromium: install the system package chromium", allow_module_level=True)

PATIENCE_MS = 30_000
DESK = (1440, 900)


@contextlib.contextmanager
def served(*arguments: object) -> Iterator[str]:
    """Run `polypcount review` with these arguments; gives the address that it prints."""
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(
            [PROGRAM, "review", *map(str, arguments), "--no-browser"],
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env={**os.environ, "COLUMNS": "160"},
        ) as process,
    ):
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            said.seek(0)
            assert line.startswith("review: http://127.0.0.1:"), (line, said.read())
            yield line.removeprefix("review: ").strip()
        finally:
            process.terminate()
            process.wait(timeout=60)
            said.seek(0)
            words = said.read()
        assert "Traceback" not in words, words


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A browser; as root it has no sandbox of its own, and it opens only our own pages."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@dataclass
class Person:
    """Somebody who looks at the page: what they see, and what they do.

    Attributes:
        page: The page of the browser.
        address: Where it was opened.
        requests: All addresses that the page asked for.
        problems: What the browser complained about: errors, and breaches of the page's policy.
    """

    page: Any
    address: str
    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @classmethod
    def opens(cls, browser: Any, address: str, *, size: tuple[int, int] = DESK, **context: Any) -> "Person":
        """Open the address in a window of their own, and wait until the review is there."""
        room = browser.new_context(viewport={"width": size[0], "height": size[1]}, **context)
        room.set_default_timeout(PATIENCE_MS)
        person = cls(room.new_page(), address)
        person.page.on("request", lambda request: person.requests.append(request.url))
        person.page.on("console", lambda message: person.problems.append(message.text))
        person.page.on("pageerror", lambda problem: person.problems.append(str(problem)))
        person.goes_to(address)
        return person

    def goes_to(self, address: str) -> None:
        """Open an address in the same window."""
        self.address = address
        self.page.goto(address)
        self.waits_until_opened()

    def waits_until_opened(self) -> None:
        """Wait until the page is there."""
        self.page.wait_for_selector("#starting", state="hidden")

    def found_no_fault(self) -> None:
        """Nothing was asked of others, and the browser has not complained."""
        own = self.address.partition("?")[0]
        assert [one for one in self.requests if not one.startswith((own, f"blob:{own}"))] == []
        assert self.problems == []

    def sees(self, selector: str) -> str:
        """The text at a place."""
        return str(self.page.locator(selector).inner_text())

    @property
    def count(self) -> int:
        """The number at the top."""
        return int(self.sees("#count"))

    @property
    def lanes(self) -> dict[str, str]:
        """The lane of each bar, by tracklet: the number of a polyp, or "none"."""
        bars = "all => all.map(one => [one.dataset.item, one.dataset.polyp])"
        return dict(sorted(self.page.eval_on_selector_all("#timeline .bar", bars)))

    @property
    def frame(self) -> int:
        """The frame that the player shows; -1 for none."""
        return int(self.page.locator("#frame").get_attribute("data-frame") or -1)

    @property
    def question(self) -> tuple[str, ...]:
        """The tracklets that stand for both sides of the question; empty if nothing is asked."""
        if not self.page.locator("#question").is_visible():
            return ()
        return tuple(self.page.locator(side).get_attribute("data-item") for side in ("#first-side", "#second-side"))

    @property
    def history(self) -> list[str]:
        """What was decided, newest first, as the page has it."""
        self.page.keyboard.press("h")
        rows = [str(row) for row in self.page.locator("#history-rows tr td:nth-child(4)").all_inner_texts()]
        self.page.keyboard.press("Escape")
        return rows

    def waits_for(self, condition: Callable[[], object], what: str) -> None:
        """Wait until something is so. The page's policy forbids the browser's own way of waiting for an expression."""
        end = time.monotonic() + PATIENCE_MS / 1000
        while not condition():
            assert time.monotonic() < end, f"never came: {what}; the page says {self.sees('#notice')!r}"
            self.page.wait_for_timeout(25)

    def waits_for_lanes(self, **lanes: object) -> None:
        """Wait until these tracklets are in these lanes, and until that is saved."""
        wanted = {item: str(lane) for item, lane in lanes.items()}
        self.waits_for(lambda: wanted.items() <= self.lanes.items(), f"{wanted} in {self.lanes}")
        self.waits_until_saved()

    def waits_until_saved(self) -> None:
        """Wait until the page says that everything is saved."""
        self.waits_for(lambda: self.sees("#saved") == "Saved", "saved")

    def answers(self, key: str) -> None:
        """Press a key for the question. A question that has just appeared by itself does not listen for a moment."""
        before = self.question

        def pressed() -> bool:
            self.page.keyboard.press(key)
            return self.question != before

        self.waits_for(pressed, f"another question than {before}")

    def waits_until_asked_after(self, question: tuple[str, ...]) -> None:
        """Wait until another question is asked, or none."""
        self.waits_for(lambda: self.question != question, f"another question than {question}")

    def bar(self, item: str) -> Any:
        """The bar of a tracklet."""
        return self.page.locator(f"#timeline .bar[data-item={item}] .body")

    def lane(self, polyp: int) -> Any:
        """The name beside the lane of a polyp."""
        return self.page.locator(f".lane-label[data-polyp='{polyp}']")

    def card(self, polyp: int) -> Any:
        """The card of a polyp, opened."""
        card = self.page.locator(f".card[data-polyp='{polyp}']")
        card.scroll_into_view_if_needed()
        card.locator("details").evaluate("one => one.open = true")
        return card

    def drags(self, what: Any, where: Any) -> None:
        """Drag one thing onto another."""
        mouse, places = self.page.mouse, []
        for thing in (what, where):
            thing.scroll_into_view_if_needed()
            box = thing.bounding_box()
            places.append((box["x"] + min(box["width"] / 2, 60), box["y"] + box["height"] / 2))
        mouse.move(*places[0])
        mouse.down()
        mouse.move(*places[1], steps=6)
        mouse.up()

    def chooses(self, choice: object) -> None:
        """Choose in the window that asks for a polyp."""
        self.page.locator(f"#choose-dialog [data-choice='{choice}']").click()


def read_json(path: Path) -> Any:
    """What a JSON file holds."""
    import json

    return json.loads(path.read_text())
