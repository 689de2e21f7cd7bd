"""The pages in a real browser: nothing is fetched, nothing overflows, everything is shown, nobody is shut out."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from polypcount.corpus import Video
from polypcount.report import Procedure, write_report, write_summary
from tests.report.reports import report_of
from tests.report.test_page import HOSTILE

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: install the system package chromium")

SIZES = [(1280, 900), (820, 1180), (390, 844)]
PAGES = ["none", "one", "three", "many", "frames", "hostile", "summary"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports of all sizes, and a summary of them."""
    root = tmp_path_factory.mktemp("pages")
    reports = {
        "none": report_of([]),
        "one": report_of([1]),
        "three": report_of([1, 2, 3, 1, 2, 1]),
        "many": report_of([*range(1, 31), 1, 2, 3]),
        "frames": report_of([1, 2], pictures=False, fps=None, video=Video("a_b" * 80, 10_000_000)),
        "hostile": report_of([1, 2], video=Video(HOSTILE, 900, 25), remarks=(HOSTILE,)),
    }
    for name, report in reports.items():
        write_report(report, root / name)
    rows = [*(Procedure.of_report(root / name) for name in reports), Procedure("x" * 300, error="y" * 300)]
    write_summary(rows, root)
    return {**{name: root / name / "report.html" for name in reports}, "summary": root / "summary.html"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; as root it has no sandbox of its own, and it opens nothing but our own files."""
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield opened
        opened.close()


@dataclass
class Watched:
    """A page and what it did."""

    page: Any
    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    context = browser.new_context()
    page = context.new_page()
    found = Watched(page)
    page.on("request", lambda request: found.requests.append(request.url))
    page.on("console", lambda message: found.problems.append(message.text))
    page.on("pageerror", lambda problem: found.problems.append(str(problem)))
    page.on("dialog", lambda dialog: found.problems.append(dialog.message))
    yield found
    context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_quiet_and_fits(watched: Watched, pages: dict[str, Path], name: str) -> None:
    page = watched.page
    address = pages[name].as_uri()
    page.goto(address, wait_until="load")
    for media, (width, height) in [*(("screen", size) for size in SIZES), ("print", (718, 1047))]:
        page.emulate_media(media=media)
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (media, width)
        assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
        assert page.evaluate("[...document.images].every(image => image.getBoundingClientRect().width > 20)")
        assert page.get_by_text("Research software, not a medical device.").first.is_visible()
    others = [url for url in watched.requests if url != address and not url.startswith("data:")]
    assert others == []
    assert watched.problems == []


def test_the_policy_stops_what_a_page_must_not_do(watched: Watched, pages: dict[str, Path]) -> None:
    """So that the silence above says something: the same browser does tell when a page breaks its policy."""
    page = watched.page
    page.goto(pages["one"].as_uri())
    broken = page.evaluate(
        """() => new Promise(resolve => {
            document.addEventListener("securitypolicyviolation", event => resolve(event.effectiveDirective));
            document.body.append(Object.assign(new Image(), {src: "http://127.0.0.1:9/x.png"}));
        })"""
    )
    assert broken == "img-src"
    assert any("Content Security Policy" in problem for problem in watched.problems)


@pytest.mark.parametrize(
    ("name", "width"), [("none", 1280), ("three", 1280), ("three", 390), ("many", 1280), ("summary", 390)]
)
def test_nobody_is_shut_out(browser: Any, pages: dict[str, Path], name: str, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

    context = browser.new_context(bypass_csp=True, viewport={"width": width, "height": 900})
    page = context.new_page()
    page.goto(pages[name].as_uri())
    rules = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
    found = Axe().run(page, options=rules)
    told = [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found.response["violations"]]
    assert told == []
    assert "color-contrast" in {one["id"] for one in found.response["passes"]}
    context.close()


def test_cards_do_not_break_across_printed_pages(watched: Watched, pages: dict[str, Path]) -> None:
    page = watched.page
    page.goto(pages["three"].as_uri())
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1047})
    style = "one => [getComputedStyle(one).breakInside, getComputedStyle(one).boxShadow]"
    for part in (".card", ".pair", ".timeline"):
        assert set(map(tuple, page.eval_on_selector_all(part, f"all => all.map({style})"))) == {("avoid", "none")}
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


def test_a_lane_leads_to_its_card(watched: Watched, pages: dict[str, Path]) -> None:
    page = watched.page
    page.goto(pages["many"].as_uri())
    page.get_by_role("link", name="Polyp 27").click()
    assert page.evaluate("location.hash") == "#polyp-27"
    assert page.locator("#polyp-27").evaluate("one => one.getBoundingClientRect().top < innerHeight")
